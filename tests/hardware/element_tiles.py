"""element_tiles: where elements of A and B lie in `mma_tiles.MEMORY`, bit by bit."""

from __future__ import annotations

import numpy as np
from mma_tiles import MEMORY
from on_machine import TILE, xor_swizzle

from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode

NONE, B32, B64, B128, _ = SwizzleMode
BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}
TYPES = {"f16": 0, "bf16": 1, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
"""Codes of bits 7-9 and 10-12, from PTX's tables of the instruction descriptor."""
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
PAIRS = [(a, b) for a in NARROW for b in NARROW]
MEMORY_BITS = np.unpackbits(MEMORY, bitorder="little")


def chunk_address(row, k, slot, start, layout, mn_major):
    """Address of the 16 bytes that hold an element, and its number in them.

    Source: PTX, canonical layouts, as CuTe's comments on ``make_umma_desc`` have them.
    """
    swizzle, stride, leading = layout
    span = 16 << swizzle
    byte = (row if mn_major else k) * slot
    chunk, inside = byte // 16, byte % 16 // slot
    in_span, of_span = chunk % (span // 16), chunk // (span // 16)
    outer = k if mn_major else row
    at = start + outer % 8 * span + in_span * 16
    if mn_major and swizzle is NONE:
        at += of_span * stride + outer // 8 * leading
    else:
        at += of_span * leading + outer // 8 * stride
    return xor_swizzle(at, swizzle), inside


def element_codes(rows, name, start, layout, mn_major=False):
    """Codes (rows, K) of a tile in `MEMORY`; 16 narrow elements take 16 bytes."""
    bits = BITS[name]
    slot = max(bits, 8) // 8
    codes = np.zeros((rows, 32 // slot), np.int64)
    for row in range(rows):
        for k in range(32 // slot):
            at, inside = chunk_address(row, k, slot, start, layout, mn_major)
            first = (at - TILE) * 8 + inside * bits
            value = MEMORY_BITS[first : first + bits]
            codes[row, k] = int(value @ (1 << np.arange(bits)))
    return codes


def element_descriptor(start, layout):
    swizzle, stride, leading = layout
    return SmemDescriptor(start, leading, stride, swizzle).encode()


K_MAJOR = [
    (NONE, 256, 128),
    (NONE, 128, 4096),
    (B32, 256, 16),
    (B64, 512, 16),
    (B128, 1024, 16),
]
"""Swizzle, stride and leading-dimension bytes."""

MN_MAJOR = [
    (NONE, 128, 4096),
    (NONE, 1024, 128),
    (B32, 256, 1024),
    (B64, 512, 2048),
    (B64, 4096, 512),
    (B128, 4096, 1024),
    (B128, 1024, 4096),
]
