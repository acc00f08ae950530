"""The whole kernel on the emulated machine, bit for bit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from gemm_cases import DEPTHS, SHAPE_CASES, SIZES, Case, asked
from oracle_problem import Problem
from raw_bits import assert_bits_equal
from wide_operands import UE4M3, UE8M0, integer_product, wide_c, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.layout import SwizzledScales, padded_shape, swizzle_scales
from fp4ref.numerics import quantize_blocks


@pytest.mark.parametrize("case", SHAPE_CASES, ids=str)
def test_d_and_sfd_equal_the_oracle_bit_for_bit(case: Case, rotating_seed: int) -> None:
    Problem.of(case).check(rotating_seed)


def test_the_cases_cover_every_setting() -> None:
    assert len(SHAPE_CASES) >= 60
    assert {(c.m, c.n) for c in SHAPE_CASES} >= set(itertools.product(SIZES, SIZES))
    assert {c.k for c in SHAPE_CASES} >= set(DEPTHS)
    assert {c.sms for c in SHAPE_CASES} == {1, 2, 3, 4}
    configs = [asked(c.config)[0] for c in SHAPE_CASES]
    for name, values in {
        "d_format": {"f32", "bf16", "f16", "nvfp4"},
        "c_format": {None, "f32", "bf16", "f16"},
        "sfd_format": {UE4M3, UE8M0},
        "activation": {None, "relu", "gelu", "silu"},
        "scheduler": {"clc", "static"},
        "raster": {"m", "n"},
        "tile_n": {64, 128},
        "scale_buffers": {1, 2},
        "bias": {False, True},
        "stages": {None, 2, 3, 4},
    }.items():
        assert {c.asked(name) for c in configs} == values, name


SMALL = [
    Case(1, 127, 96, schedule="seed", config={"tile_n": 64}),
    Case(
        129,
        64,
        320,
        schedule="seed",
        config={
            "d_format": "nvfp4",
            "c_format": "f16",
            "beta": 1.5,
            "stages": 2,
            "tile_n": 64,
        },
    ),
    Case(
        96,
        40,
        544,
        2,
        schedule="seed",
        ordering="shipped",
        config={"scale_buffers": 1, "d_format": "bf16", "stages": 3, "d_stages": 1},
    ),
]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_two_hundred_seeds_give_the_same_bits(
    case: Case, block: int, rotating_seed: int
) -> None:
    problem = Problem.of(case)
    for seed in range(rotating_seed + 50 * block, rotating_seed + 50 * block + 50):
        print(f"schedule seed {seed}")
        problem.check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_thousands_of_seeds_give_the_same_bits(case: Case, rotating_seed: int) -> None:
    problem = Problem.of(case)
    for seed in range(rotating_seed, rotating_seed + 2000):
        print(f"schedule seed {seed}")
        problem.check(seed)


@pytest.mark.soak
def test_fuzzed_shapes_and_settings_equal_the_oracle(rotating_seed: int) -> None:
    rng = np.random.default_rng(rotating_seed)
    for number in range(1500):
        case = fuzzed(rng)
        print(f"case {number}: {case!r}")
        Problem.of(case, number).check(int(rng.integers(1 << 30)))


def test_a_few_fuzzed_shapes_equal_the_oracle(rotating_seed: int) -> None:
    rng = np.random.default_rng(rotating_seed)
    for number in range(25):
        case = fuzzed(rng)
        print(f"case {number}: {case!r}")
        Problem.of(case, number).check(int(rng.integers(1 << 30)))


def fuzzed(rng: np.random.Generator) -> Case:
    def draw(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    c_format = draw(None, "f32", "bf16", "f16")
    scale_buffers = draw(1, 2)
    config = {
        "tile_n": draw(64, 128),
        "d_format": draw("f32", "bf16", "f16", "nvfp4"),
        "sfd_format": draw(UE4M3, UE8M0),
        "norm_constant": float(2.0 ** rng.integers(-8, 9)),
        "c_format": c_format,
        "alpha": float(np.float32(rng.standard_normal())),
        "beta": float(np.float32(rng.standard_normal())) if c_format else 0.0,
        "bias": draw(False, True),
        "activation": draw(None, "relu", "gelu", "silu"),
        "scheduler": draw("clc", "static"),
        "raster": draw("m", "n"),
        "stages": draw(2, 3, None),
        "c_stages": draw(1, 2, 3),
        "d_stages": draw(1, 2, 3),
        "accumulator_stages": draw(1, 2),
        "clc_stages": draw(1, 2, 3),
        "scale_buffers": scale_buffers,
    }
    return Case(
        int(rng.integers(1, 280)),
        int(rng.integers(1, 280)),
        32 * int(rng.integers(1, 24)),
        draw(None, None, 1, 2),
        draw(UE4M3, UE8M0),
        draw(1, 2, 3, 4),
        ordering="shipped" if scale_buffers == 1 else draw("ptx", "shipped"),
        schedule=draw("eager", "late", "seed"),
        config=config,
    )


@pytest.mark.parametrize("junk", [0x00, 0x7F, 0xFF], ids=hex)
@pytest.mark.parametrize("case", [SMALL[1], SMALL[2], SHAPE_CASES[40]], ids=str)
def test_what_memory_held_before_the_launch_does_not_matter(
    case: Case, junk: int, rotating_seed: int
) -> None:
    p = Problem.of(case)
    machine = Machine(case.sms, make_schedule(rotating_seed), case.ordering)
    problem = GemmProblem(machine, p.a, p.b, p.c, p.bias, p.config, p.alpha)
    memories = [machine.gmem]
    memories += [m for sm in machine.sms for m in (sm.smem, sm.tmem)]
    for memory in memories:
        memory.data[~memory.written] = junk
    problem.launch()
    assert_bits_equal(problem.output().d.reshape(p.wanted.d.shape), p.wanted.d)


def test_batches_do_not_mix() -> None:
    a, b = wide_pair(3, 70, 50, 96, 3)
    d = fp4ref.run(a, b, trace=False).d
    assert d.shape == (3, 70, 50)
    for i in range(3):
        one = fp4ref.run(
            BlockScaled(a.codes[i], a.scales[i]),
            BlockScaled(b.codes[i], b.scales[i]),
            trace=False,
        )
        assert_bits_equal(d[i], one.d)


def test_a_subset_of_tiles_leaves_the_rest_unwritten() -> None:
    a, b = wide_pair(1, 300, 300, 96, 2)
    chosen = [(0, 1, 0), (2, 2, 1), (1, 0)]
    run = fp4ref.run(a, b, tiles=chosen, trace=False, sms=1)
    whole = integer_product(a, b) + np.float32(0)
    mask = np.zeros((2, 300, 300), np.bool_)
    for m, n, batch in ((0, 1, 0), (2, 2, 1), (1, 0, 0)):
        mask[batch, 128 * m : 128 * m + 128, 128 * n : 128 * n + 128] = True
    assert (run.written == mask).all()
    assert_bits_equal(run.d, np.where(mask, whole, np.float32(0)))
    assert run.stats["cta"] + run.stats.get("clc.canceled", 0) == 3


def test_the_padding_of_sfd_is_zero() -> None:
    a, b = wide_pair(2, 130, 70, 64)
    config = GemmConfig.nvfp4(d_format="nvfp4")
    machine = Machine(1)
    problem = GemmProblem(machine, a, b, None, None, config)
    problem.launch()
    sfd = problem.output().sfd
    assert sfd is not None
    assert sfd.shape == (1, 2 * 2 * 512)
    known = machine.gmem.written[problem.params.sfd - machine.gmem.base :][:2048]
    assert known.all()
    rows, columns = np.indices((256, 8))
    outside = (rows >= 130) | (columns >= 5)
    offsets = (
        rows % 32 * 16
        + rows % 128 // 32 * 4
        + columns % 4
        + columns // 4 * 512
        + rows // 128 * 1024
    )
    assert not sfd[0, offsets[outside]].any()
    assert sfd[0, offsets[~outside]].any()


def test_padding_k_with_zeros_changes_no_bit() -> None:
    a, b = wide_pair(5, 40, 30, 96)
    padded = [
        BlockScaled(
            np.pad(q.codes, ((0, 0), (0, 416))), np.pad(q.scales, ((0, 0), (0, 26)))
        )
        for q in (a, b)
    ]
    assert_bits_equal(
        fp4ref.run(a, b, trace=False).d, fp4ref.run(*padded, trace=False).d
    )


def test_b14_the_known_example_of_two_global_scales() -> None:
    """Ones with G_A = 2 and G_B = 4 give 64 * 1 / (2 * 4)."""
    one = np.full((4, 64), 2, np.uint8), np.full((4, 4), 0x38, np.uint8)
    a, b = BlockScaled(*one, global_scale=2.0), BlockScaled(*one, global_scale=4.0)
    assert (fp4ref.run(a, b, trace=False).d == 8.0).all()


@pytest.mark.parametrize("splits", [1, 2])
def test_b38_the_known_example_of_growing_scales(splits: int) -> None:
    """Scales 1 to 128 in both operands give 16 * sum(4^i).

    They start at k 256, where the second of two slices does; one that begins its scales
    anew gives 128.
    """
    codes = np.zeros((128, 512), np.uint8)
    codes[:, 256:384] = 2
    scales = np.full((128, 32), 0x38, np.uint8)
    scales[:, 16:24] = np.arange(0x38, 0x78, 8)
    ones = BlockScaled(codes, scales)
    config = GemmConfig.nvfp4(splits=splits)
    assert (fp4ref.run(ones, ones, config=config, trace=False).d == 349520.0).all()


@pytest.mark.parametrize("tile_n", [64, 128])
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_b23_every_row_of_b_gets_its_own_scale(backend: Any, tile_n: int) -> None:
    """No two of 384 rows have the same sum of scales: no shift by atom or column.

    The three digits of a row in base 8 are the fractions of scales about 1, 8 and 64.
    """
    n = np.arange(384)
    digits = [n % 8, n // 8 % 8, n // 64]
    starts = [0x38, 0x50, 0x68]
    columns = [start + digit for start, digit in zip(starts, digits, strict=True)]
    b_scales = np.stack([*columns, np.full(384, 0x38)], axis=1).astype(np.uint8)
    b = BlockScaled(np.full((384, 64), 2, np.uint8), b_scales)
    a = BlockScaled(np.full((2, 64), 2, np.uint8), np.full((2, 4), 0x38, np.uint8))
    config = GemmConfig.nvfp4(tile_n=tile_n)
    d = fp4ref.run(a, b, config=config, trace=False, backend=backend).d
    ones, eights, sixty_fours = digits
    want = 16 * (1 + ones / 8 + 8 + eights + 64 + 8 * sixty_fours + 1)
    assert len(set(want)) == 384
    assert (d == want).all()


@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_b19_scales_of_padding_rows_reach_no_row_of_d(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel reads atoms whose rows 20 to 127 are NaN.

    Not columns 6 and 7: they are of K, where 0 times NaN is NaN.
    """
    a, b = wide_pair(5, 20, 20, 96)
    want = fp4ref.run(a, b, trace=False, backend=backend)

    def poisoned(q: BlockScaled) -> SwizzledScales:
        rows, cols = q.scales.shape[-2:]
        padded = np.full(padded_shape(rows, cols), 0x7F, np.uint8)
        padded[:rows] = 0
        padded[:rows, :cols] = q.scales
        return SwizzledScales(swizzle_scales(padded), rows, cols)

    monkeypatch.setattr(BlockScaled, "swizzled_scales", poisoned)
    assert (a.swizzled_scales().data == 0x7F).sum() > 512
    found = fp4ref.run(a, b, trace=False, backend=backend)
    assert_bits_equal(found.d, want.d)


