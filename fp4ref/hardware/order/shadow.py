"""shadow: the last accesses of every byte of a memory.

A byte keeps the *witnesses* that a later access must come after: its last write and
the reads since. An access drops the witnesses that are ordered before it and that it
conflicts with as much as they did: whoever races with those races with it. What is not
ordered before it stays, so one race does not hide another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.order.access import LANE_BITS
from fp4ref.trace import Range

Witnesses = tuple[tuple[int, int], ...]
"""Accesses by number, each with the lanes of it that touched the byte."""
Judge = Callable[[int, int, int], int]
"""Called as ``judge(number, lanes, mine)``: which of the lanes are unordered."""
Report = Callable[[int, int, "Cells", NDArray[np.bool_] | None], None]
"""Called with an access that races, its lanes, the cells, and which of them."""

Array = NDArray[np.int32]


class Cells:
    """Some cells of a shadow memory: a range of rows, or a list of indices."""

    __slots__ = ("index", "scale", "start", "where")

    def __init__(
        self,
        where: Range | None,
        index: NDArray[np.int64] | None,
        start: int,
        scale: int,
    ) -> None:
        self.where, self.index, self.start, self.scale = where, index, start, scale

    def get(self, array: Array) -> Array:
        """Return what the cells hold: a view of a range, a copy of a list."""
        where = self.where
        if where is None:
            found: Array = array[self.index]
            return found
        return np.ndarray(
            (where.rows, where.nbytes // self.scale),
            np.int32,
            array.data,
            (where.start - self.start) // self.scale * 4,
            (where.pitch // self.scale * 4, 4),
        )

    def bounds(self) -> tuple[int, int]:
        """First byte address, and one past the last."""
        if self.where is not None:
            return self.where.start, self.where.end
        index, scale = self.index, self.scale
        assert index is not None
        first, last = int(index.min()), int(index.max())
        return first * scale + self.start, (last + 1) * scale + self.start

    def put(self, array: Array, value: Any, only: NDArray[np.bool_] | None) -> None:
        """Write one value, or one for each row, into all cells or into some."""
        if self.where is not None:
            view = self.get(array)
            if only is None:
                view[:] = value
            else:
                view[only] = value
        elif only is None:
            array[self.index] = value
        else:
            assert self.index is not None
            array[self.index[only]] = value

    def addresses(self, only: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Byte addresses of the cells, in order."""
        if self.index is None:
            where = self.where
            assert where is not None
            row = np.arange(where.rows)[:, None] * where.pitch
            at = where.start + row + np.arange(0, where.nbytes, self.scale)
        else:
            at = self.index * self.scale + self.start
        found = at if only is None else at[only]
        return np.unique(found)


class SetTable:
    """Sets of several witnesses, by negative numbers."""

    def __init__(self) -> None:
        self.sets: list[Witnesses] = [()]
        self._known: dict[Witnesses, int] = {}

    def encode(self, witnesses: Witnesses) -> int:
        """Return the number that stands for `witnesses`; 0 for none."""
        if not witnesses:
            return 0
        if len(witnesses) == 1:
            number, lanes = witnesses[0]
            if not lanes & (lanes - 1):
                return number << LANE_BITS | lanes.bit_length() - 1
        key = tuple(sorted(witnesses))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = -len(self.sets)
            self.sets.append(key)
        return found

    def decode(self, value: int) -> Witnesses:
        """Return the witnesses that a number stands for."""
        if value < 0:
            return self.sets[-value]
        lane = value & (1 << LANE_BITS) - 1
        return ((value >> LANE_BITS, 1 << lane),)


