"""The operands of the cases tell a right accumulator from a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny_road
from gemm_cases import Case
from oracle_problem import Problem
from raw_bits import raw
from wide_operands import UE4M3, wide_pair

import fp4ref
from fp4ref import BlockScaled
from fp4ref.numerics import dequantize_blocks, matmul_block_scaled


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
