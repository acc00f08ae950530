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

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_instance, require_integer
from fp4ref.errors import InputError
from fp4ref.numerics.formats import (
    F32,
    U8,
    ScaleFormat,
    decode_e2m1,
    require_codes,
    require_float32,
    require_scale_format,
)

GROUP: Final = 16  # products summed before scaling, also with 32-element scales
K_STEP: Final = 64  # K of one instruction

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]

_LEGAL_SCALES: Final = {
    (ScaleFormat.UE4M3, 16),
    (ScaleFormat.UE8M0, 16),
    (ScaleFormat.UE8M0, 32),
}
# Above this many multiplications the rows are shared out to threads; waking them
# costs more than one instruction of 128 x 128 x 64 takes.
_SERIAL_LIMIT: Final = 1 << 22


class Operand(NamedTuple):
    """A or B in integers, with one scale for every group of 16 elements.

    A keeps its rows, B is transposed: ``(M, K)`` and ``(K, N)`` for `halves`,
    ``(M, K / 16)`` and ``(K / 16, N)`` for the rest. All are C-contiguous.

    Attributes
    ----------
    halves
        Twice the value of each element.
    live
        Bit k of a group is set where its element k is not zero.
    significand
        Of the scale, times 8; -1 stands for NaN.
    exponent
        Of the scale.
    """

    halves: I8
    live: I64
    significand: I64
    exponent: I64


def _scale_table(scale_format: ScaleFormat) -> tuple[I64, I64]:
    """Return the significand in eighths, and the exponent, of all 256 codes."""
    code = np.arange(256)
    if scale_format is ScaleFormat.UE8M0:
        return np.where(code == 0xFF, -1, 8), code - 127
    field, mantissa = code >> 3 & 0xF, code & 7  # bit 7 is ignored
    significand = np.where(field == 0, mantissa, 8 + mantissa)
    exponent = np.maximum(field, 1) - 7
    return np.where(code & 0x7F == 0x7F, -1, significand), exponent


_E2M1_HALVES: Final = (2 * decode_e2m1(np.arange(16, dtype=np.uint8))).astype(np.int8)
_SCALE_TABLES: Final = {f: _scale_table(f) for f in ScaleFormat}


def decode_a(
    a: npt.ArrayLike,
    sfa: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    """Decode A for `mma_decoded`, padding K to whole instructions.

    The padding is code 0 with scale code 0: a zero term, whatever the format.

    Parameters
    ----------
    a : (M, K)
        E2M1 codes, one per byte.
    sfa : (M, K / vec_size)
        Scale codes.

    Raises
    ------
    InputError
        A shape, a code, or the pair of `scale_format` and `vec_size` is not legal.
    """
    return _decode_rows("a", a, sfa, scale_format, vec_size)


def decode_b(
    b: npt.ArrayLike,
    sfb: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    """Decode B for `mma_decoded`, padding K to whole instructions.

    Parameters
    ----------
    b : (N, K)
        E2M1 codes, one per byte.
    sfb : (N, K / vec_size)
        Scale codes.

    Raises
    ------
    InputError
        A shape, a code, or the pair of `scale_format` and `vec_size` is not legal.
    """
    rows = _decode_rows("b", b, sfb, scale_format, vec_size)
    return Operand(
        np.ascontiguousarray(rows.halves.T),
        np.ascontiguousarray(rows.live.T),
        np.ascontiguousarray(rows.significand.T),
        np.ascontiguousarray(rows.exponent.T),
    )


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
    from fp4ref.numerics import dot_jit

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
    parallel = m * n * k > _SERIAL_LIMIT
    chain = dot_jit.chain_parallel if parallel else dot_jit.chain_serial
    chain(a, b, d.view(np.uint32))
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


def _decode_rows(
    name: str,
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    scale_format: ScaleFormat,
    vec_size: int,
) -> Operand:
    data, scale_codes = _checked_operand(name, codes, scales, scale_format, vec_size)
    if pad := -data.shape[1] % K_STEP:
        data = np.pad(data, ((0, 0), (0, pad)))
        scale_codes = np.pad(scale_codes, ((0, 0), (0, pad // vec_size)))
    if vec_size != GROUP:
        scale_codes = np.repeat(scale_codes, vec_size // GROUP, axis=1)
    halves = np.take(_E2M1_HALVES, data)
    live = np.packbits(halves != 0, axis=1).view(np.uint16).astype(np.int64)
    significand, exponent = _SCALE_TABLES[scale_format]
    return Operand(
        halves, live, np.take(significand, scale_codes), np.take(exponent, scale_codes)
    )


def _checked_operand(
    name: str,
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    scale_format: ScaleFormat,
    vec_size: int,
) -> tuple[U8, U8]:
    require_scale_format(scale_format, "mma")
    vec_size = require_integer(vec_size, "mma vec_size")
    if (scale_format, vec_size) not in _LEGAL_SCALES:
        raise InputError(
            f"mma vec_size: {vec_size!r} with {scale_format.name} scales; "
            "kind::mxf4nvf4 takes UE4M3 with 16, UE8M0 with 16 or 32. "
            "Requantise to one of these"
        )
    data = require_codes(codes, f"mma {name}", highest=0xF)
    scale_codes = require_codes(scales, f"mma sf{name}")
    if data.ndim != 2 or data.shape[1] == 0 or data.shape[1] % vec_size:
        raise InputError(
            f"mma {name}: shape {data.shape}; need (rows, K) with K a positive "
            f"multiple of vec_size {vec_size}. Pad K with code 0 and scale code 0"
        )
    expected = (data.shape[0], data.shape[1] // vec_size)
    if scale_codes.shape != expected:
        raise InputError(
            f"mma sf{name}: shape {scale_codes.shape}; need {expected}, one scale "
            f"per {vec_size} elements of {name}. Undo the tiled scale layout first"
        )
    return data, scale_codes
