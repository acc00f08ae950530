"""copy_groups: which ``cp.async`` copies belong to which group of which lane.

A group is a thread's own: ``cp.async.commit_group`` closes one of each lane that
executes it, with the copies that the lane has issued since its last one, if any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fp4ref.hardware.in_flight import AsyncOp

_LANES = 32


@dataclass(slots=True)
class _Copy:
    """A copy, the lanes that have not waited for it, and the group of each lane."""

    op: AsyncOp
    lanes: int
    groups: tuple[int, ...]


@dataclass(slots=True)
class CopyGroups:
    """The groups of a warp.

    Attributes
    ----------
    committed
        How many groups each lane has closed.
    """

    committed: list[int] = field(default_factory=lambda: [0] * _LANES)
    _copies: list[_Copy] = field(default_factory=list)

    def append(self, op: AsyncOp, lanes: int) -> None:
        """Count a copy by some lanes, as bits, to the group that each has open."""
        self._copies.append(_Copy(op, lanes, tuple(self.committed)))

    def commit(self, lanes: int) -> None:
        """Close the open group of some lanes."""
        for lane in _numbers(lanes):
            self.committed[lane] += 1

    def take(self, lanes: int, pending: int) -> dict[AsyncOp, int]:
        """Return the copies of some lanes outside their newest `pending` groups.

        With each come the lanes of which that is so; they have waited for it now.
        """
        found = {}
        for copy in self._copies:
            done = 0
            for lane in _numbers(copy.lanes & lanes):
                if copy.groups[lane] < self.committed[lane] - pending:
                    done |= 1 << lane
            if done:
                found[copy.op] = done
                copy.lanes &= ~done
        self._copies = [copy for copy in self._copies if copy.lanes]
        return found


def _numbers(lanes: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while lanes:
        lowest = lanes & -lanes
        yield lowest.bit_length() - 1
        lanes ^= lowest
