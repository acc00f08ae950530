"""thread_order: barriers, fences and words, through which threads order each other."""

from __future__ import annotations

from bisect import insort

import numpy as np

from fp4ref.hardware.order.access import SCOPES, Access
from fp4ref.hardware.order.book import MBARRIER_NBYTES, Book, Bytes
from fp4ref.hardware.order.knowledge import ASYNC, GENERIC, Actor, Knowledge
from fp4ref.hardware.order.race import Severity
from fp4ref.hardware.order.released import Phases, Released
from fp4ref.hardware.order.rules import Failure
from fp4ref.hardware.order.shadow import Saved
from fp4ref.trace import Range

_OBJECT = "mbarrier"
"""Accesses of mbarrier objects have ids of their own, which two fences name."""

_LANE_NBYTES, _SLOT_NBYTES = 2048, 32 * 4
"""Bytes of a TMEM lane, and of a lane in one slot of the allocator."""


class ThreadOrder(Book):
    """The objects by which threads order each other."""

    def begin(self) -> None:
        """Start a launch."""
        super().begin()
        self.rounds: dict[tuple[object, int], Released] = {}
        self.phases: dict[tuple[str, int], Phases] = {}
        self.words: dict[tuple[str, int], Released] = {}
        self.allocations: dict[tuple[str, int], list[Access]] = {}
        self.half_freed: dict[Range, tuple[Access, Saved]] = {}
        self._silent: set[tuple[object, Actor]] = set()
        self._unfenced_inits: dict[tuple[object, int], int] = {}
        self._met_unfenced: dict[Actor, int] = {}

    def scope(self, named: str) -> int:
        """Return how far a scope reaches; one that is not named is ``.cta``.

        Shipped kernels name none and expect the cluster.
        """
        default = "cta" if self.ordering == "ptx" else "cluster"
        return SCOPES[named or default]

    # -- barriers of a CTA, of a cluster and of a warp ------------------------------

    def arrive(self, actor: Actor, barrier: object, turn: int, scope: str) -> None:
        """Give knowledge to the round `turn` of a barrier."""
        self.rounds.pop((barrier, turn - 2), None)
        released = self.rounds.setdefault((barrier, turn), Released())
        released.add(actor.place, SCOPES[scope], *actor.exported(actor.active))

    def leave(self, actor: Actor, barrier: object, turn: int, scope: str) -> None:
        """Take what was given to a round that is complete."""
        released = self.rounds.get((barrier, turn))
        if released is not None:
            actor.learn(actor.active, released.seen_from(actor.place, SCOPES[scope]))
        met = self._met_unfenced.get(actor, 0)
        self._met_unfenced[actor] = met | self._unfenced_inits.get((barrier, turn), 0)
        if actor.active == actor.lanes and (barrier, actor) not in self._silent:
            actor.fold()
        self._silent.discard((barrier, actor))

    def arrive_relaxed(self, actor: Actor, barrier: object, turn: int) -> None:
        """Arrive and give only what an earlier fence released."""
        released = self.rounds.setdefault((barrier, turn), Released())
        self._silent.add((barrier, actor))
        for scope, generic, async_ in self._fenced(actor, actor.active):
            released.add(actor.place, scope, generic, async_)
        inits = actor.exported(actor.active)[0] & self.ids.of((_OBJECT,))
        before = self._unfenced_inits.get((barrier, turn), 0)
        self._unfenced_inits[barrier, turn] = before | inits

    def meet(self, actor: Actor, mask: int) -> None:
        """``bar.warp.sync`` of the lanes in `mask`."""
        actor.meet(mask & actor.lanes)

    # -- fences -------------------------------------------------------------------

    def fence_proxy_async(self, actor: Actor, spaces: tuple[str, ...] | None) -> None:
        """``fence.proxy.async``, for some memories or for all."""
        if spaces is not None and any(s.startswith("smem") for s in spaces):
            spaces = (*spaces, _OBJECT)
        actor.fence_proxy(actor.active, self.ids.of(spaces))

    def fence_mbarrier_init(self, actor: Actor) -> None:
        """``fence.mbarrier_init.release.cluster``: the lane's inits, for both proxies.

        A relaxed arrival that follows releases them [PTX: membar, example].
        """
        objects = self.ids.of((_OBJECT,))
        actor.fence_proxy(actor.active, objects)
        for lane in _bits(actor.active):
            generic, async_ = actor.exported(lane)
            released = generic & objects, async_ & objects
            actor.init_fences[lane] = (SCOPES["cluster"], *released)

    def fence(self, actor: Actor, semantics: str, scope: str) -> None:
        """``fence.acq_rel`` and its halves, ``membar``."""
        if semantics != "acquire":
            for lane in _bits(actor.active):
                actor.fences[lane] = (SCOPES[scope], *actor.exported(lane))
        if semantics != "release":
            actor.acquire_unfenced(actor.active)

    def _fenced(self, actor: Actor, lanes: int) -> list[tuple[int, int, int]]:
        """What release fences before a relaxed write give it."""
        fences = (*actor.fences.items(), *actor.init_fences.items())
        return [found for lane, found in fences if lane & lanes]

    # -- strong accesses of a word --------------------------------------------------

    def strong_read(
        self, actor: Actor, lane: int, at: tuple[str, int], acquires: bool, scope: str
    ) -> None:
        """Read a word by ``ld.relaxed``, ``ld.acquire`` or ``atom``."""
        if (released := self.words.get(at)) is not None:
            more = released.seen_from(actor.place, SCOPES[scope], acquires)
            actor.learn(lane, more)

    def strong_write(
        self,
        actor: Actor,
        lane: int,
        at: tuple[str, int],
        releases: bool,
        scope: str,
        *,
        modifies: bool,
    ) -> None:
        """Write a word by ``st.relaxed``, ``st.release`` or ``atom``.

        A read-modify-write keeps what earlier releases left: who reads it has read
        them [PTX: observation order].
        """
        released = self.words.get(at) if modifies else None
        if released is None:
            released = self.words[at] = Released()
        reach = SCOPES[scope]
        if releases:
            released.add(actor.place, reach, *actor.exported(lane))
        for wide, generic, async_ in self._fenced(actor, lane):
            released.add(actor.place, min(wide, reach), generic, async_)

    def weak_write(self, space: str, addresses: list[int]) -> None:
        """Overwrite words with values that release nothing."""
        for address in addresses:
            self.words.pop((space, address), None)

    # -- mbarriers ----------------------------------------------------------------

    def mbarrier_init(self, actor: Actor, smem: Bytes, address: int) -> None:
        """``mbarrier.init``: a write of the object and of its bytes."""
        access = self._object(actor, smem, address, "mbarrier.init", True)
        self.phases[smem.space, address] = Phases(access.number)
        self.inits[smem.space, address] = access
        insort(self.live.setdefault(smem.space, []), address)

    def mbarrier_inval(self, actor: Actor, smem: Bytes, address: int) -> None:
        """``mbarrier.inval``: every other use comes before it."""
        phases = self.phases.pop((smem.space, address), None)
        access = self._object(actor, smem, address, "mbarrier.inval", True)
        if address in self.live.get(smem.space, ()):
            self.live[smem.space].remove(address)
        if phases is None:
            return
        signals = [number for some in phases.signals.values() for number in some]
        for number in (*phases.users.values(), *signals):
            made = self.accesses[number - 1].lanes
            if number in signals or self.missing(
                number, made, access, actor.active, GENERIC
            ):
                self._object_race(Failure.INVAL, "error", number, access, smem, address)

    def _object(
        self, actor: Actor, smem: Bytes, address: int, operation: str, is_write: bool
    ) -> Access:
        """Write down an access of an mbarrier by a thread."""
        base = actor.access(_OBJECT, actor.active)
        access = self.enter(actor, base, actor.active, operation, is_write)
        if is_write:
            where = Range(smem.space, address, MBARRIER_NBYTES)
            self.touch(access, smem, where, (actor.active,), GENERIC)
        return access

    def mbarrier_use(
        self, actor: Actor, smem: Bytes, address: int, operation: str
    ) -> None:
        """Check that the init is ordered before a thread's use of an mbarrier."""
        phases = self.phases.get((smem.space, address))
        if phases is not None:
            access = self._object(actor, smem, address, operation, False)
            self.check_init(phases, access, actor.active, GENERIC, smem, address)
            phases.users[actor] = access.number

    def check_init(
        self,
        phases: Phases,
        access: Access,
        mine: int,
        view: int,
        smem: Bytes,
        address: int,
    ) -> None:
        """Report a use that the init is not ordered before.

        Up to PTX 9.2 the text does not say through which proxy an asynchronous
        operation reaches its mbarrier; from 9.3 on it is the generic one. So it is for
        review that a barrier alone stands between the init and such an operation.

        CUTLASS's kernels of CTA pairs init one mbarrier after their last fence, and
        rely on a relaxed cluster barrier.
        """
        made = self.accesses[phases.init - 1].lanes
        if not self.missing(phases.init, made, access, mine, view):
            return
        known = not self.missing(phases.init, made, access, mine, GENERIC)
        severity: Severity = "error"
        if view == ASYNC and known:
            severity = "allowed" if self.ordering == "shipped" else "review"
        elif view == GENERIC and self.ordering == "shipped":
            init, met = self.accesses[phases.init - 1], self._met_unfenced
            if not made << init.base & ~met.get(access.actor, 0):
                severity = "allowed"
        self._object_race(Failure.INIT, severity, phases.init, access, smem, address)

    def _object_race(
        self,
        failure: Failure,
        severity: Severity,
        first: int,
        access: Access,
        smem: Bytes,
        address: int,
    ) -> None:
        """Report two operations on an mbarrier."""
        earlier = self.accesses[first - 1]
        if self.on_pair is not None:
            self.on_pair(earlier, access, GENERIC)
        word = address + np.arange(MBARRIER_NBYTES)
        self.add(failure, severity, earlier, 0, access, (access.lanes,), smem, word)

    def mbarrier_release(
        self,
        actor: Actor,
        smem: Bytes,
        address: int,
        phase: int,
        scope: str = "",
        *,
        relaxed: bool = False,
    ) -> None:
        """Give knowledge to the phase in which the executing lanes arrive."""
        phases = self.phases.get((smem.space, address))
        if phases is None:
            return
        released, reach = phases.of(phase), self.scope(scope)
        if actor.place != self.places[smem.space] and actor in phases.users:
            phases.remote.setdefault(phase, []).append(phases.users[actor])
        if relaxed:
            for wide, generic, async_ in self._fenced(actor, actor.active):
                released.add(actor.place, min(wide, reach), generic, async_)
        else:
            released.add(actor.place, reach, *actor.exported(actor.active))

    def mbarrier_acquire(
        self,
        actor: Actor,
        smem: Bytes,
        address: int,
        completed: int,
        scope: str = "",
        *,
        relaxed: bool = False,
    ) -> None:
        """Take what the completed phases released: a wait or a test came true."""
        phases = self.phases.get((smem.space, address))
        if phases is None:
            return
        done = phases.observe(completed)
        more = done.seen_from(actor.place, self.scope(scope), not relaxed)
        actor.learn(actor.active, more)
        for lane in _bits(actor.active) if phases.commits else ():
            commits = phases.commits.get((actor, lane), [])
            ended = [tensor for phase, tensor in commits if phase < completed]
            for tensor in ended:
                actor.learn(lane, Knowledge(committed=tensor))
            if ended:
                commits[:] = [each for each in commits if each[0] >= completed]

    # -- TMEM ---------------------------------------------------------------------

    def check_alloc(
        self, access: Access, tmem: Bytes, where: Range, *, every: bool = False
    ) -> None:
        """Report a use of columns whose allocation is not ordered before it.

        Of the two allocs of a pair one is enough, unless `every` one is asked for.
        """
        mine = access.issuer or access.lanes
        for slot in slots_of(where):
            owners = self.allocations.get((tmem.space, slot), [])
            late = [
                owner
                for owner in owners
                if self.missing(owner.number, owner.lanes, access, mine, GENERIC)
            ]
            if late and (every or len(late) == len(owners)):
                at = np.array([where.start], np.int64)
                self.add(Failure.SYNC, "error", late[0], 0, access, (mine,), tmem, at)
                return


def slots_of(where: Range) -> range:
    """Slots of the TMEM allocator that a block of cells lies in."""
    first = where.start % _LANE_NBYTES
    return range(first // _SLOT_NBYTES, (first + where.nbytes - 1) // _SLOT_NBYTES + 1)


def _bits(mask: int) -> list[int]:
    """Return the bits of a mask, each by itself."""
    return [1 << i for i in range(mask.bit_length()) if mask >> i & 1]
