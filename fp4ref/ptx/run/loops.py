"""loops: loops that only another warp, or time, can end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.sm import Body
from fp4ref.ptx.run.state import WarpState

_TURNS = 64
"""Turns of a loop between two looks at the registers."""


class Loops:
    """Finds out that a warp goes round a loop that cannot end by itself.

    If nothing that others see was done between two looks and all registers are the
    same, the loop waits for another warp, or for work in flight. If it has read the
    time, its registers are never the same, and it waits for time as well.
    """

    def __init__(self, state: WarpState) -> None:
        self.state = state
        self.turns = 0
        self.seen: dict[tuple[int, int], list[NDArray[np.generic]]] = {}

    def reset(self) -> None:
        """Something was done."""
        self.turns = 0
        self.seen.clear()
        self.state.polled = None
        self.state.insist = False

    def turn(self, mask: int) -> bool:
        """Count a branch backwards; True if the warp should wait."""
        self.turns += 1
        if self.turns % _TURNS:
            return False
        if self.state.read_time:
            return True
        now = [register.copy() for register in self.state.registers]
        before = self.seen.get((self.state.pc, mask))
        self.seen[self.state.pc, mask] = now
        return before is not None and all(map(np.array_equal, before, now))

    def wait(self) -> Body:
        """Let tests say the truth; if that was not enough, suspend until a change."""
        if self.state.read_time:
            self.state.read_time = False
            yield from self._until_later()
            return
        seen = self.seen.copy() if self.state.insist else {}
        if self.state.insist:
            yield from self.state.warp.wait(SpinWait(self.state))
        self.reset()
        self.state.insist = True
        if seen:
            # One turn tells whether the change was the one that it waits for.
            self.seen, self.turns = seen, _TURNS - 1

    def _until_later(self) -> Body:
        """Suspend until a change, or until time is all that can pass."""
        cycles = self.state.warp.machine.cycles
        wait = TimeWait(self.state)
        cycles.waiting += 1
        try:
            yield from self.state.warp.wait(wait)
        finally:
            cycles.waiting -= 1
        if wait.has_changed():
            cycles.settle()
        self.reset()
        self.state.insist = True


class SpinWait:
    """A warp goes round a loop until something else changes memory."""

    def __init__(self, state: WarpState) -> None:
        self.state = state
        self.before = self._look()

    def _look(self) -> tuple[object, ...]:
        in_flight = self.state.warp.machine.in_flight
        return self.state.context.changes, *map(id, in_flight)

    def has_changed(self) -> bool:
        """Whether anything has been done since."""
        return self._look() != self.before

    def ready(self) -> bool:
        """Whether anything has changed."""
        return self.has_changed()

    def describe(self) -> str:
        """Where the loop is."""
        return f"a loop at {self.state.at} that repeats without change"

    def released_by(self) -> str:
        """It is not known who could."""
        return "a warp that writes what the loop reads"


class TimeWait(SpinWait):
    """A warp goes round a loop until something changes, or later."""

    def __init__(self, state: WarpState) -> None:
        super().__init__(state)
        self.jumps = state.warp.machine.cycles.jumps

    def ready(self) -> bool:
        """Whether anything has changed, or time has passed."""
        return self.has_changed() or self.state.warp.machine.cycles.jumps != self.jumps

    def describe(self) -> str:
        """Where the loop is."""
        return f"a loop at {self.state.at} that reads the time, and no time is enough"
