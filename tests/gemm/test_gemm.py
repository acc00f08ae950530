"""The whole kernel on the emulated machine, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tiny_road
from raw_bits import assert_bits_equal, raw
from wide_operands import UE4M3, UE8M0, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig, ScaleFormat
from fp4ref.evidence.oracle import Expected, expected
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.numerics import dequantize_blocks, matmul_block_scaled, quantize_blocks

SIZES = (1, 127, 128, 129, 300)
DEPTHS = (32, 96, 384, 1056, 1536)
SCHEDULES = ("eager", "late", "seed")


@dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    batches: int | None = None
    scale_format: ScaleFormat = UE4M3
    sms: int = 2
    ordering: Any = "ptx"
    schedule: str = "eager"
    config: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [f"{self.m}x{self.n}x{self.k}", self.schedule, f"{self.sms}sm"]
        if self.batches:
            words.insert(1, f"L{self.batches}")
        words += [f"{k}={getattr(v, 'name', v)}" for k, v in self.config.items()]
        return ",".join(words)


# What a row turns on; every shape of the sweep takes the next one.
EPILOGUES: list[dict[str, Any]] = [
    {},
    {"d_format": "bf16", "c_format": "bf16", "beta": 0.5, "activation": "relu"},
    {"d_format": "nvfp4", "bias": True, "alpha": 0.37},
    {"d_format": "f16", "c_format": "f32", "beta": -1.75, "tile_n": 64},
    {"d_format": "nvfp4", "sfd_format": UE8M0, "norm_constant": 2.0, "tile_n": 64},
    {"c_format": "f16", "beta": 3.0, "bias": True, "activation": "gelu"},
    {"d_format": "nvfp4", "c_format": "f32", "beta": 1.0, "norm_constant": 0.3},
    {"d_format": "bf16", "activation": "silu", "bias": True, "tile_n": 64},
    {"bias": True, "alpha": 0.0137},
    {"alpha": 0.0137, "c_format": "f32", "beta": 1.3, "tile_n": 64},
    {"alpha": -0.0137, "bias": True, "c_format": "bf16", "beta": 0.7},
]
MACHINES: list[dict[str, Any]] = [
    {"sms": 1},
    {"sms": 2, "config": {"scheduler": "static"}},
    {"sms": 3, "config": {"raster": "n"}},
    {"sms": 4, "config": {"stages": 2}},
    {"sms": 2, "config": {"scheduler": "static", "raster": "n", "stages": 3}},
    {"sms": 1, "config": {"accumulator_stages": 1, "clc_stages": 1}},
    {"sms": 3, "config": {"d_stages": 1, "c_stages": 1}},
]


def sweep() -> Iterator[Case]:
    """Every M and N with every schedule; the other settings take turns."""
    depths, epilogues = itertools.cycle(DEPTHS), itertools.cycle(EPILOGUES)
    machines = itertools.cycle(MACHINES)
    for (m, n), schedule in itertools.product(
        itertools.product(SIZES, SIZES), SCHEDULES
    ):
        machine = dict(next(machines))
        config = next(epilogues) | machine.pop("config", {})
        k = next(depths)
        scale_format = UE8M0 if (m + n + k) % 3 == 0 else UE4M3
        yield Case(
            m,
            n,
            k,
            scale_format=scale_format,
            schedule=schedule,
            config=config,
            **machine,
        )


EXTRA = [
    Case(129, 65, 288, 3, sms=4, schedule="late", config={"tile_n": 64}),
    Case(
        200,
        130,
        96,
        2,
        sms=3,
        schedule="seed",
        config={"d_format": "nvfp4", "c_format": "bf16", "beta": 2.0, "bias": True},
    ),
    Case(64, 64, 64, 5, schedule="seed", config={"raster": "n", "d_format": "bf16"}),
    Case(
        130,
        260,
        512,
        ordering="shipped",
        schedule="seed",
        config={"scale_buffers": 1, "accumulator_stages": 3},
    ),
    Case(
        257,
        129,
        768,
        ordering="shipped",
        schedule="late",
        config={"scale_buffers": 1, "tile_n": 64, "d_format": "nvfp4"},
    ),
    Case(
        33,
        31,
        2080,
        schedule="late",
        config={"stages": 4, "d_format": "nvfp4", "activation": "gelu"},
    ),
    Case(
        31,
        17,
        544,
        scale_format=UE8M0,
        schedule="seed",
        config={"d_format": "nvfp4", "sfd_format": UE8M0, "norm_constant": 64.0},
    ),
    Case(128, 384, 256),
]
CASES = [*sweep(), *EXTRA]


@dataclass(frozen=True)
class Problem:
    """Operands of a case, and the D and SFD that the oracle demands."""

    case: Case
    a: BlockScaled
    b: BlockScaled
    c: Any
    bias: Any
    config: GemmConfig
    wanted: Expected

    @classmethod
    def of(cls, case: Case, seed: int = 0) -> Problem:
        config = GemmConfig(**case.config)
        a, b = wide_pair(
            seed, case.m, case.n, case.k, case.batches, scale_format=case.scale_format
        )
        lead = () if case.batches is None else (case.batches,)
        shape = (*lead, case.m, case.n)
        c = wide_c(seed, shape, config.c_format) if config.c_format else None
        bias = wide_bias(seed, case.n) if config.bias else None
        wanted = expected(a, b, c, bias, config)
        return cls(case, a, b, c, bias, config, wanted)

    def run(self, seed: int, **options: Any) -> fp4ref.Run:
        """Run it; `seed` serves the cases with a seeded schedule."""
        case = self.case
        defaults = {
            "schedule": seed if case.schedule == "seed" else case.schedule,
            "ordering": case.ordering,
            "sms": case.sms,
            "trace": False,
        }
        return fp4ref.run(
            self.a,
            self.b,
            self.c,
            bias=self.bias,
            config=self.config,
            **defaults | options,
        )

    def check(self, seed: int, **options: Any) -> None:
        """Run it and compare every bit."""
        run = self.run(seed, **options)
        assert run.written.all()
        assert_bits_equal(run.d, self.wanted.d)
        assert (run.sfd is None) == (self.wanted.sfd is None)
        if run.sfd is not None and self.wanted.sfd is not None:
            assert_bits_equal(run.sfd, self.wanted.sfd)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_d_and_sfd_equal_the_oracle_bit_for_bit(case: Case, rotating_seed: int) -> None:
    Problem.of(case).check(rotating_seed)


def test_the_cases_cover_every_setting() -> None:
    assert len(CASES) >= 60
    assert {(c.m, c.n) for c in CASES} >= set(itertools.product(SIZES, SIZES))
    assert {c.k for c in CASES} >= set(DEPTHS)
    assert {c.sms for c in CASES} == {1, 2, 3, 4}
    configs = [GemmConfig(**c.config) for c in CASES]
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
        assert {getattr(c, name) for c in configs} == values, name


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
        "shipped" if scale_buffers == 1 else draw("ptx", "shipped"),
        draw("eager", "late", "seed"),
        config,
    )


@pytest.mark.parametrize("junk", [0x00, 0x7F, 0xFF], ids=hex)
@pytest.mark.parametrize("case", [SMALL[1], SMALL[2], CASES[40]], ids=str)
def test_what_memory_held_before_the_launch_does_not_matter(
    case: Case, junk: int, rotating_seed: int
) -> None:
    p = Problem.of(case)
    machine = Machine(case.sms, make_schedule(rotating_seed), case.ordering)
    problem = GemmProblem(machine, p.a, p.b, p.c, p.bias, p.config)
    memories = [machine.gmem]
    memories += [m for sm in machine.sms for m in (sm.smem, sm.tmem)]
    for memory in memories:
        memory.data[~memory.written] = junk
    problem.launch()
    assert_bits_equal(problem.output().d.reshape(p.wanted.d.shape), p.wanted.d)


TINY = [
    Case(3, 5, 96),
    Case(20, 30, 64, config={"bias": True, "alpha": 0.000137}),
    Case(20, 30, 64, config={"alpha": 0.0137, "c_format": "f32", "beta": 1.3}),
    Case(130, 66, 320, scale_format=UE8M0, config={"tile_n": 64}),
    Case(5, 40, 192, config={"d_format": "bf16", "c_format": "f32", "beta": -0.75}),
    Case(
        9,
        33,
        288,
        config={
            "d_format": "f16",
            "alpha": 0.001,
            "bias": True,
            "activation": "relu",
            "c_format": "f16",
            "beta": 0.5,
        },
    ),
]


@pytest.mark.parametrize("case", TINY, ids=str)
def test_sampled_elements_equal_exact_rationals(case: Case, rotating_seed: int) -> None:
    problem = Problem.of(case, rotating_seed)
    run = problem.run(rotating_seed)
    rng = np.random.default_rng(rotating_seed)
    corners = [(0, 0), (case.m - 1, case.n - 1), (case.m - 1, 0)]
    drawn = zip(
        rng.integers(case.m, size=40), rng.integers(case.n, size=40), strict=True
    )
    for i, j in [*corners, *((int(x), int(y)) for x, y in drawn)]:
        z = tiny_element(problem, i, j)
        if problem.config.d_format == "bf16":
            z = tiny_road.narrow(z, 8, 7)
        elif problem.config.d_format == "f16":
            z = tiny_road.narrow(z, 5, 10)
        assert int(raw(run.d)[i, j]) == z, f"D[{i}, {j}] is {raw(run.d)[i, j]:#x}"


@pytest.mark.parametrize("sfd_format", [UE4M3, UE8M0])
@pytest.mark.parametrize("norm", [1.0, 2.0, 0.3])
def test_sampled_blocks_of_nvfp4_equal_exact_rationals(
    sfd_format: ScaleFormat, norm: float, rotating_seed: int
) -> None:
    config = {
        "d_format": "nvfp4",
        "sfd_format": sfd_format,
        "norm_constant": norm,
        "c_format": "f32",
        "beta": 1.0,
        "alpha": 2.0**-9,
    }
    case = Case(20, 90, 160, config=config)
    problem = Problem.of(case, rotating_seed)
    run = problem.run(rotating_seed)
    assert run.sfd is not None
    rows = np.random.default_rng(rotating_seed).choice(case.m - 1, 4, replace=False)
    for i, block in itertools.product(map(int, [*rows, case.m - 1]), (0, 2, 5)):
        columns = range(16 * block, min(16 * block + 16, case.n))
        z = [tiny_element(problem, i, j) for j in columns]
        codes, scale = tiny_road.quantise(
            [*z, *[0] * (16 - len(z))], bits(norm), sfd_format is UE8M0
        )
        assert int(run.sfd[i, block]) == scale, f"SFD[{i}, {block}]"
        assert run.d[i, columns.start : columns.stop].tolist() == codes[: len(z)]


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def tiny_element(p: Problem, i: int, j: int) -> int:
    """Bits of D[i, j] before it is narrowed."""
    config = p.config
    acc = tiny_road.accumulate(
        p.a.codes[i].tolist(),
        p.b.codes[j].tolist(),
        p.a.scales[i].tolist(),
        p.b.scales[j].tolist(),
        p.a.scale_format is UE8M0,
    )
    return tiny_road.finish(
        acc,
        bits(1.0 if config.alpha is None else config.alpha),
        0 if p.c is None else bits(float(p.c[i, j])),
        bits(config.beta),
        None if p.bias is None else bits(float(p.bias[j])),
        config.activation == "relu",
    )


class TestTheDataTellARightAccumulatorFromAWrongOne:
    """Each wrong model must differ from the run on the operands used above."""

    case = Case(129, 129, 384)

    @pytest.fixture(scope="class")
    @classmethod
    def operands(cls) -> tuple[BlockScaled, BlockScaled]:
        return wide_pair(0, 129, 129, 384)

    @pytest.fixture(scope="class")
    @classmethod
    def right(cls) -> np.ndarray[Any, Any]:
        return Problem.of(cls.case).run(0).d

    @staticmethod
    def share_different(wrong: Any, right: Any) -> float:
        finite = ~np.isnan(right)
        assert finite.mean() > 0.9
        return float((raw(wrong) != raw(right))[finite].mean())

    def test_float32_blas(self, operands: Any, right: Any) -> None:
        x, y = (q.dequantize() for q in operands)
        with np.errstate(invalid="ignore"):
            assert self.share_different(x @ y.T, right) > 0.5

    def test_nearest_instead_of_truncation(self, operands: Any, right: Any) -> None:
        wrong = chained(*operands, lambda x: x.astype(np.float32))
        assert self.share_different(wrong, right) > 0.5

    def test_one_rounding_at_the_end(self, operands: Any, right: Any) -> None:
        x, y = (q.dequantize(np.float64) for q in operands)
        with np.errstate(invalid="ignore"):
            wrong = truncated(x @ y.T)
        assert self.share_different(wrong, right) > 0.3

    def test_no_alignment_to_the_largest_exponent(
        self, operands: Any, right: Any
    ) -> None:
        a, b = operands
        args = [q.tolist() for q in (a.codes[0], b.codes[0], a.scales[0], b.scales[0])]
        assert tiny_road.accumulate(*args, False, kept_bits=35) == int(raw(right)[0, 0])
        assert tiny_road.accumulate(*args, False, kept_bits=None) != raw(right)[0, 0]

    @pytest.mark.parametrize("side", [0, 1])
    def test_scales_of_two_k_blocks_exchanged(
        self, operands: Any, right: Any, side: int
    ) -> None:
        pair = list(operands)
        scales = pair[side].scales.copy()
        scales[:, :8] = np.roll(scales[:, :8], 4, axis=1)
        pair[side] = BlockScaled(pair[side].codes, scales)
        assert self.share_different(fp4ref.matmul(*pair), right) > 0.5

    @pytest.mark.parametrize("side", [0, 1])
    def test_nibbles_of_one_operand_swapped(
        self, operands: Any, right: Any, side: int
    ) -> None:
        pair = list(operands)
        codes = pair[side].codes.reshape(129, -1, 2)[..., ::-1].reshape(129, -1)
        pair[side] = BlockScaled(codes, pair[side].scales)
        assert self.share_different(fp4ref.matmul(*pair), right) > 0.5

    def test_scales_of_a_and_b_exchanged(self, operands: Any, right: Any) -> None:
        a, b = operands
        a, b = BlockScaled(a.codes, b.scales), BlockScaled(b.codes, a.scales)
        assert self.share_different(fp4ref.matmul(a, b), right) > 0.5

    def test_the_first_instruction_adding_to_old_memory(
        self, operands: Any, right: Any
    ) -> None:
        a, b = operands
        wrong = matmul_block_scaled(
            a.codes,
            b.codes,
            a.scales,
            b.scales,
            np.full((129, 129), 1.0, np.float32),
            scale_format=UE4M3,
            vec_size=16,
        )
        assert self.share_different(wrong, right) > 0.3

    def test_a_float64_chain_that_truncates_is_right_almost_everywhere(
        self, operands: Any, right: Any
    ) -> None:
        wrong = chained(*operands, truncated)
        assert 0 < self.share_different(wrong, right) < 0.3


def chained(a: BlockScaled, b: BlockScaled, rounding: Any) -> Any:
    """Add exact K=64 products, rounding after each."""
    x = dequantize_blocks(a.codes, a.scales, scale_format=UE4M3, dtype="float64")
    y = dequantize_blocks(b.codes, b.scales, scale_format=UE4M3, dtype="float64")
    d = np.zeros((len(x), len(y)), np.float32)
    with np.errstate(invalid="ignore"):
        for k in range(0, x.shape[1], 64):
            d = rounding(d.astype(np.float64) + x[:, k : k + 64] @ y[:, k : k + 64].T)
    return d


def truncated(x: Any) -> Any:
    """Round float64 toward zero to float32."""
    nearest = x.astype(np.float32)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(x)
    return np.where(too_far, np.nextafter(nearest, np.float32(0)), nearest)


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
    whole = fp4ref.matmul(a, b) + np.float32(0)
    mask = np.zeros((2, 300, 300), np.bool_)
    for m, n, batch in ((0, 1, 0), (2, 2, 1), (1, 0, 0)):
        mask[batch, 128 * m : 128 * m + 128, 128 * n : 128 * n + 128] = True
    assert (run.written == mask).all()
    assert_bits_equal(run.d, np.where(mask, whole, np.float32(0)))
    assert run.stats["cta"] + run.stats.get("clc.canceled", 0) == 3


def test_the_padding_of_sfd_is_zero() -> None:
    a, b = wide_pair(2, 130, 70, 64)
    config = GemmConfig(d_format="nvfp4")
    machine = Machine(1)
    problem = GemmProblem(machine, a, b, None, None, config)
    problem.launch()
    sfd = problem.output().sfd
    assert sfd is not None
    assert sfd.shape == (1, 2 * 2 * 512)
    known = machine.gmem.written[problem.sfd_address - machine.gmem.base :][:2048]
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


def test_the_known_example_of_two_global_scales() -> None:
    """B14: ones with G_A = 2 and G_B = 4 give 64 * 1 / (2 * 4)."""
    one = np.full((4, 64), 2, np.uint8), np.full((4, 4), 0x38, np.uint8)
    a, b = BlockScaled(*one, global_scale=2.0), BlockScaled(*one, global_scale=4.0)
    assert (fp4ref.run(a, b, trace=False).d == 8.0).all()


def test_the_known_example_of_growing_scales() -> None:
    """B38: scales 1 to 128 in both operands give 16 * sum(4^i)."""
    scales = np.tile(np.arange(0x38, 0x78, 8, dtype=np.uint8), (128, 1))
    ones = BlockScaled(np.full((128, 128), 2, np.uint8), scales)
    assert (fp4ref.run(ones, ones, trace=False).d == 349520.0).all()


@pytest.mark.parametrize("tile_n", [64, 128])
def test_every_row_of_b_gets_its_own_scale(tile_n: int) -> None:
    """B23: row j of B is 2^(j % 8), so a wrong TMEM column is a wrong power of two."""
    n = 384
    b_scales = np.repeat(0x38 + 8 * (np.arange(n) % 8), 4).reshape(n, 4)
    b = BlockScaled(np.full((n, 64), 2, np.uint8), b_scales.astype(np.uint8))
    a = BlockScaled(np.full((2, 64), 2, np.uint8), np.full((2, 4), 0x38, np.uint8))
    d = fp4ref.run(a, b, config=GemmConfig(tile_n=tile_n), trace=False).d
    assert (d == 64 * 2.0 ** (np.arange(n) % 8)).all()


def test_the_default_gemm_of_the_document_has_the_right_bits() -> None:
    """Example 72b's configuration on a small problem."""
    a, b = wide_pair(7, 256, 256, 512)
    c = wide_c(7, (256, 256), "f32")
    run = fp4ref.run(a, b, c, config=GemmConfig.example_72b(), trace=False)
    z = fp4ref.matmul(a, b) + np.float32(0)
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
