"""check names mistakes of other people's kernels at their line, and nothing else."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import check_table
import numpy as np
import pytest
from check_kernels import HEAD, PAIRS, STORE, VARIANTS, Case
from triton_edits import EDITS

import fp4ref
from fp4ref import check, errors
from fp4ref.cuda_kernel.build import kernel_code
from fp4ref.cuda_kernel.parameters import parameter_block
from fp4ref.cuda_kernel.sources import ENTRY
from fp4ref.errors import HardwareFault, InputError
from fp4ref.evidence.check import Launch, Struct, launch_arrays
from fp4ref.evidence.check.check import ORDERINGS
from fp4ref.evidence.check.launch import Buffer, Param
from fp4ref.evidence.check.nearest import nearest
from fp4ref.evidence.fidelity import RULES
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.order.rules import Failure
from fp4ref.ptx.run.registry import find


@pytest.mark.parametrize("name", PAIRS)
def test_a_mistake_is_named_at_its_line(name: str) -> None:
    case = PAIRS[name]
    found = check(case.text(True), case.launch(True))
    assert (found.status, found.exit_status) == ("fault", 1)
    named = [f for f in found.errors if f.kind != "mismatch"]
    assert [f.name for f in named] == [case.finding], found.report()
    assert case.line() in [place.ptx_line for place in named[0].places]
    assert named[0].rule
    assert named[0].remedy
    assert named[0].evidence is not None or case.finding in NO_ROW


NO_ROW = {"OverBudget"}
"""No rule of any card: the run was longer than the user allowed."""


@pytest.mark.parametrize("name", [*PAIRS, *VARIANTS])
def test_a_right_kernel_is_clean(name: str) -> None:
    case = (PAIRS | VARIANTS)[name]
    found = check(case.text(), case.launch())
    assert (found.status, found.findings) == ("clean", ()), found.report()
    assert len(found.runs) == 8
    assert len(PAIRS | VARIANTS) >= 40


def test_the_page_lists_16_seeded_faults_or_more_and_40_clean_kernels() -> None:
    assert check_table.PAGE.read_text("utf-8") == check_table.render()
    assert len(PAIRS) + len(EDITS) >= 16
    assert len(PAIRS) + len(VARIANTS) >= 40


# -- every word of a finding ------------------------------------------------------


def test_the_users_own_line_is_named_where_loc_gives_it() -> None:
    case = PAIRS["a barrier left out"]
    text = case.text(True)
    lines = text.splitlines()
    lines.insert(case.line() - 1, "    .loc 1 42 7")
    lines.append('.file 1 "/home/them/reverse.py"')
    found = check("\n".join(lines), case.launch(True))
    places = [str(place) for f in found.errors for place in f.places]
    assert "reverse.py:42" in places
    assert "reverse.py:42\n" in found.report()


def test_a_deadlock_has_its_root_and_who_should_have_signalled() -> None:
    case = PAIRS["too many bytes expected"]
    found = check(case.text(True), case.launch(True)).errors[0]
    assert "272 bytes expected, 256 credited" in found.what
    assert "signalled by cta (0, 0, 0) warp0" in found.who
    assert found.places[0].ptx_line == case.line()
    assert "expect exactly the bytes" in found.remedy


def test_every_class_of_faults_has_a_row_of_evidence() -> None:
    text = files("fp4ref").joinpath("data", "check_rows.toml").read_text()
    table = tomllib.loads(text)
    assert set(table["race"]) == {failure.name for failure in Failure}
    known = {rule.id for rule in RULES}
    rows = [*table["race"].values(), *(row["row"] for row in table["fault"])]
    assert set(rows) <= known
    with_row = {row["class"] for row in table["fault"]}
    every = {c.__name__ for c in _children(HardwareFault)} - {"NotModelled"}
    # RaceFault's rows are under [race]; a fault of the walk's own is none of these.
    modelled = {name for name in every if hasattr(errors, name) or name in with_row}
    assert modelled - with_row <= NO_ROW


def _children(kind: type) -> set[type]:
    below = set(kind.__subclasses__())
    return below.union(*map(_children, below)) if below else below


# -- results ----------------------------------------------------------------------


def test_a_wrong_result_is_a_mismatch_with_its_place_and_bits() -> None:
    case = VARIANTS["its own number"]
    launch = case.launch()
    wrong = launch.buffers["out"].expected.copy()
    wrong[9] += 1
    found = check(case.text(), _expecting(launch, wrong))
    assert (found.status, found.exit_status) == ("mismatch", 1)
    (one,) = found.errors
    assert "1 of 256 elements differ; the first is [9]: 9 (0x00000009)" in one.what
    assert "expected 10 (0x0000000a)" in one.what
    with pytest.raises(AssertionError, match="out is not as expected"):
        found.require_clean()


def _expecting(launch: Launch, want: np.ndarray, **more: object) -> Launch:
    from dataclasses import replace

    out = replace(launch.buffers["out"], expected=want, dtype=want.dtype, **more)
    return replace(launch, buffers={"out": out})


@pytest.mark.parametrize(
    ("rtol", "shift", "status"),
    [(1e-6, 0.0, "clean"), (1e-6, 1e-3, "mismatch"), (1e-2, 1e-3, "clean")],
)
def test_a_tolerance_is_kept_to(rtol: float, shift: float, status: str) -> None:
    case = VARIANTS["a float"]
    want = np.zeros(256, np.float32)
    want[:64] = np.arange(64) / 2 * (1 + shift)
    out = np.zeros(256, np.float32)
    map_ = case.launch().params[1].value
    launch = launch_arrays(
        case.text(), (1,), [out, map_], block=(64,), expected={0: want}, rtol=rtol
    )
    assert check(case.text(), launch).status == status


def test_a_nan_is_near_nothing_but_a_nan() -> None:
    case = VARIANTS["a float"]
    want = np.zeros(256, np.float32)
    want[:64] = np.arange(64) / 2
    want[5] = np.nan
    out = np.zeros(256, np.float32)
    map_ = case.launch().params[1].value
    launch = launch_arrays(
        case.text(), (1,), [out, map_], block=(64,), expected={0: want}, atol=1e9
    )
    (found,) = check(case.text(), launch).errors
    assert "1 of 256 elements differ; the first is [5]: 2.5" in found.what
    assert "expected nan" in found.what


def test_a_result_that_depends_on_the_schedule_is_one() -> None:
    body = """
    atom.relaxed.gpu.global.exch.b32 %r9, [%rd9], %r1;
