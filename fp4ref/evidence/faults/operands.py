"""operands: A and B of the GEMM that has a mistake."""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.config import Operands
from fp4ref.numerics import ScaleFormat
from fp4ref.numerics.elements import BLOCKS, element
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.unscaled import Operand, Unscaled

SCALE_CODES = {ScaleFormat.UE4M3: (0x30, 0x48), ScaleFormat.UE8M0: (0x7C, 0x83)}
"""First and end of the scales near 1."""

CODES_END = 0x70
"""Below NaN and Inf of the formats of 8 bits."""


def operands(shape: tuple[int, int, int], asked: Operands) -> tuple[Operand, Operand]:
    """Return A and B whose every element and scale matters.

    Parameters
    ----------
    shape
        (M, N, K).
    asked
        Formats of at most 8 bits.
    """
    m, n, k = shape
    rng = np.random.default_rng(12)
    a = _operand(rng, m, k, asked.operand_format)
    return a, _operand(rng, n, k, asked.b_format or asked.operand_format)


def _operand(rng: np.random.Generator, rows: int, k: int, name: str) -> Operand:
    end = min(1 << element(name).bits, CODES_END)
    codes = rng.integers(0, end, (rows, k), np.uint8)
    if name not in BLOCKS:
        return Unscaled(codes, name)
    of = BLOCKS[name]
    scale_format = of.scale_formats[0]
    scales = rng.integers(
        *SCALE_CODES[scale_format], (rows, k // of.vec_size), np.uint8
    )
    return BlockScaled(codes, scales, name, scale_format)
