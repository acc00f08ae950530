"""oracle: the epilogue against exact rationals, and the bound against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny_road
from raw_bits import raw
from wide_operands import UE4M3, UE8M0, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import BlockScaled, GemmConfig, ScaleFormat, matmul
from fp4ref.evidence.oracle import bound, expected
from fp4ref.numerics import groups, instruction, tiers


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


@pytest.mark.parametrize("d_format", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("c_format", [None, "f32", "bf16", "f16"])
@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_every_element_equals_exact_rationals(
    d_format: Any, c_format: Any, activation: Any, with_bias: bool, rotating_seed: int
) -> None:
    m, n = 5, 6
    a, b = wide_pair(rotating_seed, m, n, 128)
    config = GemmConfig.nvfp4(
        d_format=d_format,
        c_format=c_format,
        activation=activation,
        beta=-1.7 if c_format else 0.0,
        bias=with_bias,
    )
    c = wide_c(rotating_seed, (m, n), c_format) if c_format else None
    bias = wide_bias(rotating_seed, n) if with_bias else None
    d = raw(expected(a, b, c, bias, config, 0.0123).d)
    acc = raw(matmul(a, b))
    for i, j in np.ndindex(m, n):
        z = tiny_road.finish(
            int(acc[i, j]),
            bits(0.0123),
            0 if c is None else bits(float(c[i, j])),
            bits(config.epilogue.beta),
            None if bias is None else bits(float(bias[j])),
            activation == "relu",
        )
        if d_format != "f32":
            z = tiny_road.narrow(z, *((8, 7) if d_format == "bf16" else (5, 10)))
        assert int(d[i, j]) == z, (i, j)


@pytest.mark.parametrize("sfd_format", [UE4M3, UE8M0])
@pytest.mark.parametrize("n", [16, 20, 31])
def test_blocks_of_nvfp4_equal_exact_rationals(
    sfd_format: ScaleFormat, n: int, rotating_seed: int
) -> None:
    a, b = wide_pair(rotating_seed, 4, n, 64)
    config = GemmConfig.nvfp4(
        d_format="nvfp4", sfd_format=sfd_format, norm_constant=0.7
    )
    result = expected(a, b, config=config)
    assert result.sfd is not None
    assert result.d.shape == (4, n)
    assert result.sfd.shape == (4, -(-n // 16))
    z = raw(expected(a, b).d)
    for i in range(4):
        for block in range(result.sfd.shape[1]):
            row = z[i, 16 * block : 16 * block + 16].tolist()
            codes, scale = tiny_road.quantise(
                [*row, *[0] * (16 - len(row))], bits(0.7), sfd_format is UE8M0
            )
            assert int(result.sfd[i, block]) == scale
            assert (
                result.d[i, 16 * block : 16 * block + 16].tolist() == codes[: len(row)]
            )


@pytest.mark.parametrize("scale_format", [UE4M3, UE8M0])
@pytest.mark.parametrize("k", [32, 64, 384, 2048])
def test_the_bound_holds_on_wide_data(
    scale_format: ScaleFormat, k: int, rotating_seed: int
) -> None:
    for seed in range(rotating_seed, rotating_seed + 5):
        a, b = wide_pair(seed, 40, 50, k, scale_format=scale_format, specials=False)
        a, b = (tamed(q) for q in (a, b))
        assert bound(a, b, matmul(a, b)).holds


def tamed(q: BlockScaled) -> BlockScaled:
    """Keep UE8M0 scales where products stay finite in float32."""
    if q.scale_format is UE4M3:
        return q
    scales = np.clip(q.scales, 127 - 60, 127 + 50)
    return BlockScaled(q.codes, scales, scale_format=UE8M0)


def positive(m: int, k: int, scale: int, scale_format: ScaleFormat) -> BlockScaled:
    rng = np.random.default_rng([m, k])
    return BlockScaled(
        rng.integers(1, 8, (m, k), np.uint8),
        np.full((m, k // 16), scale, np.uint8),
        scale_format=scale_format,
    )


def nudged(d: Any, at: tuple[int, int], ulps: int) -> Any:
    """Move one element by some units in the last place, away from zero."""
    moved = d.copy()
    moved.view(np.uint32)[at] += ulps
    return moved


@pytest.mark.parametrize("k", [64, 256, 1024])
@pytest.mark.parametrize(
    ("scale", "scale_format"),
    [(0x38, UE4M3), (0x7E, UE4M3), (0x01, UE4M3), (127, UE8M0)],
)
def test_a_few_ulps_more_break_the_bound(
    k: int, scale: int, scale_format: ScaleFormat
) -> None:
    """Without cancellation the bound is one to two ulps for each instruction."""
    a, b = (positive(rows, k, scale, scale_format) for rows in (6, 7))
    d = matmul(a, b)
    assert bound(a, b, d).holds
    for at in np.ndindex(6, 7):
        assert not bound(a, b, nudged(d, at, 2 * (k // 64) + 2)).holds


def test_a_wrong_last_bit_of_a_subnormal_breaks_the_bound() -> None:
    a, b = (positive(rows, 64, 127 - 72, UE8M0) for rows in (3, 4))
    d = matmul(a, b)
    assert (np.abs(d) < 2.0**-126).all()
    assert (d > 0).all()
    assert bound(a, b, d).holds
    for at in np.ndindex(3, 4):
        assert not bound(a, b, nudged(d, at, 3)).holds


def test_a_column_of_zeros_must_be_zero() -> None:
    a, b = positive(3, 128, 0x38, UE4M3), positive(4, 128, 0x38, UE4M3)
    scales = b.scales.copy()
    scales[2] = 0
    b = BlockScaled(b.codes, scales)
    d = matmul(a, b)
    assert not d[:, 2].any()
    assert bound(a, b, d).holds
    wrong = d.copy()
    wrong[1, 2] = 1e-30
    assert not bound(a, b, wrong).holds


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_accumulator_that_is_not_finite_breaks_the_bound(value: float) -> None:
    a, b = positive(3, 64, 0x38, UE4M3), positive(4, 64, 0x38, UE4M3)
    d = matmul(a, b)
    d[1, 1] = value
    assert not bound(a, b, d).holds


def test_dropping_one_k_block_breaks_the_bound() -> None:
    a, b = wide_pair(3, 40, 50, 384, specials=False)
    short = matmul(*(BlockScaled(q.codes[:, :320], q.scales[:, :20]) for q in (a, b)))
    assert not bound(a, b, short).holds


def test_global_scales_do_not_count() -> None:
    a, b = wide_pair(3, 10, 10, 64, specials=False)
    scaled = BlockScaled(a.codes, a.scales, global_scale=7.0)
    assert bound(scaled, b, matmul(scaled, b)).holds


def test_minus_zero_becomes_plus_zero_without_c_too() -> None:
    a, b = wide_pair(3, 4, 5, 32, specials=False)
    zero = BlockScaled(a.codes * 0, a.scales)
    assert not raw(expected(zero, b, alpha=-1.0).d).any()


def test_it_does_not_multiply_as_the_machine_does(monkeypatch: Any) -> None:
    """A wrong sum in the machine's MMA is seen, compiled or by BLAS."""
    a, b = (fp4ref.quantize(np.ones((n, 64), np.float32)) for n in (20, 30))
    add_step, add_instruction = instruction.add_step, groups.add_instruction

    def one_more(model, of_a, of_b, at, k, d, lossless) -> None:
        add_step(model, of_a, of_b, at, k, d, lossless)
        d += np.float32(1)

    def one_more_in_groups(a, b, sfa, sfb, vec_size, c, numbers, clean) -> None:
        add_instruction(a, b, sfa, sfb, vec_size, c, numbers, clean)
        c += np.float32(1)

    in_float32 = instruction.add_step_float32

    def one_more_in_float32(step, d, at) -> Any:
        left = in_float32(step, d, at)
        d[at[0] :, at[1] :] += np.float32(1)
        return left

    assert np.array_equal(fp4ref.run(a, b).d, expected(a, b).d)
    monkeypatch.setattr(instruction, "add_step_float32", one_more_in_float32)
    for module in (instruction, tiers):
        monkeypatch.setattr(module, "add_step", one_more)
    monkeypatch.setattr(groups, "add_instruction", one_more_in_groups)
    assert not np.array_equal(fp4ref.run(a, b).d, expected(a, b).d)
