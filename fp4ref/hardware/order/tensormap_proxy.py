"""tensormap_proxy: maps that a kernel writes, and the copies that use them.

A tensor copy reads its map through the tensormap proxy. That the write of the map comes
before it by barriers is not enough: the writing thread executes
``fence.proxy.tensormap::generic.release`` (or the copy that has it built in), and a
thread of the CTA that uses the map executes the ``.acquire`` of its 128 bytes. Both
fences lie on the path from the write to the use, in this order [PTX: membar / fence,
tensormap.cp_fenceproxy]. PTX does not say whom an acquire serves. Here it serves the
CTA of its thread, as far as threads are ordered after it.

Each fence is an access with ids of its own, which travel as those of ordinary accesses
do. What a fence covers is kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from fp4ref.hardware.order.access import SCOPES, Access, reaches
from fp4ref.hardware.order.book import Bytes
from fp4ref.hardware.order.knowledge import GENERIC, TENSORMAP, Actor
from fp4ref.hardware.order.rules import Failure
from fp4ref.hardware.order.thread_order import ThreadOrder
from fp4ref.trace import Range

_FENCE = "tensormap fence"
"""The ids of the fences belong to no memory."""


@dataclass(slots=True, eq=False)
class MapFence:
    """A release or an acquire by some lanes.

    Attributes
    ----------
    access
        The fence itself.
    scope
        How far it reaches.
    covers
        By lane, as bits: ids of the writes that it orders.
    hidden
        By lane: ids that a release covers whose scope, or its own, does not reach.
    """

    access: Access
    scope: int
    covers: dict[int, int]
    hidden: dict[int, int] = field(default_factory=dict)

    def reaches(self, other: MapFence) -> bool:
        """Whether each is in the other one's scope."""
        here, there = self.access.actor.place, other.access.actor.place
        return reaches(self.scope, here, there) and reaches(other.scope, there, here)


