"""book: every access of a launch, checked against those before it, and the findings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.order.access import Access
from fp4ref.hardware.order.knowledge import (
    ASYNC,
    EITHER,
    GENERIC,
    MOST_IDS,
    TENSOR,
    UMMA,
    Actor,
    Ids,
    Knowledge,
    Place,
)
from fp4ref.hardware.order.race import Findings, Race, Severity, Statements, side
from fp4ref.hardware.order.rules import Failure
from fp4ref.hardware.order.shadow import Cells, SetTable, Shadow
from fp4ref.trace import Range

MBARRIER_NBYTES = 8

MOST_ACCESSES = 1 << 25
"""Accesses of a launch; a witness has 26 bits for the number of one."""

Where = Range | NDArray[np.int64]
"""Bytes: a range, or addresses, in rows if lanes differ."""

NO_FACTS: Mapping[str, Any] = MappingProxyType({})


class Bytes(Protocol):
    """What the engine needs of a memory."""

    space: str
    base: int
    data: NDArray[np.uint8]

    def describe(self, address: int) -> str:
        """Where an address is, in words."""
        ...


class Clock(Protocol):
    """What the engine needs of the machine: where it is."""

    def now(self) -> int:
        """Return the step of the next event, or -1 untraced."""
        ...

    def locate(self, step: int) -> str:
        """Return the source line of an event."""
        ...


class Book:
    """The accesses of a launch and the memories they touch.

    Parameters
    ----------
    ordering
        ``"ptx"`` or ``"shipped"``.
    clock
        Where the machine is.
    """

    def __init__(self, ordering: Literal["ptx", "shipped"], clock: Clock) -> None:
        self.ordering, self.clock = ordering, clock
        self.findings = Findings()
        self.on_pair: Callable[[Access, Access, int], None] | None = None
        self.begin()

    def begin(self) -> None:
        """Start a launch: all that came before it is ordered before it."""
        self.ids = Ids()
        self.accesses: list[Access] = []
        self.shadows: dict[str, Shadow] = {}
        self.live: dict[str, list[int]] = {}
        self.inits: dict[tuple[str, int], Access] = {}
        self.places: dict[str, Place] = {}
        self.table = SetTable()
        self.findings.stopped = False

    def actor(self, who: str, place: Place, source: Callable[[], str]) -> Actor:
        """Return the books of a new warp; `source` says which statement it executes."""
        return Actor(self.ids, who, place, source)

    def forget(self, space: str, place: Place) -> None:
        """Give a memory to a new CTA: earlier ones are ordered before it."""
        self.shadows.pop(space, None)
        self.live.pop(space, None)
        self.places[space] = place

    # -- accesses -----------------------------------------------------------------

    def enter(
        self,
        actor: Actor,
        base: int,
        lanes: int,
        operation: str,
        is_write: bool,
        **more: Any,
    ) -> Access:
        """Write down one access."""
        step = self.clock.now()
        source = "" if step >= 0 else actor.source()
        number = len(self.accesses) + 1
        if number > MOST_ACCESSES:
            self.findings.stop(f"{MOST_ACCESSES:,} accesses")
            number = MOST_ACCESSES
        elif self.ids.full:
            self.findings.stop(f"{MOST_IDS:,} ids of accesses")
        found = Access(
            number,
            actor,
            base,
            lanes,
            operation,
            is_write,
            step=step,
            source=source,
            **more,
        )
        if number > len(self.accesses):
            self.accesses.append(found)
        return found

    def generic(
        self,
        actor: Actor,
        memory: Bytes,
        where: Where,
        operation: str,
        is_write: bool,
        lanes: Sequence[int] = (),
        scope: int = 0,
        width: int = 0,
    ) -> None:
        """Check an ordinary access: ``ld``, ``st``, one half of ``atom``.

        Parameters
        ----------
        lanes
            For an array of addresses, which lanes touch each row, as bits.
        scope, width
            How far a strong access reaches, and its bytes; 0 for a weak one.
        """
        mask = _joined(lanes) or actor.active
        base = actor.access(memory.space, mask)
        strong = {"scope": scope, "width": width if scope else 0}
        access = self.enter(actor, base, mask, operation, is_write, **strong)
        self.touch(access, memory, where, lanes or (mask,), GENERIC)

    def collective(
        self,
        actor: Actor,
        memory: Bytes,
        where: Range,
        operation: str,
        is_write: bool = True,
    ) -> Access:
        """Check an access that all executing lanes do together, ``.sync.aligned``."""
        base = self.ids.single(memory.space)
        lanes = actor.active
        access = self.enter(
            actor, base, 1, operation, is_write, issuer=lanes, together=True
        )
        self.touch(access, memory, where, (lanes,), GENERIC)
        actor.learn(lanes, Knowledge(1 << base))
        return access

    def shadow(self, memory: Bytes) -> Shadow:
        """Return the witnesses of a memory."""
        found = self.shadows.get(memory.space)
        if found is None:
            scale = 4 if memory.space.startswith("tmem") else 1
            found = Shadow(memory.base, memory.data.size, scale, self.table)
            self.shadows[memory.space] = found
        return found

    def touch(
        self,
        access: Access,
        memory: Bytes,
        where: Where,
        lanes: Sequence[int],
        view: int,
    ) -> None:
        """Check an access of `memory` and remember it."""
        if self.findings.stopped:
            return
        shadow = self.shadow(memory)
        cells = shadow.cells(where)
        low, high = cells.bounds()
        if low < shadow.base or high > shadow.end:
            return  # the memory says what is wrong
        found: dict[tuple[int, int], list[NDArray[np.int64]]] = {}
        shadow.touch(
            cells,
            access.number,
            lanes,
            access.is_write,
            lambda number, made, mine: self.missing(number, made, access, mine, view),
            lambda number, made, cells, only: found.setdefault(
                (number, made), []
            ).append(cells.addresses(only)),
        )
        if access.operation[:9] != "mbarrier.":
            self._check_live(access, memory, cells, lanes)
        for (number, made), addresses in found.items():
            first = self.accesses[number - 1]
            if not first.morally_strong(access):
                self.race(
                    first, made, access, lanes, view, memory, np.concatenate(addresses)
                )

    def missing(
        self, number: int, made: int, access: Access, mine: int, view: int
    ) -> int:
        """Return which lanes `made` of an earlier access are unordered before it."""
        first = self.accesses[number - 1]
        if first.issuer and access.issuer and self.is_pipelined(first, access):
            return 0
        by, made = (None, 1) if first.issuer else (first.actor, made)
        return access.actor.unordered(by, first.base, made, mine, view)

    def is_pipelined(self, first: Access, second: Access) -> bool:
        """Whether tcgen05 runs the two in order by itself: same thread, listed pair.

        Compiled kernels rely on more: all of one thread's work in order.
        """
        if first.actor is not second.actor or first.issuer != second.issuer:
            return False
        pair = first.operation, second.operation
        if not all(op in ("tcgen05.mma", "tcgen05.cp") for op in pair):
            return False
        if self.ordering == "shipped" or pair == ("tcgen05.cp", "tcgen05.mma"):
            return True
        return pair == ("tcgen05.mma", "tcgen05.mma") and first.facts == second.facts

    def _check_live(
        self, access: Access, memory: Bytes, cells: Cells, lanes: Sequence[int]
    ) -> None:
        """Report an ordinary access to the word of a live mbarrier."""
        live = self.live.get(memory.space)
        if not live:
            return
        low, high = cells.bounds()
        first = bisect_left(live, low - MBARRIER_NBYTES + 1)
        for address in live[first : bisect_left(live, high)]:
            touched = cells.addresses(None)
            behind = touched >= address
            inside = touched[behind & (touched < address + MBARRIER_NBYTES)]
            if inside.size:
                init = self.inits[memory.space, address]
                self.add(Failure.LIVE, "error", init, 0, access, lanes, memory, inside)

    # -- findings -----------------------------------------------------------------

    def race(
        self,
        first: Access,
        made: int,
        second: Access,
        lanes: Sequence[int],
        view: int,
        memory: Bytes,
        addresses: NDArray[np.int64],
    ) -> None:
        """Count a race and say what is missing."""
        if self.on_pair is not None:
            self.on_pair(first, second, view)
        mine = _joined(lanes)
        failure = self.classify(first, made, second, mine, view)
        severity = self.severity(failure, first, second)
        self.add(failure, severity, first, made, second, lanes, memory, addresses)

    def classify(
        self, first: Access, made: int, second: Access, mine: int, view: int
    ) -> Failure:
        """Return which edge is missing between two accesses."""
        actor = second.actor

        def lacks(other: int) -> int:
            by = None if first.issuer else first.actor
            return actor.unordered(by, first.base, made, mine, other)

        if first.issuer:
            made = 1
        bits = made << first.base
        knows = [known for part, known in actor.groups if part & mine]
        if view in (TENSOR, UMMA) and not lacks(GENERIC):
            return Failure.TENSOR_AFTER
        if view == ASYNC and not lacks(GENERIC):
            return Failure.PROXY
        if view == GENERIC and not lacks(ASYNC):
            return Failure.BRIDGE
        of_two = first.actor.place != actor.place
        if of_two and "tcgen05.dealloc" in (first.operation, second.operation):
            return Failure.PEER
        if first.issuer and not first.together:
            if first.operation == "tcgen05.ld" and first.facts.get("used"):
                return Failure.REGISTERS
            known = first.actor.at(first.issuer)
            waited = not bits & ~(known.tensor | known.committed)
            of_tmem = view in (TENSOR, UMMA, EITHER)
            if of_tmem and first.actor is not actor and waited:
                return Failure.TENSOR_BEFORE
            same_thread = first.actor is actor and first.issuer == second.issuer
            pipelines = ("tcgen05.mma", "tcgen05.cp")
            if same_thread and second.operation in pipelines:
                return Failure.PIPELINE
            return Failure.LIFETIME
        if any(bits & known.unfenced for known in knows):
            return Failure.ACQUIRE
        if any(bits & known.hidden for known in knows):
            return Failure.SCOPE
        return Failure.LANE if first.actor is actor else Failure.SYNC

    def severity(self, failure: Failure, first: Access, second: Access) -> Severity:
        """How bad it is under this ordering."""
        if self.ordering == "ptx":
            return "error"
        if failure is Failure.REGISTERS:
            return "review"
        own = first.actor is second.actor and first.operation == "tcgen05.st"
        if failure in _SHIPPED or (own and second.operation == "tcgen05.ld"):
            return "allowed"
        if failure is Failure.PROXY:
            # The unit itself refuses an unfenced source except where kernels have it.
            relied_on = not first.is_write or second.operation == "tcgen05.mma"
            return "allowed" if relied_on else "error"
        return "error"

    def add(
        self,
        failure: Failure,
        severity: Severity,
        first: Access,
        made: int,
        second: Access,
        lanes: Sequence[int],
        memory: Bytes,
        addresses: NDArray[np.int64],
    ) -> None:
        """Put a race into the findings."""
        mine = _joined(lanes)
        at = [first.source or self.clock.locate(first.step)]
        # The event of the second access is still open.
        at.append(second.source or second.actor.source())

        def words() -> Race:
            scale = self.shadow(memory).scale
            runs = _runs(np.unique(addresses), scale)
            return Race(
                failure,
                severity,
                side(first, first.issuer or made or first.lanes, at[0]),
                side(second, mine, at[1]),
                memory.space,
                runs,
                memory.describe(runs[0][0]),
            )

        between = Statements(
            failure, severity, (first.operation, at[0]), (second.operation, at[1])
        )
        self.findings.add(words, between, first.actor.who, second.actor.who)


_SHIPPED = {
    Failure.BRIDGE,
    *(Failure.TENSOR_AFTER, Failure.TENSOR_BEFORE, Failure.PEER),
    Failure.EXIT,
}
"""What compiled, working kernels leave out."""


def _joined(lanes: Sequence[int]) -> int:
    """Join sets of lanes, given as bits."""
    return reduce(or_, lanes, 0)


def _runs(addresses: NDArray[np.int64], scale: int) -> tuple[tuple[int, int], ...]:
    """Join neighbouring cells: (first address, bytes)."""
    parts = np.split(addresses, np.flatnonzero(np.diff(addresses) != scale) + 1)
    return tuple((int(part[0]), int(part.size) * scale) for part in parts)
