"""events: what one agent did, with the ranges and barriers that it touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Dim3 = tuple[int, int, int]
"""Coordinates or extents in a grid, x first, as CUDA's ``dim3``."""

Kind = Literal["sync", "issue", "land", "note"]


class Range(NamedTuple):
    """`rows` runs of `nbytes` bytes in one memory, `pitch` bytes apart.

    `space` is ``"gmem"``, ``"smem<sm>"`` or ``"tmem<sm>"``. Addresses are bytes; in
    TMEM byte ``lane * 2048 + column * 4`` stands for one 32-bit cell.
    """

    space: str
    start: int
    nbytes: int
    rows: int = 1
    pitch: int = 0

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + (self.rows - 1) * self.pitch + self.nbytes

    @property
    def size(self) -> int:
        """Bytes covered."""
        return self.rows * self.nbytes

    def overlaps(self, other: Range) -> bool:
        """Whether the two ranges share a byte."""
        if (
            self.space != other.space
            or self.start >= other.end
            or other.start >= self.end
        ):
            return False
        if self.rows == 1 and other.rows == 1:
            return True
        pitch = other.pitch if self.rows == 1 else self.pitch
        if pitch and (1 in (self.rows, other.rows) or pitch == other.pitch):
            return self._overlaps_on_grid(other, pitch)
        a = self.start + self.pitch * np.arange(self.rows)[:, None]
        b = other.start + other.pitch * np.arange(other.rows)[None, :]
        return bool(((a < b + other.nbytes) & (b < a + self.nbytes)).any())

    def _overlaps_on_grid(self, other: Range, pitch: int) -> bool:
        """Decide for rows `pitch` apart by the distances in rows that would overlap."""
        apart = other.start - self.start
        steps_low = (-other.nbytes - apart) // pitch + 1
        steps_high = -((apart - self.nbytes) // pitch) - 1
        return max(steps_low, 1 - self.rows) <= min(steps_high, other.rows - 1)


class Barrier(NamedTuple):
    """One mbarrier before and after an event: (phase, pending arrivals, tx-count)."""

    space: str
    address: int
    label: str
    before: tuple[int, int, int]
    after: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that one agent did.

    Attributes
    ----------
    step
        Position in the trace, from 0.
    sm, cta
        The SM, and the CTA's index in the grid.
    agent
        ``"warp0"`` to ``"warp7"``, or a unit: ``"tma"``, ``"tcgen05"``, ``"clc"``.
    operation
        The PTX name, for example ``"mbarrier.arrive.expect_tx"``.
    kind
        ``issue`` and ``land`` for asynchronous work, ``sync`` for work done at once,
        ``note`` for a fact that the kernel states (loop counts, pipeline states).
    issued
        For a landing the step of its issue, for a wait that blocked the step at which
        it began; otherwise -1.
    after
        What had to come first, by step: for a landing the landings that it waited for,
        for an issue the issues of the operations that must land before its own.
        Operations that had landed before the issue are not among them.
    start, end
        In clocks from the launch's first instruction, under the schedule "timed"; None
        under every other. Of a landing: when its unit started on it, and when it was
        done; it is in flight from the end of its issue. Of a wait: when it began, and
        when the warp went on.
    frames
        Ids of the frame index, outermost first.
    source, kernel_source
        ``file:line`` of the emulator's and of the CUDA kernel's statement.
    """

    step: int
    sm: int
    cta: Dim3
    agent: str
    operation: str
    kind: Kind
    operands: Mapping[str, Any]
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()
    barrier: tuple[Barrier, ...] = ()
    frames: tuple[str, ...] = ()
    source: str = ""
    kernel_source: str = ""
    issued: int = -1
    after: tuple[int, ...] = ()
    start: float | None = None
    end: float | None = None