class TensormapProxy(ThreadOrder):
    """Releases, acquires and uses of tensor maps."""

    def begin(self) -> None:
        """Start a launch."""
        super().begin()
        self._releases: list[MapFence] = []
        self._copies: dict[int, MapFence] = {}
        self._acquires: dict[int, list[MapFence]] = {}

    # -- the fences -----------------------------------------------------------------

    def release_tensormap(self, actor: Actor, scope: str) -> None:
        """``fence.proxy.tensormap::generic.release``: all that each lane knows."""
        covers = {lane: _known(actor, lane) for lane in _bits(actor.active)}
        name = "fence.proxy.tensormap::generic.release"
        self._releases.append(self._fence(actor, name, scope, covers))

    def copy_tensormap(
        self, actor: Actor, memory: Bytes, where: Range, operation: str, scope: str
    ) -> None:
        """``tensormap.cp_fenceproxy``: a write by the whole warp, and its release."""
        written = self.collective(actor, memory, where, operation)
        covers = dict.fromkeys(_bits(actor.active), 1 << written.base)
        self._copies[written.number] = self._fence(actor, operation, scope, covers)

    def acquire_tensormap(
        self, actor: Actor, memory: Bytes, where: Range, scope: str
    ) -> None:
        """``fence.proxy.tensormap::generic.acquire`` of the bytes `where`."""
        lanes = _bits(actor.active)
        name = "fence.proxy.tensormap::generic.acquire"
        fence = self._fence(actor, name, scope, dict.fromkeys(lanes, 0))
        shadow = self.shadow(memory)
        for value in np.unique(shadow.cells(where).get(shadow.writers)):
            for number, made in self.table.decode(int(value)) if value else ():
                for lane in lanes:
                    covered, hidden = self._released(number, made, fence, lane)
                    fence.covers[lane] |= covered
                    fence.hidden[lane] = fence.hidden.get(lane, 0) | hidden
                self._acquires.setdefault(number, []).append(fence)

    def _fence(
        self, actor: Actor, operation: str, scope: str, covers: dict[int, int]
    ) -> MapFence:
        """Write down a fence. What the lanes access next has other ids."""
        base = actor.access(_FENCE, actor.active)
        access = self.enter(actor, base, actor.active, operation, False)
        actor.open.clear()
        return MapFence(access, SCOPES[scope], covers)

    def _released(
        self, number: int, made: int, acquire: MapFence, lane: int
    ) -> tuple[int, int]:
        """Return which ids of a write are released to a lane, and which beside it."""
        actor = acquire.access.actor
        ids = self._ids(number, made)
        found = hidden = 0
        for fence, part in self._releases_of(number, actor, lane):
            if fence.reaches(acquire):
                found |= ids & part
            else:
                hidden |= ids & part
        return found, hidden & ~found

    def _releases_of(
        self, number: int, actor: Actor, lane: int
    ) -> Iterator[tuple[MapFence, int]]:
        """Yield the releases that a lane comes after, and what they cover."""
        copied = self._copies.get(number)
        yield from _seen([copied] if copied else self._releases, actor, lane)

    def _ids(self, number: int, made: int) -> int:
        """Return the ids of lanes of an access."""
        first = self.accesses[number - 1]
        return (1 if first.issuer else made) << first.base

    # -- the use --------------------------------------------------------------------

    def use_tensormap(
        self, actor: Actor, memory: Bytes, where: Range, operation: str
    ) -> None:
        """Check that the executing lanes may use the map in `where`.

        The bytes are read when the copy is issued, so a later write has to come after
        the issue. PTX has no fence for that direction.
        """
        lanes = actor.active
        base = actor.access(memory.space, lanes)
        access = self.enter(actor, base, lanes, operation, False)
        self.touch(access, memory, where, (lanes,), TENSORMAP)

    def missing(
        self, number: int, made: int, access: Access, mine: int, view: int
    ) -> int:
        """Return which lanes `made` of an earlier access are unordered before it."""
        if view != TENSORMAP:
            return super().missing(number, made, access, mine, view)
        ids, found = self._ids(number, made), 0
        for lane in _bits(mine):
            left = ids
            for fence, part in self._acquires_of(number, access, lane):
                left &= ~fence.covers[part]
            found |= left
        return found >> self.accesses[number - 1].base

    def _acquires_of(
        self, number: int, access: Access, lane: int
    ) -> Iterator[tuple[MapFence, int]]:
        """Yield the acquires in the CTA that a use comes after, and their lanes."""
        for fence in self._acquires.get(number, ()):
            if fence.access.actor.place == access.actor.place:
                for by in _lanes_seen(fence, access.actor, lane):
                    yield fence, by

    def classify(
        self, first: Access, made: int, second: Access, mine: int, view: int
    ) -> Failure:
        """Return which edge is missing between two accesses."""
        if view != TENSORMAP:
            return super().classify(first, made, second, mine, view)
        if super().missing(first.number, made, second, mine, GENERIC):
            return super().classify(first, made, second, mine, GENERIC)
        ids, lane = self._ids(first.number, made), mine & -mine
        for fence, by in self._acquires_of(first.number, second, lane):
            if ids & fence.hidden.get(by, 0):
                return Failure.SCOPE
        for _, part in self._releases_of(first.number, second.actor, lane):
            if ids & part:
                return Failure.MAP_ACQUIRE
        return Failure.MAP_RELEASE


def _known(actor: Actor, lane: int) -> int:
    """Return what is ordered before the next generic access of one lane."""
    found = actor.at(lane).generic
    for base, own in actor.own.items():
        found |= (own[GENERIC] & lane) << base
    return found


def _lanes_seen(fence: MapFence, actor: Actor, lane: int) -> list[int]:
    """Return the lanes of a fence that a lane comes after."""
    return _bits(_known(actor, lane) >> fence.access.base & fence.access.lanes)


def _seen(
    fences: Iterable[MapFence], actor: Actor, lane: int
) -> Iterator[tuple[MapFence, int]]:
    """Yield the fences that a lane comes after, with what each of their lanes has."""
    for fence in fences:
        for by in _lanes_seen(fence, actor, lane):
            yield fence, fence.covers[by]


def _bits(mask: int) -> list[int]:
    """Return the bits of a mask, each by itself."""
    return [1 << i for i in range(mask.bit_length()) if mask >> i & 1]
