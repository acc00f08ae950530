"""element_types: what C, D, accumulators and auxiliary tensors may be made of.

The builder looks at widths alone: CUTLASS's ``sizeof_bits``, in global memory and, for
6-bit elements, which are unpacked to bytes, in shared memory.
"""

from __future__ import annotations

from fp4ref.numerics.elements import ELEMENTS

VOID = "void"
"""No tensor: CUTLASS's type of a C or D that is not there."""

INTEGER_BITS = {"s32": 32, "s8": 8}
OF_MATRIX = ("f32", "f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "s32", "s8")
"""Elements of C and D."""
OF_ACCUMULATOR = ("f32", "f16", "s32")
ONE_BIT = "b1"
"""``cutlass::uint1b_t``: an auxiliary matrix of whether an element was kept."""

COMPLEX = ("complex", "complex<f32>", "complex<float>", "cf32", "complex64")
"""Words for a complex element, which are refused by name."""


def bits(element: str) -> int:
    """Bits of an element in global memory; 0 for void, as CUTLASS has it."""
    if element == VOID:
        return 0
    if element == ONE_BIT:
        return 1
    return INTEGER_BITS.get(element) or ELEMENTS[element].bits


def smem_bits(element: str) -> int:
    """Bits of an element in shared memory: a 6-bit one takes a byte.

    Source: CUTLASS float_subbyte.h, ``get_unpacked_element_type``.
    """
    return 8 if bits(element) == 6 else bits(element)
