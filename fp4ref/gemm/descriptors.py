"""Part 3. descriptors: matrix descriptors of a stage, and the steps of its K blocks."""

from __future__ import annotations

from functools import cache

from fp4ref.hardware.operand_cells import ROW_NBYTES
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05 import CP_NBYTES
from fp4ref.layout import SwizzleMode

OPERAND_SWIZZLE = SwizzleMode.B128
"""Of A and B: a row of a stage is the 128 bytes of its span."""

K_BLOCKS = OPERAND_SWIZZLE.span // ROW_NBYTES

SF_COLUMNS = 4
"""TMEM columns of a scale atom: 128 rows and four scales."""

K_BLOCK_STEP = ROW_NBYTES >> 4
"""Added to an operand descriptor for each MMA along K: 32 bytes."""

SF_BLOCK_STEP = CP_NBYTES >> 4
"""Added to a scale descriptor for each scale atom: 512 bytes."""


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