"""
    lines = "ld.param.u64 %rd9, [out];\nadd.s64 %rd9, %rd9, 512;" + body + STORE
    case = Case("exchange", lines, threads=128)
    found = check(case.text(), case.launch(), schedules=("eager", 1, 2, 3, 4, 5))
    (one,) = found.errors
    assert (found.status, one.name) == ("mismatch", "out depends on the schedule")
    assert "under eager" in one.what
    assert "state a tolerance" in one.remedy


# -- schedules, orderings, budget -------------------------------------------------


def _unreleased() -> Case:
    """tcgen05.ld behind tcgen05.st of its warp, without wait::st."""
    right = PAIRS["lanes of TMEM that belong to another warp"]
    lines = right.lines.replace(
        "    tcgen05.wait::st.sync.aligned;\n",
        "    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r30}, [%r9];\n"
        "    tcgen05.wait::st.sync.aligned;\n"
        "    tcgen05.wait::ld.sync.aligned;\n",
    )
    return Case("no wait::st", lines)


def test_what_shipped_kernels_rely_on_is_an_advisory_with_its_row() -> None:
    case = _unreleased()
    found = check(case.text(), case.launch())
    assert found.status == "clean", found.report()
    assert found.advisories
    rows = {f.evidence.id for f in found.advisories if f.evidence}
    assert "ld-after-st" in rows
    alone = check(case.text(), case.launch(), orderings=("ptx",))
    assert alone.status == "fault"
    relying = check(case.text(), case.launch(), orderings=("shipped",))
    assert relying.status == "clean"


def test_shipped_is_the_same_run_where_nothing_was_relied_on() -> None:
    case = VARIANTS["a sum of 64"]
    both = check(case.text(), case.launch())
    assert [r.same_as for r in both.runs[:2]] == ["", "eager, ptx"]
    alone = check(case.text(), case.launch(), orderings=("shipped",))
    assert all(not r.same_as for r in alone.runs)
    assert (both.outputs["out"] == alone.outputs["out"]).all()
    assert ORDERINGS == ("ptx", "shipped")


ENDLESS = "ONE:\n    add.u32 %r9, %r9, 1;\n    mov.u32 %r9, %r9;\n    bra ONE;\n"


@pytest.mark.parametrize("more", [{"steps": 5000}, {"seconds": 0.05}])
def test_an_endless_loop_ends_with_a_message(more: dict[str, float]) -> None:
    case = Case("endless", "    mov.u32 %r9, 0;\n" + ENDLESS)
    found = check(case.text(), case.launch(), **more)  # type: ignore[arg-type]
    (one,) = found.errors
    assert (found.exit_status, one.kind, len(found.runs)) == (1, "budget", 1)
    assert one.places[0].text == "bra ONE;"
    (option,) = more
    assert f"--{option}" in one.remedy


def test_a_loop_that_waits_for_nothing_is_a_deadlock() -> None:
    lines = "L:\n    ld.volatile.global.u32 %r9, [%rd9];\n    setp.eq.u32 %p1, %r9, 0;"
    case = Case("spin", f"ld.param.u64 %rd9, [out];\n{lines}\n    @%p1 bra L;")
    (one,) = check(case.text(), case.launch(), schedules=("eager",)).errors
    assert one.kind == "deadlock"
    assert one.places[0].text == "@%p1 bra L;"


# -- what is not modelled ---------------------------------------------------------


def test_every_unsupported_form_is_named_at_once_with_the_nearest() -> None:
    lines = (
        "    multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;\n"
        "    prefetch.global.L2 [%rd1];\n"
        "    prefetch.global.L2 [%rd1];\n"
    )
    case = Case("unknown", lines)
    found = check(case.text(), case.launch())
    assert (found.status, found.exit_status, found.runs) == ("unsupported", 3, ())
    first = HEAD.count("\n") + 1
    said = {each.opcode: each.lines for each in found.unsupported}
    assert said == {
        "multimem.red.relaxed.sys.global.add.u32": (first,),
        "prefetch.global.L2": (first + 1, first + 2),
    }
    assert all(each.gap for each in found.unsupported)
    with pytest.raises(AssertionError, match="prefetch"):
        found.require_clean()


@pytest.mark.parametrize(
    ("opcode", "near"),
    [
        ("max.XX.u32", "max.u32"),
        ("bar.sync.XX", "bar.sync"),
        ("bfind.f16", "bfind.u32"),
        ("wgmma.mma_async.sync", ""),
    ],
)
def test_the_nearest_form_is_one_that_the_machine_takes(opcode: str, near: str) -> None:
    found = nearest(opcode)
    assert found == near
    assert not found or find(found) is not None


# -- a real kernel ----------------------------------------------------------------


def gemm_launch(m: int, n: int, k: int) -> tuple[str, Launch]:
    """PTX and launch of a block-scaled product, its parameters as bytes."""
    rng = np.random.default_rng([m, n, k])
    a, b = (fp4ref.quantize(rng.standard_normal((x, k), "f4")) for x in (m, n))
    config = fp4ref.GemmConfig()
    machine = Machine(2)
    problem = GemmProblem(machine, a, b, None, None, config)
    want = fp4ref.oracle.expected(a, b, config=config).d
    gmem, buffers = machine.gmem, {}
    for name, at, nbytes in gmem.allocations:
        start = at - gmem.base
        kept = gmem.written[start : start + nbytes].all()
        data = gmem.data[start : start + nbytes].copy() if kept else None
        is_d = nbytes == want.nbytes and not kept
        u8 = np.dtype("u1")
        buffers[name] = Buffer(
            name, nbytes, want.dtype if is_d else u8, want.shape if is_d else (nbytes,),
            data, None, want if is_d else None,
        )  # fmt: skip
    dims, _ = problem.grid_dims(None)
    block = parameter_block(problem.params, problem.plan.fields)
    return kernel_code(config).ptx, Launch(
        grid=dims,
        block=(problem.plan.threads, 1, 1),
        params=(Param(Struct(block)),),
        buffers=buffers,
        entry=ENTRY,
        smem_nbytes=problem.plan.smem.end,
        sms=2,
    )


def test_a_kernel_of_500_lines_is_clean_in_every_run() -> None:
    text, launch = gemm_launch(256, 256, 512)
    assert len(text.splitlines()) > 500
    assert sum(b.expected is not None for b in launch.buffers.values()) == 1
    found = check(text, launch)
    assert found.status == "clean", found.report()
    assert len([run for run in found.runs if not run.same_as]) >= 4


def test_a_wrong_argument_is_refused_by_name() -> None:
    case = VARIANTS["votes"]
    text, launch = case.text(), case.launch()
    for bad, name in (
        ({"schedules": ("soon",)}, "schedules"),
        ({"schedules": ()}, "schedules"),
        ({"orderings": ("c++",)}, "orderings"),
        ({"steps": 0}, "steps"),
        ({"seconds": float("nan")}, "seconds"),
    ):
        with pytest.raises(InputError, match=name):
            check(text, launch, **bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="kernel is int"):
        check(5, launch)
    with pytest.raises(InputError, match="launch is float"):
        check(text, 1.5)  # type: ignore[arg-type]