def test_the_default_gemm_of_the_document_has_the_right_bits() -> None:
    """Example 72b's configuration on a small problem."""
    a, b = wide_pair(7, 256, 256, 512)
    c = wide_c(7, (256, 256), "f32")
    run = fp4ref.run(a, b, c, config=GemmConfig.example_72b(), trace=False)
    z = integer_product(a, b) + np.float32(0)
    codes, scales = quantize_blocks(z, norm=2.0, scale_format=UE8M0)
    assert run.sfd is not None
    assert_bits_equal(run.d, codes)
    assert_bits_equal(run.sfd, scales)


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
def test_tracing_changes_nothing(schedule: str | int) -> None:
    problem = Problem.of(SMALL[1])
    runs = [problem.run(0, schedule=schedule, trace=t) for t in (False, True)]
    assert_bits_equal(runs[0].d, runs[1].d)
    assert runs[0].stats == runs[1].stats


@pytest.mark.parametrize("scheduler", ["clc", "static"])
def test_a_slot_is_fenced_between_its_reading_and_its_release(scheduler: Any) -> None:
    """TMA and CLC write C's stages and the answers again, through the other proxy."""
    case = Case(
        130, 70, 64, config={"c_format": "bf16", "beta": 1.0, "scheduler": scheduler}
    )
    trace = Problem.of(case).run(0, trace=True).trace
    assert trace is not None
    slots = 0
    for agent, sm in itertools.product((f"warp{i}" for i in range(8)), (0, 1)):
        unfenced = False
        for e in trace:
            if (e.agent, e.sm) != (agent, sm):
                continue
            if e.operation == "ld.shared" and e.operands["nbytes"] > 4:
                unfenced = True
                slots += 1
            elif e.operation.startswith("fence.proxy.async"):
                unfenced = False
            elif e.operation == "mbarrier.arrive":
                assert not unfenced, (agent, e.source)
    subtiles = 2 * 1 * 4 * 4
    answers = 0 if scheduler == "static" else 8 * 2
    assert slots == subtiles + answers


