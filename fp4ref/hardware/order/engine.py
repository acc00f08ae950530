"""engine: the `Order` of a machine, to which its units tell what they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fp4ref.hardware.order.access import Access
from fp4ref.hardware.order.async_access import AsyncAccess, Commit, learned
from fp4ref.hardware.order.book import NO_FACTS, Bytes
from fp4ref.hardware.order.knowledge import ASYNC, EITHER, Actor, Knowledge
from fp4ref.hardware.order.rules import Failure
from fp4ref.hardware.order.shadow import Saved
from fp4ref.hardware.order.thread_order import ThreadOrder, slots_of
from fp4ref.trace import Range


class Order(ThreadOrder):
    """Happens-before of one machine; see the package.

    Attributes
    ----------
    watches
        True: the units tell it what they do.
    """

    watches = True

    # -- asynchronous operations ----------------------------------------------------

    def issue(
        self,
        actor: Actor,
        operation: str,
        *,
        proxy: int = ASYNC,
        whole_warp: bool = False,
        facts: Mapping[str, Any] = NO_FACTS,
    ) -> AsyncAccess:
        """Return the accesses of an operation that the first executing lane issues."""
        lane = actor.active if whole_warp else actor.first
        return AsyncAccess(self, actor, operation, lane, proxy, facts)

    def queue(self, op: AsyncAccess) -> None:
        """Count a cp or mma to what the thread's next commit carries.

        With it goes what it came after itself: the pipeline keeps that order.
        """
        known = op.actor.at(op.lane)
        done = op.actor.tcgen05.setdefault(op.lane, [0, 0])
        done[0] |= op.memory_bits | op.actor.handed_over(op.lane)
        done[1] |= op.tensor_bits | known.tensor

    def commit(self, actor: Actor) -> Commit:
        """``tcgen05.commit`` by the first executing lane."""
        done = actor.tcgen05.get(actor.first, [0, 0])
        return Commit(
            self,
            actor,
            "tcgen05.commit",
            actor.first,
            done_async=done[0],
            done_tensor=done[1],
        )

    def drain(self, actor: Actor, operations: Sequence[AsyncAccess]) -> None:
        """Complete operations for the threads that issued them and wait now."""
        lanes = sorted({op.lane for op in operations})
        for lane in lanes:
            if mine := lane & actor.active:
                actor.learn(
                    mine, learned((op for op in operations if op.lane == lane), lane)
                )

    def bulk_store(self, source: AsyncAccess, target: AsyncAccess) -> None:
        """Note a bulk store: its read and its write are two milestones."""
        bulk = source.actor.bulk
        bulk.open.setdefault(source.lane, []).append((source, target))

    def commit_group(self, actor: Actor) -> None:
        """``cp.async.bulk.commit_group``."""
        actor.bulk.commit(actor.active)

    def wait_group(self, actor: Actor, pending: int, read: bool) -> None:
        """``cp.async.bulk.wait_group{.read}``: each thread for its own groups."""
        for lanes, groups in actor.bulk.groups.items():
            done = groups[: max(0, len(groups) - pending)]
            if not lanes & actor.active or not done:
                continue
            stores = [store for group in done for store in group]
            self.drain(actor, [source for source, _ in stores])
            if not read:
                self.drain(actor, [target for _, target in stores])
                del groups[: len(done)]

    def fence_tensor(self, actor: Actor, *, before: bool) -> None:
        """``tcgen05.fence``."""
        actor.fence_tensor(actor.active, before)

    # -- TMEM ---------------------------------------------------------------------

    def alloc(
        self,
        actor: Actor,
        tmem: Bytes,
        slots: Iterable[int],
        peers: Sequence[Bytes] = (),
    ) -> None:
        """``tcgen05.alloc``: its warp owns the columns of some slots.

        `peers` is the TMEM of the other CTA of a pair: the first alloc of the two sets
        its columns aside too, so a use of them needs to come after either one.
        """
        base = self.ids.single(tmem.space)
        access = self.enter(
            actor, base, 1, "tcgen05.alloc", True, issuer=actor.active, together=True
        )
        actor.learn(actor.active, Knowledge(1 << base))
        for slot in slots:
            for memory in (tmem, *peers):
                self.allocations.setdefault((memory.space, slot), []).append(access)

    def dealloc(
        self, actor: Actor, tmem: Bytes, where: Range, peers: Sequence[Bytes] = ()
    ) -> None:
        """``tcgen05.dealloc``: all accesses of the columns come before it.

        Parameters
        ----------
        peers
            TMEM of the other CTA of a pair. The deallocations of both are one, and not
            ordered: the columns are in use until the second one.
        """
        for memory in (tmem, *peers):
            there = where._replace(space=memory.space)
            shadow = self.shadow(memory)
            cells = shadow.cells(there)
            first = self.half_freed.pop(there, None) if peers else None
            if first is not None:
                other, saved = first
                made = self.table.encode(((other.number, other.lanes),))
                saved.restore(cells, made)
            before = Saved(shadow, cells) if peers and first is None else None
            base = actor.access(memory.space, actor.active)
            access = self.enter(actor, base, actor.active, "tcgen05.dealloc", True)
            self.check_alloc(access, memory, there, every=True)
            self.touch(access, memory, there, (actor.active,), EITHER)
            if before is not None:
                self.half_freed[there] = access, before
                continue
            for frontier in (shadow.writers, shadow.readers):
                cells.put(frontier, 0, None)
            for slot in slots_of(there):
                self.allocations.pop((memory.space, slot), None)

    # -- the end of a CTA -----------------------------------------------------------

    def exit(self, actors: Sequence[Actor], smem: Bytes) -> None:
        """Report what may still use shared memory that goes with its CTA."""
        known = 0
        for actor in actors:
            generic, async_ = actor.exported(-1)
            known |= generic | async_
        last = actors[0]
        place = last.place
        access = self.enter(last, 0, 1, "exit", True)
        shadow = self.shadows.get(smem.space)
        if shadow is not None:
            self._check_exit(access, shadow, smem, known)
        for (space, address), phases in list(self.phases.items()):
            if space == smem.space:
                for numbers in phases.signals.values():
                    first = self.accesses[numbers[-1] - 1]
                    self._left(first, access, smem, np.array([address], np.int64))
                for number in (n for some in phases.remote.values() for n in some):
                    first = self.accesses[number - 1]
                    if first.lanes & ~(known >> first.base):
                        self._left(first, access, smem, np.array([address], np.int64))
                del self.phases[space, address]
        self.forget(smem.space, place)

    def _check_exit(self, access: Access, shadow: Any, smem: Bytes, known: int) -> None:
        """Report witnesses of other agents that no thread of the CTA has seen end."""
        place = access.actor.place
        for frontier in (shadow.writers, shadow.readers):
            for value in np.unique(frontier[frontier != 0]):
                for number, made in self.table.decode(int(value)):
                    first = self.accesses[number - 1]
                    is_async = first.issuer and not first.together
                    foreign = is_async or first.actor.place != place
                    made = 1 if first.issuer else made
                    if foreign and made & ~(known >> first.base):
                        at = np.flatnonzero(frontier == value) + shadow.base
                        self._left(first, access, smem, at)

    def _left(self, first: Access, access: Access, smem: Bytes, at: Any) -> None:
        severity = self.severity(Failure.EXIT, first, access)
        if severity == "error" and first.operation.endswith(".store"):
            # The text does not say how long the source of a bulk store lives.
            severity = "review"
        lanes = (access.lanes,)
        self.add(Failure.EXIT, severity, first, 0, access, lanes, smem, at)