class Shadow:
    """The witnesses of one memory.

    Parameters
    ----------
    base, nbytes
        Its first address and size.
    scale
        Bytes of a cell that are always accessed together.
    """

    def __init__(self, base: int, nbytes: int, scale: int, table: SetTable) -> None:
        self.base, self.end = base, base + nbytes
        self.scale, self.table = scale, table
        # Zeros take no memory before they are touched.
        self.writers: Array = np.zeros(nbytes // scale, np.int32)
        self.readers: Array = np.zeros(nbytes // scale, np.int32)

    def cells(self, where: Range | NDArray[np.int64]) -> Cells:
        """Return the cells of a range, or at one byte address for each cell."""
        if isinstance(where, Range):
            return Cells(where, None, self.base, self.scale)
        return Cells(None, (where - self.base) // self.scale, self.base, self.scale)

    def touch(
        self,
        cells: Cells,
        number: int,
        lanes: Sequence[int],
        is_write: bool,
        judge: Judge,
        report: Report,
    ) -> None:
        """Check an access and remember it.

        Parameters
        ----------
        lanes
            The lanes of each row of the cells, as bits; one for all rows if the rows
            are no different.
        """
        mine = 0
        for each in lanes:
            mine |= each
        if is_write:
            self._check(cells, self.writers, lanes, mine, judge, report, number)
            self._check(cells, self.readers, lanes, mine, judge, report, 0)
        else:
            self._look(cells, self.writers, lanes, mine, judge, report)
            self._check(cells, self.readers, lanes, mine, judge, None, number)

    def _look(
        self,
        cells: Cells,
        frontier: Array,
        lanes: Sequence[int],
        mine: int,
        judge: Judge,
        report: Report,
    ) -> None:
        """Report the witnesses that are not ordered before the access."""
        values = cells.get(frontier)
        for value in _distinct(values):
            for number, made in self.table.decode(value):
                if not judge(number, made, mine):
                    continue
                for rows, each in _rows(values, value, lanes):
                    if bad := judge(number, made, each):
                        report(number, bad, cells, rows)

    def _check(
        self,
        cells: Cells,
        frontier: Array,
        lanes: Sequence[int],
        mine: int,
        judge: Judge,
        report: Report | None,
        number: int,
    ) -> None:
        """Replace the ordered witnesses by the access `number`; 0 adds nothing."""
        values = cells.get(frontier)
        kept: list[tuple[NDArray[np.bool_] | None, Witnesses]] = []
        distinct = _distinct(values)
        for value in distinct:
            witnesses = self.table.decode(value)
            if not any(judge(n, made, mine) for n, made in witnesses):
                continue
            for rows, each in _rows(values, value, lanes):
                left = tuple(
                    (n, bad) for n, m in witnesses if (bad := judge(n, m, each))
                )
                if not left:
                    continue
                if report is not None:
                    for n, bad in left:
                        report(n, bad, cells, rows)
                elif each & (each - 1):
                    # Of several reading lanes it is enough if one comes after it.
                    left = tuple(
                        (n, bad)
                        for n, m in left
                        if (bad := _by_none(judge, n, m, each))
                    )
                kept.append((rows, (*left, (number, each)) if number else left))
        if number:
            encoded = [self.table.encode(((number, each),)) for each in lanes]
            new: Any = encoded[0]
            if len(encoded) > 1:
                new = np.array(encoded, np.int32)[:, None]
            cells.put(frontier, new, None)
        elif distinct:
            cells.put(frontier, 0, None)
        for rows, witnesses in kept:
            cells.put(frontier, self.table.encode(witnesses), rows)


class Saved:
    """What some cells held before an access that a second one does not come after."""

    def __init__(self, shadow: Shadow, cells: Cells) -> None:
        self.frontiers = shadow.writers, shadow.readers
        self.held = [cells.get(frontier).copy() for frontier in self.frontiers]

    def restore(self, cells: Cells, value: int) -> None:
        """Take the access, `value` in the table, out of the cells again."""
        writers, readers = (cells.get(frontier) for frontier in self.frontiers)
        mine = writers == value
        before, read = self.held
        cells.put(self.frontiers[0], before[mine], mine)
        unread = mine & (readers == 0)
        cells.put(self.frontiers[1], read[unread], unread)


def _by_none(judge: Judge, number: int, made: int, mine: int) -> int:
    """Return which of the lanes `made` are unordered before every lane of `mine`."""
    bad = made
    for i in range(mine.bit_length()):
        if mine >> i & 1 and bad:
            bad &= judge(number, made, 1 << i)
    return bad


def _distinct(values: Array) -> list[int]:
    """Return the different numbers that are not 0."""
    if not values.size:
        return []
    first = values.flat[0]
    if (values == first).all():
        return [int(first)] if first else []
    return [int(v) for v in np.unique(values) if v]


def _rows(
    values: Array, value: int, lanes: Sequence[int]
) -> list[tuple[NDArray[np.bool_] | None, int]]:
    """Return where `value` is, for each lane that meets it."""
    found = values == value
    if len(lanes) == 1:
        return [(found, lanes[0])]
    parts: list[tuple[NDArray[np.bool_] | None, int]] = []
    for row in np.flatnonzero(np.logical_or.reduce(found, axis=1)).tolist():
        only = np.zeros_like(found)
        only[row] = found[row]
        parts.append((only, lanes[row]))
    return parts
