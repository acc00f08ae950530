"""operands: nibbles, and rows of B that a pair of CTAs shares out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Change, Mistake
from fp4ref.evidence.triage.mistakes import sides
from fp4ref.evidence.triage.reading import I64, Map, Reading
from fp4ref.numerics.elements import element

TILES_N: Final = (64, 128, 192, 256)


def _other_nibble(row: I64, k: I64) -> tuple[I64, I64]:
    return row, k ^ 1


def _nibbles(case: Case) -> Iterator[tuple[str, Change]]:
    """In A and in B both, each product would still find its partner.

    So in one of two packed operands it is the same D as in the other.
    """
    packed = [
        name
        for name, q in (("A", case.a), ("B", case.b))
        if element(q.format).bits == 4
    ]
    for name, change in sides.of_codes("", _other_nibble, _other_nibble):
        if name in packed[:1]:
            yield " or ".join(packed), change


def _nibbles_of_d(case: Case) -> Iterator[tuple[str, Change]]:
    if case.format == "nvfp4" and case.n % 2 == 0:
        yield "", lambda r: replace(r, d_maps=(*r.d_maps, _other_nibble))


def _half(tile: int, takes: str, rows: int) -> Map:
    """Return which row of B is read: that of the other half of its tile."""
    half = tile // 2

    def half_of(n: I64, k: I64) -> tuple[I64, I64]:
        late = n % tile >= half
        first = np.where(late, n - half, n) if takes != "second" else n
        second = np.where(late, n, n + half) if takes != "first" else n
        found = second if takes == "second" else first
        if takes == "each the other's":
            found = np.where(late, n - half, n + half)
        return np.where(found < rows, found, -1), k

    return half_of


def _halves(case: Case) -> Iterator[tuple[str, Change]]:
    for tile in TILES_N:
        if case.n <= tile // 2:
            continue
        for takes in ("first", "second", "each the other's"):
            half = _half(tile, takes, case.n)
            read = "half" if takes.startswith("each") else "half twice"
            words = f"{takes} {read}, tiles of {tile}"
            yield f"B: {words}", _of_b(half, codes=True)
            yield f"SFB: {words}", _of_b(half, scales=True)
            yield f"B and SFB: {words}", _of_b(half, codes=True, scales=True)


def _of_b(half: Map, codes: bool = False, scales: bool = False) -> Change:
    def change(reading: Reading) -> Reading:
        b = reading.b.with_codes(half) if codes else reading.b
        return replace(reading, b=b.with_scales(half) if scales else b)

    return change


OPERANDS = (
    Mistake(
        "half of B",
        "Half of a tile of B, or of its scales, stands where the other half belongs.",
        "With cta_group::2 each CTA of a pair loads half of the N tile; one used its "
        "own half, or its peer's, for both. With N = 64 the scales of an odd tile "
        "start two columns of TMEM later.",
        "the coordinate along N of B's tensor copy, %cluster_ctarank, and the column "
        "of SFB in TMEM [CUTLASS: sm100_blockscaled_umma, SFB tile of N = 64 and 192]",
        _halves,
    ),
    Mistake(
        "nibbles swapped",
        "The two elements of each byte are read in the wrong order.",
        "The element of even k is in the low nibble [PTX: e2m1x2]; the packing, or a "
        "checkpoint, has the high one first. In A and B both it does not show.",
        "the packing on the host; BlockScaled.from_packed(nibble_order=...)",
        _nibbles,
    ),
    Mistake(
        "nibbles of D swapped",
        "The two elements of each byte of D are stored in the wrong order.",
        "cvt.rn.satfinite.e2m1x2.f32 d, a, b puts b into the low nibble [PTX: cvt].",
        "the order of the two sources of cvt in the epilogue",
        _nibbles_of_d,
    ),
)
