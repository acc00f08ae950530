"""dot: the block-scaled matrix product with the bits of the tcgen05 FP4 MMA.

One instruction multiplies 64 elements along K: four groups of 16 exact products,
each times its two scales, are added to C in one fused sum that keeps 35 bits below
the largest exponent and is truncated to float32 once. A longer product chains
instructions through the float32 accumulator. The arithmetic itself is in `dot_jit`,
which is compiled on the first call (and cached on disk).

NVIDIA does not document this arithmetic. The model is that of MMA-Sim (arXiv
2511.10909, package mmasim 2.1.1), whose authors tested it on B200; it has not been
measured here on a Blackwell card.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_instance
from fp4ref.errors import InputError
from fp4ref.numerics.decoded_operands import K_STEP, Operand, decode_a, decode_b
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import F32, require_float32


def mma_decoded(a: Operand, b: Operand, c: npt.ArrayLike | None = None) -> F32:
    """Multiply operands from `decode_a` and `decode_b`, and add C.

    For callers that use an operand more than once. Rows of the output go to threads
    when the product is large; the bits do not depend on their number.

    Parameters
    ----------
    c : (M, N), float32
        None stands for +0.

    Returns
    -------
    (M, N)
        Never -0. NaN is 0x7FFFFFFF; it comes from a NaN scale (of a zero block too)
        or a NaN in C. A result of 2^128 or more is Inf, an Inf in C stays.

    Raises
    ------
    InputError
        `c` is not float32 or has another shape, or K differs.
    """
    from fp4ref.numerics import compiled, dot_arrays, dot_jit

    for name, operand in (("a", a), ("b", b)):
        require_instance(operand, f"mma_decoded {name}", Operand, f"See decode_{name}")
    m, k = a.halves.shape
    n = b.halves.shape[1]
    if b.halves.shape[0] != k:
        raise InputError(
            f"mma a, b: K is {k} in A and {b.halves.shape[0]} in B; they must agree. "
            "Cut or pad one of them"
        )
    if c is None:
        d = np.zeros((m, n), np.float32)
    else:
        d = np.array(require_float32(c, "mma c"), order="C")
        if d.shape != (m, n):
            raise InputError(
                f"mma c: C has shape {d.shape}; need ({m}, {n}), one element for a row "
                "of A and row of B. Pass None for zero"
            )
    bits = d.view(np.uint32)
    if compiled.AVAILABLE:
        least = compiled.SERIAL_LIMIT // max(n * k, 1)
        compiled.in_pieces(dot_jit.chain_rows, m, least, a, b, bits)
    else:
        dot_arrays.chain_block_scaled(a, b, bits)
    return d


def mma_block_scaled(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sfa: npt.ArrayLike,
    sfb: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> F32:
    """Return ``A B^T + C`` as one K=64 instruction computes it.

    PTX: ``tcgen05.mma.kind::mxf4nvf4.block_scale`` with ``.scale_vec::4X`` (block 16)
    or ``::2X`` (block 32, then also ``kind::mxf4``).

    Parameters
    ----------
    a : (M, 64)
        E2M1 codes, one per byte.
    b : (N, 64)
    sfa : (M, 64 / vec_size)
        Scale codes.
    sfb : (N, 64 / vec_size)
    c : (M, N), float32
        None stands for +0 (the instruction's ``enable-input-d`` is false).

    Returns
    -------
    (M, N)
        See `mma_decoded`.

    Raises
    ------
    InputError
        A shape, a type, a code, or the pair of `scale_format` and `vec_size` is not
        legal.
    """
    shape = require_array(a, "mma_block_scaled a").shape
    if len(shape) != 2 or shape[1] != K_STEP:
        raise InputError(
            f"mma_block_scaled a: shape {shape}; one instruction takes (M, "
            f"{K_STEP}). Use matmul_block_scaled for a longer K"
        )
    return matmul_block_scaled(
        a, b, sfa, sfb, c, scale_format=scale_format, vec_size=vec_size
    )


def matmul_block_scaled(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sfa: npt.ArrayLike,
    sfb: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> F32:
    """Return ``A B^T + C`` as a chain of K=64 instructions computes it.

    Parameters
    ----------
    a : (M, K)
        E2M1 codes, one per byte; K is a multiple of `vec_size`.
    b : (N, K)
    sfa : (M, K / vec_size)
        Scale codes.
    sfb : (N, K / vec_size)
    c : (M, N), float32
        Enters the first instruction. None stands for +0.

    Returns
    -------
    (M, N)
        See `mma_decoded`.

    Raises
    ------
    InputError
        A shape, a type, a code, or the pair of `scale_format` and `vec_size` is not
        legal.
    """
    return mma_decoded(
        decode_a(a, sfa, scale_format=scale_format, vec_size=vec_size),
        decode_b(b, sfb, scale_format=scale_format, vec_size=vec_size),
        c,
    )
