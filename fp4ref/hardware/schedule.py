"""schedule: who goes next, a warp or an asynchronous operation that can land.

Hardware promises no order beyond the stated ones, so a right kernel gives the same bits
under every schedule. ``eager`` lands work at its issue. ``late`` lands it only when
every warp is blocked, newest first among what may go. An integer is a seed. ``timed``
does what is earliest on a clock by which everything takes time
(`fp4ref.hardware.timing`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from fp4ref.errors import InputError
from fp4ref.hardware.timing import Durations, Timed

NAMES = "'eager', 'late', 'timed' or an integer seed"

WarpT = TypeVar("WarpT")
OpT = TypeVar("OpT")


class Schedule(Protocol):
    """A policy for the order of events.

    Attributes
    ----------
    lands_at_issue
        Whether nothing stays in flight.
    warps_first
        Whether nothing lands while a warp can run.
    """

    name: str
    lands_at_issue: bool
    warps_first: bool

    def choose(self, warps: Sequence[WarpT], ops: Sequence[OpT]) -> WarpT | OpT | None:
        """Pick one of the runnable warps or landable operations; None if neither."""
        ...

    def peek(self, done: bool) -> bool:
        """Answer a non-blocking test of a phase; may say false to a complete one."""
        ...


class Eager:
    """Work lands at issue; warps run in turn, each until it blocks."""

    name = "eager"
    lands_at_issue = True
    warps_first = True

    def choose(self, warps: Sequence[WarpT], ops: Sequence[OpT]) -> WarpT | OpT | None:
        """Return the first warp, else the oldest operation."""
        return warps[0] if warps else ops[0] if ops else None

    def peek(self, done: bool) -> bool:
        """Tell the truth."""
        return done


class Late:
    """Work lands only when no warp can run; the newest operation goes first."""

    name = "late"
    lands_at_issue = False
    warps_first = True

    def choose(self, warps: Sequence[WarpT], ops: Sequence[OpT]) -> WarpT | OpT | None:
        """Return the first warp, else the newest operation."""
        return warps[0] if warps else ops[-1] if ops else None

    def peek(self, done: bool) -> bool:
        """Never see a phase early."""
        return False


class Seeded:
    """Any runnable warp or landable operation, with equal chance."""

    lands_at_issue = False
    warps_first = False

    def __init__(self, seed: int) -> None:
        self.name = f"seed {seed}"
        self._random = random.Random(seed)

    def choose(self, warps: Sequence[WarpT], ops: Sequence[OpT]) -> WarpT | OpT | None:
        """Draw one."""
        total = len(warps) + len(ops)
        if not total:
            return None
        i = self._random.randrange(total)
        return warps[i] if i < len(warps) else ops[i - len(warps)]

    def peek(self, done: bool) -> bool:
        """See a complete phase half of the time."""
        return done and self._random.random() < 0.5


def make_schedule(schedule: str | int | Durations) -> Schedule:
    """Return the schedule called ``"eager"``, ``"late"``, ``"timed"``, or the seed.

    `Durations` are those of a timed one.

    Raises
    ------
    InputError
        Any other value.
    """
    if isinstance(schedule, Durations):
        return Timed(schedule)
    if isinstance(schedule, bool) or not isinstance(schedule, str | int):
        raise InputError(f"schedule {schedule!r}: say {NAMES}")
    if schedule == "eager":
        return Eager()
    if schedule == "late":
        return Late()
    if schedule == "timed":
        return Timed()
    try:
        return Seeded(int(schedule))
    except ValueError:
        raise InputError(f"schedule {str(schedule)[:80]!r}: say {NAMES}") from None
