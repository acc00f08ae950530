"""search: which mistakes, alone or two at once, give what was dumped.

Readings go through the `Sieve` in rough arithmetic; what passes is computed bit for bit
on the sample. What a mistake explains in some tiles is taken away, and the search goes
on with the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Variant
from fp4ref.evidence.triage.mistakes import variants
from fp4ref.evidence.triage.overview import Band, Bool, tile_numbers
from fp4ref.evidence.triage.reading import Reading
from fp4ref.evidence.triage.score import ENOUGH, LEAST_BITS, Score, score
from fp4ref.evidence.triage.sieve import Sieve

ORDERS: Final = ("float32 order", "split-K order")
"""Mistakes that change the last bits only: the sieve cannot see them."""
_ROUNDS: Final = 3
_MOST: Final = 24
"""Readings that are computed bit for bit on the whole sample, in a round."""
_MOST_SMALL: Final = 400
"""Readings that are computed bit for bit on what the sieve looks at."""
_PASSES: Final = 0.7


@dataclass(frozen=True, eq=False)
class Found:
    """Mistakes at once, and what they explain together."""

    variants: tuple[Variant, ...]
    reading: Reading
    score: Score

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the mistakes."""
        return tuple(each.name for each in self.variants)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The best that a round found, and what cannot be told from it."""

    best: Found
    alike: tuple[Found, ...]
    tiles: frozenset[int] | None
    """None for all that differ and are in the dump: `differing`."""
    explained: int
    differing: int


def search(case: Case, found: Band) -> tuple[list[Explanation], int]:
    """Return explanations, and how many elements and scales stay without one."""
    every = list(variants(case))
    left = found.differs.copy()
    scales_left = 0 if found.sfd_differs is None else int(found.sfd_differs.sum())
    explanations: list[Explanation] = []
    for _ in range(_ROUNDS):
        if not left.any() and not scales_left:
            break
        got = _round(case, replace(found, differs=left), every)
        if got is None:
            break
        explanations.append(got)
        if got.tiles is None:
            return explanations, got.differing - got.explained
        left &= ~_in_tiles(case, found, got.tiles)
    return explanations, int(left.sum()) + scales_left


def _in_tiles(case: Case, found: Band, tiles: frozenset[int]) -> Bool:
    numbers = tile_numbers(found.rows, found.columns, case.n)
    return np.isin(numbers, list(tiles))


def _round(case: Case, found: Band, every: list[Variant]) -> Explanation | None:
    """Explain what is left, by one mistake or by two at once."""
    sieve = Sieve(case, _tile(case, found))
    right = case.right
    candidates = [(each,) for each in every]
    best = _best(case, found, sieve, _passing(sieve, right, candidates))
    if best is not None and best.tiles is None:
        return best
    visible = [each for each in every if each.name not in ORDERS]
    pairs = (
        pair
        for pair in combinations(visible, 2)
        if pair[0].name != pair[1].name and not _once(pair)
    )
    with_orders = _with_orders(sieve, right, every)
    passing = _passing(sieve, right, [*pairs]) + with_orders
    two = _best(case, found, sieve, passing)
    if best is None or (two is not None and two.explained > best.explained):
        return two
    return best


def _once(pair: tuple[Variant, ...]) -> bool:
    """Whether one of two is a form that is looked for alone only."""
    return any(each.where.endswith("once") for each in pair)


def _tile(case: Case, found: Band) -> Band:
    """Return the elements of the tile that has most to be explained."""
    weights = found.differs
    if not weights.any() and found.sfd_differs is not None:
        return found
    numbers = tile_numbers(found.rows, found.columns, case.n)
    best = np.bincount(numbers.ravel(), weights.ravel()).argmax()
    rows, columns = (numbers == best).any(axis=1), (numbers == best).any(axis=0)
    return found.sub(np.flatnonzero(rows), np.flatnonzero(columns))


def together(right: Reading, chosen: Iterable[Variant]) -> Reading:
    """Return the reading with some mistakes at once."""
    for each in chosen:
        right = each.change(right)
    return right


Candidate = tuple[tuple[Variant, ...], Reading]


def _passing(
    sieve: Sieve, right: Reading, chosen: Sequence[tuple[Variant, ...]]
) -> list[Candidate]:
    """Return what the sieve lets through, the best first."""
    readings = [together(right, each) for each in chosen]
    shares = sieve.shares(readings)
    best = np.argsort(-shares, kind="stable")
    return [(chosen[i], readings[i]) for i in best if shares[i] >= _PASSES]


def _with_orders(sieve: Sieve, right: Reading, every: list[Variant]) -> list[Candidate]:
    """Return what passes with sums in another order: last bits, unseen so far."""
    alone = [(each,) for each in every if each.name not in ORDERS]
    passing = _passing(sieve, right, alone)[: _MOST // 4]
    orders = [each for each in every if each.name in ORDERS]
    return [
        ((order, *chosen), together(right, (order, *chosen)))
        for chosen, _ in passing
        for order in orders
    ]


def _best(
    case: Case, found: Band, sieve: Sieve, chosen: list[Candidate]
) -> Explanation | None:
    """Compute candidates bit for bit; return the best, and what is like it."""
    results = []
    tried = 0
    for variants_, reading in chosen[:_MOST_SMALL]:
        near = _of_its_bits(case, sieve.band, reading)
        if near is None:
            continue
        results.append(Found(variants_, near, score(case, found, near)))
        tried += 1
        if tried == _MOST:
            break
    named = [each for each in results if _explained(each, found)]
    if not named:
        return None
    best = max(named, key=lambda each: _explained(each, found))
    most = _explained(best, found)
    whole = _explains_all(best.score, found)
    alike = tuple(
        each
        for each in named
        if each is not best
        and _explained(each, found) == most
        and _same(each.score, best.score, found)
    )
    differing = int((best.score if whole else found).differs.sum())
    if found.sfd_differs is not None:
        differing += int(found.sfd_differs.sum())
    return Explanation(
        best, alike, None if whole else best.score.tiles, most, differing
    )


def _of_its_bits(case: Case, few: Band, reading: Reading) -> Reading | None:
    """Return the reading, or a neighbour, that has the bits of a few elements."""
    if reading.order == "any" or reading.unwritten is not None:
        return reading
    for near in _neighbours(case, reading):
        got = score(case, few, near)
        hit, of = got.explained.sum(), got.differs.sum()
        if got.sfd_explained >= _PASSES * got.sfd_differing and hit >= _PASSES * of:
            return near
    return None


def _neighbours(case: Case, reading: Reading) -> Iterator[Reading]:
    """Yield a reading, and those with alpha one unit in the last place away."""
    yield reading
    if reading.alpha != case.right.alpha:
        for end in (-np.inf, np.inf):
            alpha = np.nextafter(np.float32(reading.alpha), np.float32(end))
            yield replace(reading, alpha=float(alpha))


def _explains_all(got: Score, found: Band) -> bool:
    """Whether a reading explains D and its scales, and says nothing against them."""
    return bool(
        got.bits >= LEAST_BITS
        and got.explained.sum() >= ENOUGH * got.differs.sum()
        and got.differs.sum() >= 0.5 * found.differs.sum()
        and got.sfd_explained >= ENOUGH * got.sfd_differing
        and got.contradicted.sum() <= (1 - ENOUGH) * max(got.count, 1)
    )


def _explained(each: Found, found: Band) -> int:
    """Return how many elements a result explains by the rules; 0 gives no name."""
    got = each.score
    if _explains_all(got, found):
        return got.count
    if got.bits < LEAST_BITS or each.reading.unwritten is not None:
        return 0
    if each.reading.d_maps or each.reading.sfd_maps or not got.tiles:
        return 0
    return got.in_tiles


def _same(one: Score, other: Score, found: Band) -> bool:
    """Whether two results say the same of all that differs."""
    return bool(np.array_equal(one.explained, other.explained)) and (
        one.sfd_explained == other.sfd_explained
    )
