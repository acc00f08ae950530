"""score: a reading held against the dump, bit for bit, over the sample.

A value explains little where it is common: its weight is the logarithm of how rare it
is among what differs. So zeros and NaN give no name to anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.overview import Band, Bool, tile_numbers
from fp4ref.evidence.triage.predict import Output, exact, formula, output
from fp4ref.evidence.triage.reading import Reading
from fp4ref.evidence.triage.sieve import stored_d, stored_sfd

ENOUGH: Final = 0.99
"""Part of what differs that a mistake must explain to be named."""
_LEAST_OF_ANY_ORDER: Final = 256
LEAST_BITS: Final = 40.0
"""Of surprise: what chance would not give among thousands of readings."""


@dataclass(frozen=True, eq=False)
class Score:
    """What a reading explains.

    Attributes
    ----------
    differs : (rows, columns)
        Elements that differ and whose place is in the dump.
    explained, contradicted : (rows, columns)
        Elements that differ and are as it says; and that are right where it says
        something else.
    tiles
        Numbers of the tiles in which it explains all but a few.
    in_tiles
        Elements that it explains there.
    sfd_explained, sfd_differing
        Scales of D.
    bits
        Surprise of what is explained in these tiles.
    """

    differs: Bool
    explained: Bool
    contradicted: Bool
    tiles: frozenset[int]
    in_tiles: int
    sfd_explained: int
    sfd_differing: int
    bits: float
    output: Output

    @property
    def count(self) -> int:
        """Elements and scales of D that are explained."""
        return int(self.explained.sum()) + self.sfd_explained


def score(case: Case, found: Band, reading: Reading) -> Score:
    """Compute a reading on the sample and compare it with the dump."""
    rows, columns = found.rows, found.columns
    if reading.order == "any":
        return _any_order(case, found, reading)
    made = output(case, reading, rows, columns)
    seen, known = stored_d(case, reading, rows, columns)
    same = (made.d == seen) & known
    if reading.unwritten is not None:
        region = reading.unwritten(rows[:, None], columns[None])
        same = np.where(region, found.differs, same)
    differs = found.differs & known
    explained = differs & same
    contradicted = ~found.differs & ~same & known
    sfd_explained, sfd_differing, bits_of_scales = 0, 0, 0.0
    if found.sfd_differs is not None and made.sfd is not None:
        scales, there = stored_sfd(case, reading, rows, found.blocks)
        hit = found.sfd_differs & (made.sfd == scales) & there
        sfd_explained, sfd_differing = int(hit.sum()), int(found.sfd_differs.sum())
        wrong = ~found.sfd_differs & (made.sfd != scales) & there
        if wrong.sum() > 0.01 * max(sfd_differing, 1):
            sfd_explained = 0
        elif sfd_explained:
            bits_of_scales = _bits(scales[found.sfd_differs], scales[hit])
    tiles, taken = _tiles(
        case, replace(found, differs=differs), explained, contradicted
    )
    if reading.unwritten is not None:
        whole = explained.sum() >= ENOUGH * found.differs.sum()
        bits = float(explained.sum()) if whole else 0.0
    else:
        bits = _bits(seen[differs], seen[explained & taken])
    return Score(
        *(differs, explained, contradicted, tiles, int((explained & taken).sum())),
        *(sfd_explained, sfd_differing, bits + bits_of_scales, made),
    )


def _tiles(
    case: Case, found: Band, explained: Bool, contradicted: Bool
) -> tuple[frozenset[int], Bool]:
    """Return the tiles that a reading explains, and their elements."""
    numbers = tile_numbers(found.rows, found.columns, case.n).ravel()
    _, tile = np.unique(numbers, return_inverse=True)
    count = tile.max() + 1

    def sums(of: Bool) -> NDArray[np.float64]:
        return np.bincount(tile, of.ravel(), count).astype(np.float64)

    differs = sums(found.differs)
    good = (differs > 0) & (sums(explained) >= ENOUGH * differs)
    good &= sums(contradicted) <= (1 - ENOUGH) * differs
    named = frozenset(np.unique(numbers)[good].tolist())
    return named, good[tile].reshape(explained.shape)


def _bits(differing: NDArray[Any], hit: NDArray[Any]) -> float:
    """Return the surprise of values among all that differ."""
    if not hit.size:
        return 0.0
    values, counts = np.unique(differing, return_counts=True)
    rare = -np.log2(counts / differing.size)
    return float(rare[np.searchsorted(values, hit)].sum())


def _any_order(case: Case, found: Band, reading: Reading) -> Score:
    """Hold D against float64: it may be off by float32's rounding of partial sums.

    Their errors go with the norm of the products, and are as large where the sum itself
    is small. Noise or flipped bits of D itself are small there.
    """
    rows, columns = found.rows, found.columns
    made = output(case, replace(reading, order="mma"), rows, columns)
    nothing = np.zeros_like(found.differs)
    no = Score(nothing, nothing, nothing, frozenset(), 0, 0, 0, 0.0, made)
    if case.format != "f32" or case.config.epilogue.activation or reading.unwritten:
        return no
    seen, known = stored_d(case, reading, rows, columns)
    sums, norms = exact(case, reading, rows, columns)
    if not np.isfinite(sums).all() or not known.all() or not norms.all():
        return no
    alpha = np.float64(np.float32(reading.alpha))
    added = formula(case, reading, np.zeros_like(sums, np.float32), rows, columns)
    wanted = alpha * sums + added
    norms = abs(alpha) * norms
    values = seen.view(np.float32).astype(np.float64)
    mma = made.d.view(np.float32).astype(np.float64)
    slack = norms * np.sqrt(case.k) * 2.0**-21 + 2.0**-22 * np.abs(wanted)
    if not (np.abs(values - wanted) <= slack).all():
        return no
    error, size = (values - mma) / norms, np.abs(alpha * sums) / norms
    many = (error != 0).mean() >= 0.2 and error.size >= _LEAST_OF_ANY_ORDER
    small = size <= np.quantile(size, 0.2)
    if not many or _rms(error[small]) < 0.4 * _rms(error):
        return no
    tiles, _ = _tiles(case, found, found.differs, nothing)
    count = int(found.differs.sum())
    return Score(
        found.differs, found.differs, nothing, tiles, count, 0, 0, float(count), made
    )


def _rms(x: NDArray[np.float64]) -> float:
    return float(np.sqrt((x * x).mean()))
