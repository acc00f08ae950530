"""triage: a wrong D beside its inputs: which usual mistake makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.evidence.triage.case import TILE, Case, make_case
from fp4ref.evidence.triage.mistake import Variant
from fp4ref.evidence.triage.mistakes import variants
from fp4ref.evidence.triage.overview import Band, overview, sample
from fp4ref.evidence.triage.pattern import pattern
from fp4ref.evidence.triage.predict import read
from fp4ref.evidence.triage.reading import I64, Reading, Side
from fp4ref.evidence.triage.report import Explained, Named, Triage
from fp4ref.evidence.triage.search import Explanation, Found, search
from fp4ref.gemm.config import GemmConfig
from fp4ref.layout import LaidOutScales, SwizzledScales
from fp4ref.tensors.block_scaled import BlockScaled

_ROWS = 16
"""Rows of A, and of B, on which it is tried whether a mistake would show."""
Scales = ArrayLike | SwizzledScales | LaidOutScales


def triage(
    a: BlockScaled,
    b: BlockScaled,
    d: NDArray[Any],
    *,
    sfd: Scales | None = None,
    c: NDArray[Any] | None = None,
    bias: NDArray[Any] | None = None,
    config: GemmConfig | None = None,
    alpha: float | None = None,
) -> Triage:
    """Compare D with what its inputs give, and name the mistake that explains it.

    All of D is compared if that is cheap, and bands of rows and columns of a large
    D. Each usual mistake, and each pair of them, is then tried on a sample of what
    differs, bit for bit.

    Parameters
    ----------
    a, b : (M, K), (N, K)
        As they should be: not as a wrong kernel has read them.
    d : (M, N)
        The dump, in its own type; of nvfp4 one code a byte. bfloat16 and FP8 also as
        their bits, with a `config`.
    sfd : (M, N / 16), or flat in the 128x4 layout
        Scales of an nvfp4 D.
    c : (M, N)
        With a `config` whose beta is not 0.
    bias : (N,)
    config
        Format of D, beta, activation, norm constant, splits. Without one the format is
        that of `d`, and the rest is the default.
    alpha
        None for 1 over the product of the global scales.

    Raises
    ------
    InputError
        An argument that cannot be used; says which and why.
    """
    case = make_case(a, b, d, sfd, c, bias, config, alpha)
    with np.errstate(all="ignore"):
        return _triage(case)


def _triage(case: Case) -> Triage:
    seen = overview(case)
    found = sample(case, seen)
    where = pattern(case, seen)
    explanations: list[Explanation] = []
    left = 0
    if where is not None:
        explanations, left = search(case, found)
    return Triage(
        shape=(case.m, case.n, case.k),
        format=case.format,
        compared=seen.seen,
        differing=seen.differing + seen.sfd_differing,
        whole=seen.whole,
        pattern=where,
        explanations=tuple(_in_words(case, each, found) for each in explanations),
        unexplained=left,
        unseen=_unseen(case, found),
    )


def _in_words(case: Case, each: Explanation, found: Band) -> Explained:
    scales = 0 if found.sfd_differs is None else found.sfd_differs.size
    return Explained(
        mistakes=tuple(_named(variant) for variant in each.best.variants),
        alike=_alike(each),
        explained=each.explained,
        differing=each.differing,
        sampled=found.differs.size + scales,
        tiles="all" if each.tiles is None else _tiles(case, each.tiles),
    )


def _named(variant: Variant) -> Named:
    of = variant.mistake
    return Named(of.name, variant.where, of.what, of.cause, of.look)


def _alike(each: Explanation) -> tuple[tuple[str, ...], ...]:
    """Return other mistakes that say the same, as names, and no name twice."""

    def said(found: Found) -> tuple[str, ...]:
        return tuple(variant.name for variant in found.variants)

    others = dict.fromkeys(said(one) for one in each.alike)
    others.pop(said(each.best), None)
    return tuple(others)


def _tiles(case: Case, tiles: frozenset[int]) -> str:
    across = -(-case.n // TILE)
    named = [f"({tile // across},{tile % across})" for tile in sorted(tiles)]
    more = f", and {len(named) - 6} more" if len(named) > 6 else ""
    return ", ".join(named[:6]) + more


def _unseen(case: Case, found: Band) -> tuple[str, ...]:
    """Return the mistakes that no form of which changes what is read on a sample."""
    rows, columns = found.rows[:_ROWS], found.columns[:_ROWS]
    shown: dict[str, bool] = {}
    for each in variants(case):
        if shown.get(each.name):
            continue
        reading = each.change(case.right)
        shown[each.name] = _shows(case, reading, rows, columns)
    return tuple(name for name, shows in shown.items() if not shows)


def _shows(case: Case, reading: Reading, rows: I64, columns: I64) -> bool:
    """Whether a reading takes other codes or scales, or is no matter of reading."""
    right = case.right
    operands = ((case.a, reading.a, rows), (case.b, reading.b, columns))
    if all(side == Side() for _, side, _ in operands):
        return True
    for q, side, lines in operands:
        if side == Side():
            continue
        was, now = read(q, Side(), lines), read(q, side, lines)
        if not np.array_equal(was.codes, now.codes):
            return True
        if not np.array_equal(was.scales, now.scales):
            return True
    return right.splits != reading.splits and case.format == "f32"
