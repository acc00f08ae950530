"""patterns: accesses of a warp whose passes a card is asked for.

The writes and reads of every staging of document 003; strides that are known, from free
of conflicts to 32 ways; and random ones: scattered, within a few words, broadcast to
pairs and to more, with lanes, halves or quarters left out, and free of conflicts in one
way to split the warp and not in another.

`held_out` are of other kinds and another seed. The model was written before anybody
asked for them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fp4ref.lab.banks import LANES, WIDTHS
from fp4ref.lab.staging import STAGINGS
from fp4ref.trace import Bytes

SEED: Final = 20_261_129
HELD_OUT_SEED: Final = 20_261_130
SMEM_NBYTES: Final = 96 << 10
EACH: Final = 3
"""Random patterns of a kind and a width."""

_LEFT_OUT: Final = 0xFFFFFFFF
Units = list[int | None]
"""Offset of each lane, in units of its access; None for a lane left out."""

_Kind = Callable[[random.Random, int], Units]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One instruction of a warp.

    Attributes
    ----------
    stores
        Whether it is ``st.shared``, and not ``ld.shared``.
    width
        Bytes a lane.
    offsets
        Bytes from the start of shared memory by lane; None for a lane left out.
    """

    name: str
    stores: bool
    width: int
    offsets: tuple[int | None, ...]

    @property
    def entry(self) -> str:
        """Kernel of `banks.cu`."""
        return f"{'store' if self.stores else 'load'}_{self.width}"

    @property
    def buffer(self) -> Bytes:
        """Offsets as the kernel takes them."""
        at = [_LEFT_OUT if each is None else each for each in self.offsets]
        return np.array(at, np.uint32).view(np.uint8)


def _scattered(rng: random.Random, units: int) -> Units:
    return [rng.randrange(units) for _ in range(LANES)]


def _window(rng: random.Random, units: int) -> Units:
    """Few units, one after the other: broadcast, at most a few words of a bank."""
    del units
    size = rng.choice((2, 4, 8, 16, 32, 64))
    return [rng.randrange(size) for _ in range(LANES)]


