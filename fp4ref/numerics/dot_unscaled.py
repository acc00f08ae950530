"""dot_unscaled: the matrix product with the bits of the tcgen05 FP16 and FP8 MMAs.

One instruction multiplies 32 bytes along K: 8 elements of f32, of which it takes sign,
exponent and 10 mantissa bits (TF32), 16 of f16 or bf16, or 32 of the 8-bit and narrower
formats. All its products and C are added in one sum that keeps 25
bits below the largest exponent; each term is truncated on its own, the sum once more to
float32. A longer product chains instructions through the float32 accumulator. The
arithmetic itself is in `dot_unscaled_jit`.

NVIDIA does not document this arithmetic. The model is that of MMA-Sim (arXiv
2511.10909, package mmasim 2.1.1). Public vectors of a B200 for f16 and bf16, perhaps of
mma.sync, agree with it; it has not been measured here on a Blackwell card.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array
from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import Terms, decode_terms
from fp4ref.numerics.elements import ElementFormat, require_element_format
from fp4ref.numerics.formats import F32, require_float32


def matmul_unscaled(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    a_format: ElementFormat,
    b_format: ElementFormat,
) -> F32:
    """Return ``A B^T + C`` as a chain of instructions computes it.

    PTX: ``tcgen05.mma`` of ``kind::tf32``, ``kind::f16`` and ``kind::f8f6f4`` with
    float32 accumulators.

    Parameters
    ----------
    a : (M, K)
        One code per element, in its low bits; K is a multiple of the formats' `k_step`.
    b : (N, K)
    c : (M, N), float32
        Enters the first instruction. None stands for +0.

    Returns
    -------
    (M, N)
        Never -0. NaN is 0x7FFFFFFF; it comes from a NaN, from Inf times 0, and from
        infinite terms of both signs. A result of 2^128 or more is Inf.

    Raises
    ------
    InputError
        A shape, a type or a code is not legal, or the formats do not go together:
        f32, f16 and bf16 each with itself, narrower ones in any pair.
    """
    check_formats(a_format, b_format)
    rows_a = checked_codes("a", a, a_format)
    rows_b = checked_codes("b", b, b_format)
    return multiply_terms(
        decode_terms(rows_a, a_format.element),
        decode_terms(rows_b, b_format.element),
        a_format.k_step,
        c,
    )


def multiply_terms(a: Terms, b: Terms, k_step: int, c: npt.ArrayLike | None) -> F32:
    """Return ``A B^T + C`` of operands in integers, `k_step` elements at a time.

    Raises
    ------
    InputError
        K differs, or `c` is not float32 or has another shape.
    """
    from fp4ref.numerics import compiled, dot_arrays, dot_unscaled_jit

    (m, k), (n, k_of_b) = a.significand.shape, b.significand.shape
    if k != k_of_b:
        raise InputError(
            f"mma a, b: K is {k} in A and {k_of_b} in B; they must agree. "
            "Cut or pad one of them"
        )
    d = _start(c, (m, n))
    bits = d.view(np.uint32)
    if compiled.AVAILABLE:
        least = compiled.SERIAL_LIMIT // max(n * k, 1)
        compiled.in_pieces(dot_unscaled_jit.chain_rows, m, least, a, b, k_step, bits)
    else:
        dot_arrays.chain_unscaled(a, b, k_step, bits)
    return d


def check_formats(a_format: ElementFormat, b_format: ElementFormat) -> None:
    """Raise `InputError` for formats that no MMA takes together."""
    for name, element in (("a_format", a_format), ("b_format", b_format)):
        require_element_format(element, f"mma {name}")
    if a_format is not b_format and max(a_format.bits, b_format.bits) > 8:
        raise InputError(
            f"mma a_format, b_format: A is {a_format.name} and B {b_format.name}; "
            "kind::f16 and kind::tf32 take one format for both"
        )


def _start(c: npt.ArrayLike | None, shape: tuple[int, int]) -> F32:
    """Return a new D that holds C."""
    if c is None:
        return np.zeros(shape, np.float32)
    d = np.array(require_float32(c, "mma c"), order="C")
    if d.shape != shape:
        raise InputError(
            f"mma c: C has shape {d.shape}; need {shape}, one element for a row "
            "of A and row of B. Pass None for zero"
        )
    return d


def checked_codes(
    name: str, codes: npt.ArrayLike, element: ElementFormat
) -> npt.NDArray[np.integer]:
    """Return codes (rows, K) of whole instructions.

    Raises
    ------
    InputError
        The shape, the type or a code is not legal.
    """
    data = require_array(codes, f"mma {name}")
    if data.dtype.kind not in "iu":
        raise InputError(f"mma {name}: {data.dtype}; need codes as integers")
    if data.ndim != 2 or data.shape[1] == 0 or data.shape[1] % element.k_step:
        raise InputError(
            f"mma {name}: shape {data.shape}; need (rows, K) with K a positive "
            f"multiple of {element.k_step}. Pad K with code 0"
        )
    if data.size and not 0 <= int(data.min()) <= int(data.max()) < 1 << element.bits:
        raise InputError(
            f"mma {name}: codes from {data.min()} to {data.max()}; {element.name} "
            f"codes are 0 to {(1 << element.bits) - 1}"
        )
    return data
