"""test_examples: CUTLASS example 72b on the stand-in runtime, with kernels of ours.

The other examples run with their own kernels; their builds make them soak tests.
"""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref import BlockScaled, GemmConfig, run
from fp4ref.cutlass import Copy, ExampleResult, run_example
from fp4ref.cutlass.cudart import Launch
from fp4ref.cutlass.entries import read_entries
from fp4ref.cutlass.example_table import find_example
from fp4ref.cutlass.execute import execute_example
from fp4ref.cutlass.process import check_symbols
from fp4ref.errors import InputError, LaunchFault
from fp4ref.hardware import cp_async, mma_unscaled, smem
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.mma_operands import Tile
from fp4ref.hardware.tensor_map import TensorMap
from fp4ref.layout import sf_nbytes, swizzle_scales, unswizzle_scales
from fp4ref.numerics.formats import pack_e2m1

M, N, K = 256, 384, 512


class OurKernel:
    """Runs our own GEMM where 72b launches its kernel.

    Addresses come from the tensor maps in the parameter block; SFD, which has none, is
    the last allocation that was filled before the norm constant.
    """

    def __init__(self, m: int, n: int, k: int) -> None:
        self.m, self.n, self.k = m, n, k
        self.filled: list[Copy] = []
        self.corrupt = False

    def on_copy(self, copy: Copy, data: bytes) -> None:
        self.filled.append(copy)

    def launch(self, machine: Machine, launch: Launch) -> None:
        gmem = machine.gmem
        a, b, _, d, sfa, sfb, sfd, _ = (c.address for c in self.filled)

        def operand(address: int, scales: int, rows: int) -> BlockScaled:
            packed = gmem.contents(address, rows * self.k // 2).reshape(rows, -1)
            sf = gmem.contents(scales, sf_nbytes(rows, self.k // 16))
            return BlockScaled.from_packed(
                packed, unswizzle_scales(sf, rows, self.k // 16), format="nvfp4"
            )

        found = run(
            operand(a, sfa, self.m),
            operand(b, sfb, self.n),
            np.zeros((self.m, self.n), np.float32),
            config=GemmConfig.example_72b(),
            trace=False,
        )
        if self.corrupt:
            found.d[-1, -1] ^= 1
        assert found.sfd is not None
        gmem.poke(d, pack_e2m1(found.d).ravel())
        gmem.poke(sfd, swizzle_scales(found.sfd).ravel())


@pytest.fixture(scope="module")
def without_kernel(example_72b) -> ExampleResult:
    return run_example("72b", M, N, K, launch=lambda *args: None)


def test_every_cuda_function_is_there(example_72b, stand_in):
    check_symbols(example_72b.program, stand_in)


def test_the_kernel_has_one_parameter_of_3072_bytes(example_72b):
    (params,) = read_entries(example_72b.ptx.read_text()).values()
    assert params == ((0, 3072),)


def test_without_a_kernel_the_example_says_failed(without_kernel):
    assert not without_kernel.passed
    assert "Disposition: Failed" in without_kernel.output
    assert without_kernel.problems == ["the program ended with exit status 255"]


def test_the_launch(without_kernel):
    (launch,) = without_kernel.launches
    assert launch.grid == (2, 3, 1)
    assert launch.block == (256, 1, 1)
    assert launch.cluster == (1, 1, 1)
    assert launch.smem_nbytes == 215_040
    assert len(launch.params) == 3072


def test_the_copies(without_kernel):
    to_device = [c for c in without_kernel.copies if c.direction == "to device"]
    assert [c.nbytes for c in to_device] == [
        M * K // 2,
        N * K // 2,
        M * N * 4,
        M * N // 2,
        M * K // 16,
        N * K // 16,
        M * N // 16,
        4,
    ]
    to_host = [c for c in without_kernel.copies if c.direction == "to host"]
    assert [c.address for c in to_host] == [to_device[3].address, to_device[6].address]


def test_the_tensor_maps(without_kernel):
    found = [
        (m.data_type.value, m.rank, m.dims, m.strides, m.box, m.swizzle.value)
        for m in without_kernel.tensor_maps
    ]
    a = (13, 3, (K, M, 1), (K // 2, 0), (256, 128, 1), 3)
    b = (13, 3, (K, N, 1), (K // 2, 0), (256, 128, 1), 3)
    sfa = (1, 4, (256, 8, 2, 1), (512, 4096, 8192), (256, 4, 1, 1), 0)
    sfb = (1, 4, (256, 8, 3, 1), (512, 4096, 12288), (256, 4, 1, 1), 0)
    c = (7, 3, (N, M, 1), (N * 4, 0), (32, 128, 1), 3)
    d = (13, 3, (N, M, 1), (N // 2, 0), (32, 128, 1), 0)
    # Once for the preferred cluster, once for the fallback.
    assert found == [a, b, a, b, sfa, sfb, sfa, sfb, c, d]
    for tensor_map in without_kernel.tensor_maps:
        assert (tensor_map.l2_promotion, tensor_map.oob_nan) == (2, False)
        assert tensor_map.element_strides == (1,) * tensor_map.rank


def test_the_parameter_block_has_the_tensor_maps(without_kernel):
    params = without_kernel.launches[0].params
    for tensor_map in without_kernel.tensor_maps:
        at = params.find(tensor_map.to_bytes())
        assert at % 64 == 0
        assert TensorMap.from_bytes(params[at : at + 128]) == tensor_map


@pytest.mark.parametrize("shape", [(128, 128, 256), (128, 96, 512)])
def test_our_own_kernel_passes_the_examples_check(example_72b, shape):
    ours = OurKernel(*shape)
    result = run_example("72b", *shape, launch=ours.launch, on_copy=ours.on_copy)
    assert result.passed, result.output
    assert "Disposition: Passed" in result.output
    assert result.problems == []


def test_one_wrong_bit_fails_the_examples_check(example_72b):
    ours = OurKernel(128, 128, 256)
    ours.corrupt = True
    result = run_example("72b", 128, 128, 256, launch=ours.launch, on_copy=ours.on_copy)
    assert not result.passed
    assert "Disposition: Failed" in result.output


def test_a_fault_in_the_kernel_is_a_launch_failure_for_the_example(example_72b):
    def launch(*args: object) -> None:
        raise LaunchFault("nothing works today")

    result = run_example("72b", 128, 128, 256, launch=launch)
    assert not result.passed
    assert "Got cutlass error: Error Internal" in result.output
    assert "nothing works today" in result.problems[0]
    assert isinstance(result.fault, LaunchFault)


def test_what_a_kernel_prints_is_the_programs_output(example_72b):
    result = run_example(
        "72b", 128, 128, 256, launch=lambda *args: ["one ", "two\n", "x" * 2_000_000]
    )
    assert result.output.startswith("one two\nxxx")
    assert result.output.count("x") == (1 << 20) - len("one two\n")
    assert result.output.endswith("  Disposition: Failed\n")


def test_inputs_can_be_replaced(example_72b):
    def ones(copy: Copy, data: bytes) -> bytes | None:
        return b"\x22" * copy.nbytes if copy.allocation == 0 else None

    result = run_example("72b", 128, 128, 256, launch=lambda *a: None, on_copy=ones)
    first, second, *_ = result.copies
    read = result.machine.gmem.contents
    assert (read(first.address, first.nbytes) == 0x22).all()
    assert not (read(second.address, second.nbytes) == 0x22).all()


def test_the_example_refuses_a_shape_it_cannot_run(example_72b):
    result = run_example("72b", 128, 40, 256, launch=lambda *args: None)
    assert not result.passed
    assert result.launches == []
    assert "Got cutlass error" in result.output


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "threads", "smem_nbytes", "params_nbytes"),
    [
        ("81", 384, 199_680, 2048),
        ("tutorial-01", 128, 49_280, 120),
        ("tutorial-02", 128, 49_280, 648),
        ("tutorial-03", 128, 49_280, 648),
    ],
)
def test_other_examples_reach_their_launch(
    tools, name, threads, smem_nbytes, params_nbytes
):
    shape = find_example(name).multiples if name == "tutorial-03" else (128, 256, 128)
    result = run_example(name, *shape, launch=lambda *args: None)
    assert not result.passed
    assert result.fault is None
    launch = result.launches[-1]
    assert launch.block == (threads, 1, 1)
    assert (launch.smem_nbytes, len(launch.params)) == (smem_nbytes, params_nbytes)
    assert "ailed" in result.output


OTHERS = {
    "81": [(128, 128, 256), (384, 256, 512)],
    "tutorial-01": [(128, 256, 64), (256, 512, 128)],
    "tutorial-02": [(128, 256, 64), (256, 512, 64), (256, 512, 192)],
    "tutorial-03": [(512, 1024, 64)],
    "tutorial-04": [(512, 1024, 64)],
    "tutorial-05": [(512, 1024, 64)],
}
CASES = [
    (name, shape, schedule)
    for name, shapes in OTHERS.items()
    for shape in shapes
    for schedule in ("eager", "late", 7)
    if (name, shape[2], schedule) != ("tutorial-02", 192, "eager")
    and (name != "tutorial-03" or schedule == find_example(name).schedule)
    and (name, schedule) != ("tutorial-05", "eager")
]

NO_WAIT_LD = Advisory.LOAD_WITHOUT_WAIT.value
NO_FENCE = Advisory.BARRIER_FOR_PROXY_FENCE.value


@pytest.mark.soak
@pytest.mark.parametrize(("name", "shape", "schedule"), CASES)
def test_the_other_examples_pass_their_own_checks(tools, name, shape, schedule):
    found = execute_example(name, *shape, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems
    assert find_example(name).verdict in found.result.output
    expected = {"81": set(), "tutorial-01": {NO_WAIT_LD, NO_FENCE}}
    assert set(found.advisories) == expected.get(name, {NO_WAIT_LD})


@pytest.mark.soak
@pytest.mark.parametrize("name", ["81", "tutorial-01", "tutorial-02"])
def test_the_other_examples_pass_under_their_own_schedule(tools, name):
    found = execute_example(name, 128, 256, 256, trace=False)
    assert found.result.passed, found.result.problems


@pytest.mark.soak
@pytest.mark.parametrize(("name", "mmas"), [("81", 8), ("tutorial-01", 16)])
def test_the_trace_is_that_of_the_last_launch(tools, name, mmas):
    """The tutorial's first launch fills a tensor."""
    found = execute_example(name, 128, 256, 256 if name != "81" else 128)
    assert found.result.passed, found.result.problems
    landed = [e for e in found.trace if e.kind == "land"]
    assert sum(e.operation == "tcgen05.mma" for e in landed) == mmas
    assert found.trace.meta["kernel"] == f"CUTLASS {name}"


@pytest.mark.soak
def test_the_first_warp_of_tutorial_02_may_run_two_phases_ahead(tools):
    """Nobody else arrives on its mbarriers: on silicon, too, only time protects it."""
    found = execute_example("tutorial-02", 128, 256, 192, schedule="eager", trace=False)
    assert not found.result.passed
    assert "before the waiting warp saw it" in found.result.problems[0]


@pytest.mark.soak
def test_what_a_tutorials_kernel_prints_is_in_its_output(tools):
    found = execute_example("tutorial-02", 128, 256, 64, trace=False)
    assert "MMA_Atom\n  ThrID:      _1:_0\n" in found.result.output
    assert "Shape_MNK:  (_128,_256,_16)" in found.result.output


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("81", ""),
        ("tutorial-01", "written by st.shared are read by the async proxy"),
        ("tutorial-02", "a tcgen05.ld result is used before tcgen05.wait::ld"),
    ],
)
def test_what_the_ptx_text_alone_says_of_the_other_examples(tools, name, says):
    found = execute_example(name, 128, 256, 128, ordering="ptx", trace=False)
    assert found.result.passed == (not says)
    assert not says or says in found.result.problems[0]


def one_row_off(monkeypatch):
    right = Tile.read
    monkeypatch.setattr(Tile, "read", lambda tile: np.roll(right(tile), 1, axis=0))


def no_swizzle(monkeypatch):
    right = smem._tile_offsets
    none = smem.SwizzleMode.NONE

    def wrong(swizzle, start, leading, stride, rows, nbytes):
        return right(none, start, leading, stride, rows, nbytes)

    monkeypatch.setattr(smem, "_tile_offsets", wrong)


def no_input_d(monkeypatch):
    right = mma_unscaled.mma

    def wrong(*args, **kwargs):
        return right(*args[:-1], False, **kwargs)

    monkeypatch.setattr(mma_unscaled, "mma", wrong)


def copies_the_first_scale_again(monkeypatch):
    right = cp_async.copy
    first = []

    def wrong(warp, targets, sources, nbytes):
        first.append(sources)
        right(warp, targets, first[0], nbytes)

    monkeypatch.setattr(cp_async, "copy", wrong)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(
            (name, rule)
            for name in ("81", "tutorial-01", "tutorial-02")
            for rule in (one_row_off, no_swizzle, no_input_d)
        ),
        ("81", copies_the_first_scale_again),
    ],
)
def test_one_wrong_rule_makes_another_example_fail(tools, name, rule, monkeypatch):
    rule(monkeypatch)
    found = execute_example(name, 256, 256, 128, schedule="late", trace=False)
    assert not found.result.passed


def test_a_machine_too_small_for_its_clusters_is_refused():
    with pytest.raises(InputError, match="tutorial-03 on 4 SMs; its clusters need 16"):
        execute_example("tutorial-03", 512, 1024, 64, sms=4)


def test_an_unknown_example_is_refused():
    with pytest.raises(InputError, match=r"no CUTLASS example '99'; known: 70-fp8, 71"):
        find_example("99")


def test_a_shape_of_nothing_is_refused():
    with pytest.raises(InputError, match="0 x 128 x 256"):
        run_example("72b", 0, 128, 256, launch=lambda *args: None)