@pytest.mark.parametrize("schedule", ["late", 1, 2, 3])
def test_no_cta_leaves_before_its_stores_have_read(schedule: str | int) -> None:
    """Frame 7.11: the text does not say that shared memory outlives its CTA."""
    trace = Problem.of(Case(300, 130, 64)).run(0, trace=True, schedule=schedule).trace
    assert trace is not None
    for sm in range(2):
        mine = [e for e in trace if e.sm == sm]
        read = max(e.step for e in mine if e.agent == "tma.read")
        last = max((e for e in mine if e.agent == "warp4"), key=lambda e: e.step)
        assert last.operation == "cp.async.bulk.wait_group.read"
        assert last.operands["pending"] == 0
        assert last.step > read


@pytest.mark.parametrize("seed", range(12))
def test_c_is_loaded_after_the_first_prologue(seed: int) -> None:
    """The load-order barrier: C must not delay the first k-tiles."""
    case = Case(128, 64, 320, schedule="seed", sms=1, config={"c_format": "f32"})
    case.config.update(beta=1.0, tile_n=64, scheduler="static")
    trace = Problem.of(case).run(seed, trace=True).trace
    assert trace is not None
    loads = [
        e.operands["tensor"]
        for e in trace.select(operation="cp.async.bulk.tensor")
        if e.kind == "issue" and e.operation.endswith("load")
    ]
    first_c = loads.index("C")
    assert sorted(loads[:8]) == sorted(["A", "B", "SFA", "SFB"] * 2)
    assert first_c >= 8
