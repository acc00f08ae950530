"""instruction: one MMA at the speed of vectors or BLAS, as the machine calls it.

The bits are those of `dot.mma_block_scaled`, as `tiers` proves, of
`dot_unscaled.matmul_unscaled` and of `dot_mxf8f6f4.matmul_mxf8f6f4`.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics import groups
from fp4ref.numerics.decoded_operands import decode_terms
from fp4ref.numerics.dot import mma_block_scaled as integer_mma
from fp4ref.numerics.dot_lanes import multiply_lanes
from fp4ref.numerics.dot_mxf8f6f4 import VEC_SIZE, scaled_terms
from fp4ref.numerics.elements import ElementFormat, ScaleFormat
from fp4ref.numerics.factors import Bools, Codes
from fp4ref.numerics.float32_step import PackedStep
from fp4ref.numerics.float32_step import add_step as add_step_float32
from fp4ref.numerics.formats import F32, NAN_BITS, U8, unpack_e2m1
from fp4ref.numerics.integer_models import BlockScaledModel
from fp4ref.numerics.one_step import add_step, is_lossless


def mma_block_scaled(
    a: U8,
    b: U8,
    sfa: U8,
    sfb: U8,
    c: F32 | None = None,
    *,
    scale_format: ScaleFormat,
    vec_size: int,
    overwrite_c: bool = False,
) -> F32:
    """Return ``A B^T + C`` as one K=64 instruction computes it.

    Parameters
    ----------
    a : (M, 64)
        E2M1 codes, one per byte; the caller has checked shapes and codes.
    b : (N, 64)
    sfa : (M, 64 / vec_size)
        Scale codes.
    sfb : (N, 64 / vec_size)
    c : (M, N), float32
        None stands for +0.
    overwrite_c
        Whether the result may take the place of `c`.

    Returns
    -------
    (M, N)
        See `dot.mma_decoded`.
    """
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        d = _start(a, b, c, overwrite_c)
        _by_groups(a, b, sfa, sfb, d, scale_format, vec_size, clean=c is None)
        return d
    model = BlockScaledModel(a, b, sfa, sfb, scale_format, vec_size)
    of_a, of_b = model.factors()
    if of_a.apart.any() or of_b.apart.any():
        kind = {"scale_format": scale_format, "vec_size": vec_size}
        return integer_mma(a, b, sfa, sfb, c, **kind)  # type: ignore[arg-type]
    lossless = c is None and is_lossless(of_a, of_b, model.fraction_bits)
    d = _start(a, b, c, overwrite_c)
    at = np.arange(len(a)), np.arange(len(b))
    add_step(model, of_a, of_b, at, 0, d, lossless)
    _set_nan(d, of_a.nan, of_b.nan)
    return d


def mma_unscaled(
    a: Codes,
    b: Codes,
    c: F32 | None,
    *,
    a_format: ElementFormat,
    b_format: ElementFormat,
) -> F32:
    """Return ``A B^T + C`` as an instruction of a kind without scales computes it.

    Parameters
    ----------
    a : (M, K)
        Codes; the caller has checked them, K and the formats.
    b : (N, K)
    c : (M, N), float32
        None stands for +0.
    """
    terms = decode_terms(a, a_format.element), decode_terms(b, b_format.element)
    return multiply_lanes(*terms, a_format.k_step, c)


def mma_mxf8f6f4(
    a: Codes,
    b: Codes,
    sfa: U8,
    sfb: U8,
    c: F32 | None,
    *,
    a_format: ElementFormat,
    b_format: ElementFormat,
) -> F32:
    """Return ``A B^T + C`` as an instruction of ``kind::mxf8f6f4`` computes it.

    Parameters
    ----------
    a : (M, 32)
        Codes; the caller has checked them and the formats.
    b : (N, 32)
    sfa : (M, 1)
        UE8M0 codes.
    sfb : (N, 1)
    c : (M, N), float32
        None stands for +0.
    """
    of_a = scaled_terms("a", a, sfa, a_format)
    of_b = scaled_terms("b", b, sfb, b_format)
    return multiply_lanes(of_a, of_b, VEC_SIZE, c)


def add_packed(step: PackedStep, d: F32, at: tuple[int, int], *, clean: bool) -> None:
    """Compute one K=64 instruction in place.

    Parameters
    ----------
    d
        C-contiguous float32; C, and then D, are the block of (M, N) that starts `at` a
        row and a column.
    clean
        C is +0, whatever is there.
    """
    from fp4ref.numerics import compiled

    block = d[at[0] : at[0] + len(step.a), at[1] : at[1] + len(step.b)]
    if clean:
        block[:] = 0
    left: Bools | None
    if not compiled.AVAILABLE:
        left = np.ones(len(step.a), np.bool_)
    elif (left := add_step_float32(step, d, at)) is None:
        return
    block[left] = mma_block_scaled(
        codes_of(step.a[left], negate=step.negate[0]),
        codes_of(step.b, negate=step.negate[1]),
        step.sfa[left],
        step.sfb,
        None if clean else block[left],
        scale_format=step.scale_format,
        vec_size=step.vec_size,
        overwrite_c=True,
    )


def codes_of(packed: U8, *, negate: bool) -> U8:
    """Return the E2M1 codes (rows, 2 n) of packed ones (rows, n).

    Parameters
    ----------
    negate
        Whether all signs change.
    """
    from fp4ref.numerics import compiled

    flip = 8 if negate else 0
    if compiled.AVAILABLE:
        from fp4ref.numerics import groups_jit

        codes: U8 = groups_jit.unpack(packed, flip)
        return codes
    return unpack_e2m1(packed) ^ np.uint8(flip)


def _start(a: U8, b: U8, c: F32 | None, overwrite_c: bool) -> F32:
    """Return what the instruction adds to: C or zeros."""
    if c is None:
        return np.zeros((len(a), len(b)), np.float32)
    return c if overwrite_c else c.copy()


def _by_groups(
    a: U8,
    b: U8,
    sfa: U8,
    sfb: U8,
    d: F32,
    scale_format: ScaleFormat,
    vec_size: int,
    *,
    clean: bool,
) -> None:
    """Do as `mma_block_scaled`, into D, on the calling thread: see `groups`."""
    from fp4ref.numerics import groups_jit

    numbers = groups.scale_numbers(scale_format)
    groups.add_instruction(a, b, sfa, sfb, vec_size, d, numbers, clean=clean)
    found = [groups_jit.any_nan(each, numbers.significand) for each in (sfa, sfb)]
    if any(found):
        nan = numbers.significand < 0
        _set_nan(d, np.any(nan[sfa], axis=1), np.any(nan[sfb], axis=1))


def _set_nan(d: F32, rows: Bools, columns: Bools) -> None:
    """Write NaN to the given rows and columns."""
    if rows.any() or columns.any():
        nan = np.array(NAN_BITS, np.uint32).view(np.float32)
        d[rows] = nan
        d[:, columns] = nan
