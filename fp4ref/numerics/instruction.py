"""instruction: one block-scaled MMA at the speed of BLAS, as the machine calls it.

The bits are those of `dot.mma_block_scaled`; how they are proved is in `tiers`.
"""

from __future__ import annotations

import numpy as np

from fp4ref.numerics import groups
from fp4ref.numerics.dot import mma_block_scaled as integer_mma
from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.formats import F32, NAN_BITS, U8
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

    Returns
    -------
    (M, N)
        See `dot.mma_decoded`.
    """
    from fp4ref.numerics import compiled

    if compiled.AVAILABLE:
        return _by_groups(a, b, sfa, sfb, c, scale_format, vec_size)
    model = BlockScaledModel(a, b, sfa, sfb, scale_format, vec_size)
    of_a, of_b = model.factors()
    if of_a.apart.any() or of_b.apart.any():
        kind = {"scale_format": scale_format, "vec_size": vec_size}
        return integer_mma(a, b, sfa, sfb, c, **kind)  # type: ignore[arg-type]
    lossless = c is None and is_lossless(of_a, of_b, model.fraction_bits)
    d = np.zeros((len(a), len(b)), np.float32) if c is None else c.copy()
    at = np.arange(len(a)), np.arange(len(b))
    add_step(model, of_a, of_b, at, 0, d, lossless)
    _set_nan(d, of_a.nan, of_b.nan)
    return d


def _by_groups(
    a: U8,
    b: U8,
    sfa: U8,
    sfb: U8,
    c: F32 | None,
    scale_format: ScaleFormat,
    vec_size: int,
) -> F32:
    """Do as `mma_block_scaled` on the calling thread: see `groups`."""
    numbers = groups.scale_numbers(scale_format)
    d = np.zeros((len(a), len(b)), np.float32) if c is None else c.copy()
    groups.add_instruction(a, b, sfa, sfb, vec_size, d, numbers, clean=c is None)
    nan = numbers.significand < 0
    if nan[sfa].any() or nan[sfb].any():
        _set_nan(d, np.any(nan[sfa], axis=1), np.any(nan[sfb], axis=1))
    return d


def _set_nan(d: F32, rows: Bools, columns: Bools) -> None:
    """Write NaN to the given rows and columns."""
    if rows.any() or columns.any():
        nan = np.array(NAN_BITS, np.uint32).view(np.float32)
        d[rows] = nan
        d[:, columns] = nan