def _stride(rng: random.Random, units: int) -> Units:
    start, stride = rng.randrange(64), rng.randrange(units // LANES - 2)
    return [start + stride * lane for lane in range(LANES)]


def _shuffled(rng: random.Random, units: int) -> Units:
    """All lanes in a row, in any order: what is free depends on who goes together."""
    del units
    return [*rng.sample(range(LANES), LANES)]


def _alike(bits: int, source: _Kind) -> _Kind:
    """Lanes that differ in no bit but `bits` get the same unit."""

    def make(rng: random.Random, units: int) -> Units:
        found = source(rng, units)
        return [found[lane & ~bits] for lane in range(LANES)]

    return make


def _left_out(part: int, source: _Kind) -> _Kind:
    """Leave out about half of the groups of `part` lanes."""

    def make(rng: random.Random, units: int) -> Units:
        found = source(rng, units)
        kept = [rng.random() < 0.5 for _ in range(LANES // part)]
        kept[rng.randrange(len(kept))] = True
        return [u if kept[lane // part] else None for lane, u in enumerate(found)]

    return make


def _apart(bit: int) -> _Kind:
    """Two lanes that differ in `bit` meet in a bank, no others do."""

    def make(rng: random.Random, units: int) -> Units:
        row = units // 48  # lanes of a row of 128 bytes or a multiple of it
        row -= row % LANES
        place = {
            lane: i for i, lane in enumerate(x for x in range(LANES) if not x & bit)
        }
        turn = rng.randrange(LANES)
        return [
            (place[lane & ~bit] + turn) % LANES + (row if lane & bit else 0)
            for lane in range(LANES)
        ]

    return make


KINDS: Final[dict[str, _Kind]] = (
    {
        "scattered": _scattered,
        "window": _window,
        "stride": _stride,
        "shuffled": _shuffled,
    }
    | {
        f"{source.__name__[1:]}, alike but for {bits}": _alike(bits, source)
        for source in (_scattered, _shuffled)
        for bits in (1, 2, 3, 4, 8, 16, 24, 31)
    }
    | {
        f"{source.__name__[1:]}, groups of {part} left out": _left_out(part, source)
        for source in (_scattered, _window, _shuffled)
        for part in (1, 2, 8, 16)
    }
    | {
        f"alike but for {bits}, lanes left out": _left_out(1, _alike(bits, _scattered))
        for bits in (1, 2, 4, 16)
    }
    | {f"meet but for {bit}": _apart(bit) for bit in (1, 2, 4, 8, 16)}
)


def _both(name: str, width: int, offsets: Sequence[int | None]) -> Iterator[Pattern]:
    for stores in (False, True):
        yield Pattern(name, stores, width, tuple(offsets))


def known() -> Iterator[Pattern]:
    """Yield strides whose passes nobody doubts, each with 1 to 32 ways of a bank."""
    for width in WIDTHS:
        for ways in (1, 2, 4, 8, 16, 32):
            step = max(width, 4 * ways)
            at = [step * lane for lane in range(LANES)]
            yield from _both(f"stride of {step}", width, at)
        yield from _both("one lane", width, [None] * 5 + [width] + [None] * 26)
        yield from _both("all lanes alike", width, [width] * LANES)


def chosen() -> Iterator[Pattern]:
    """Yield random patterns; the same for every call."""
    rng = random.Random(SEED)
    for kind, make in KINDS.items():
        for width in WIDTHS:
            for number in range(EACH):
                units = make(rng, SMEM_NBYTES // width)
                at = [None if each is None else width * each for each in units]
                yield from _both(f"{kind} {number}", width, at)


def staged() -> Iterator[Pattern]:
    """Yield what document 003's epilogue does with each staging."""
    for staging in STAGINGS:
        for chunk, each in enumerate(staging.writes):
            name = f"{staging.name}, write {chunk}"
            yield Pattern(name, True, each.width, each.offsets)
        for row, each in enumerate(staging.reads):
            name = f"{staging.name}, read {row}"
            yield Pattern(name, False, each.width, each.offsets)


def _classes(rng: random.Random, units: int) -> Units:
    """Lanes in classes of any form; those of one class have one unit."""
    found = [rng.randrange(units) for _ in range(rng.choice((2, 3, 5, 9, 17, 24)))]
    return [rng.choice(found) for _ in range(LANES)]


def _tile(rng: random.Random, units: int) -> Units:
    """Rows of a tile, their columns exchanged by an XOR with the row: a swizzle."""
    columns = 1 << rng.randrange(1, 5)
    pitch = rng.randrange(columns, units // (LANES // columns))
    mask = rng.randrange(columns)
    return [
        lane // columns * pitch + (lane % columns ^ lane // columns & mask)
        for lane in range(LANES)
    ]


def _transposed(rng: random.Random, units: int) -> Units:
    """Down the columns of such a tile."""
    rows = 1 << rng.randrange(1, 5)
    pitch = rng.randrange(LANES // rows, units // rows)
    return [lane % rows * pitch + lane // rows for lane in range(LANES)]


def _walk(rng: random.Random, units: int) -> Units:
    """From lane to lane by a small step, sometimes none, in a random order."""
    at, found = rng.randrange(units // 2), list[int]()
    for _ in range(LANES):
        at += rng.choice((0, 0, 1, 1, 2, 31, 32, 33))
        found.append(at % units)
    return rng.sample(found, LANES)


HELD_OUT: Final[dict[str, _Kind]] = {
    f"{source.__name__[1:]}{said}": make
    for source in (_classes, _tile, _transposed, _walk)
    for said, make in (("", source), (", lanes left out", _left_out(1, source)))
}
HELD_OUT_EACH: Final = 14


def held_out() -> tuple[Pattern, ...]:
    """Return patterns on which the model was not made."""
    rng = random.Random(HELD_OUT_SEED)
    found: list[Pattern] = []
    for kind, make in HELD_OUT.items():
        for width in WIDTHS:
            for number in range(HELD_OUT_EACH):
                units = make(rng, SMEM_NBYTES // width)
                at = [None if each is None else width * each for each in units]
                found += _both(f"{kind} {number}", width, at)
    return tuple(found)


def patterns() -> tuple[Pattern, ...]:
    """Return all, in the order of the record."""
    return (*known(), *chosen(), *staged())


def digest(found: Sequence[Pattern]) -> str:
    """SHA-256 over instructions and offsets."""
    text = "\n".join(f"{p.name} {p.entry} {p.offsets}" for p in found)
    return hashlib.sha256(text.encode()).hexdigest()
