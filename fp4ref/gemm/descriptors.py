"""Part 3. descriptors: matrix descriptors of a stage, and the steps of its K blocks."""

from __future__ import annotations

from functools import cache

from fp4ref.gemm.config import TILE_K
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05 import CP_NBYTES, MMA_K
from fp4ref.layout import SwizzleMode

K_BLOCKS = TILE_K // MMA_K

SF_COLUMNS = 4
"""TMEM columns of the scales of 128 rows and one K=64 block."""

OPERAND_SWIZZLE = SwizzleMode.B128
"""Of A and B: a row of a stage is the 128 bytes of its span."""

K_BLOCK_STEP = MMA_K // 2 >> 4
"""Added to an operand descriptor for each K=64 block: 32 bytes."""

SF_BLOCK_STEP = CP_NBYTES >> 4
"""Added to a scale descriptor for each K=64 block: 512 bytes."""


@cache
def operand_descriptor(address: int) -> int:
    """Matrix descriptor of an A or B stage: K-major, 128-byte swizzle.

    The leading offset has no meaning here; CUTLASS writes 1 (16 bytes).
    """
    return SmemDescriptor(address, 16, 1024, OPERAND_SWIZZLE).encode()


@cache
def scale_descriptor(address: int) -> int:
    """Matrix descriptor of a scale atom for ``tcgen05.cp``: rows of 16 bytes."""
    return SmemDescriptor(address, 16, 128, SwizzleMode.NONE).encode()
