"""released: what releases leave in an object, for those who acquire it.

An object is a phase of an mbarrier, a round of a barrier, or a word of memory. A
release is seen only by an acquire that lies in its scope, and whose scope it lies in.
"""

from __future__ import annotations

from fp4ref.hardware.order.access import SCOPES, reaches
from fp4ref.hardware.order.knowledge import Knowledge, Place

EVERYWHERE = SCOPES["sys"]


class Released:
    """Knowledge that waits for acquires, by where and how far it was released."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[tuple[Place, int], tuple[int, int]] = {}

    def add(self, place: Place, scope: int, generic: int, async_: int) -> None:
        """Leave ids."""
        before = self.entries.get((place, scope), (0, 0))
        self.entries[place, scope] = before[0] | generic, before[1] | async_

    def absorb(self, other: Released) -> None:
        """Take over all that another object holds: a read-modify-write of a word."""
        for (place, scope), (generic, async_) in other.entries.items():
            self.add(place, scope, generic, async_)

    def seen_from(self, place: Place, scope: int, fenced: bool = True) -> Knowledge:
        """Return what an acquire at `place` learns; a relaxed read is not `fenced`."""
        generic = async_ = hidden = 0
        for (there, wide), (g, a) in self.entries.items():
            if reaches(wide, place, there) and reaches(scope, place, there):
                generic |= g
                async_ |= a
            else:
                hidden |= g | a
        if fenced:
            return Knowledge(generic, async_, hidden=hidden)
        return Knowledge(unfenced=generic | async_, hidden=hidden)


class Phases:
    """The phases of one mbarrier.

    Attributes
    ----------
    init
        Number of the access that initialised it; 0 if that is not known.
    users
        The last use of it by each warp.
    done
        What completed phases released, and how many phases these are.
    pending
        What was released in each phase that nobody has looked at, by number.
    signals
        By phase: asynchronous operations that arrived in it and that no thread has
        seen complete.
    remote
        By phase: arrivals by threads of other CTAs, not seen to complete either.
    commits
        By thread: the phases in which its own commits arrived, and what they did to
        TMEM.
    """

    def __init__(self, init: int) -> None:
        self.init = init
        self.users: dict[object, int] = {}
        self.done = Released()
        self.pending: dict[int, Released] = {}
        self.signals: dict[int, list[int]] = {}
        self.remote: dict[int, list[int]] = {}
        self.commits: dict[tuple[object, int], list[tuple[int, int]]] = {}

    def of(self, phase: int) -> Released:
        """What is released in a phase."""
        return self.pending.setdefault(phase, Released())

    def observe(self, completed: int) -> Released:
        """Return what the completed phases released: a thread sees them complete.

        Later arrivals modify the word that earlier ones wrote, so whoever reads the
        last one reads all of them [PTX: observation order].
        """
        for phase in [p for p in self.pending if p < completed]:
            self.done.absorb(self.pending.pop(phase))
        for unseen in (self.signals, self.remote):
            for phase in [p for p in unseen if p < completed]:
                del unseen[phase]
        return self.done
