"""knowledge: what is ordered before the next access of each lane of a warp.

Every access belongs to an *id*. A set of ids is a Python integer, one bit for each. A
lane has three such sets, because PTX orders an access only for the proxy that its path
ends in: ``generic`` for ordinary accesses, ``async_`` for what it hands to the async
proxy, ``tensor`` for its tcgen05 operations on TMEM.

Accesses of one warp to one memory share an id until the warp gives its knowledge away:
nobody can tell them apart. Warps of compiled code have 32 ids in a row, one for each
lane. The emulator's warps move as one and have a single id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

GENERIC, ASYNC, TENSOR = 0, 1, 2
"""Which set of a `Knowledge` an access looks at."""

EITHER = 3
"""The generic or the tensor set: for ``tcgen05.dealloc``, which is not asynchronous."""

UMMA = 4
"""The tensor set and what own commits completed: for ``tcgen05.mma`` and ``cp``."""

TENSORMAP = 5
"""For the use of a tensor map: what fences of the tensormap proxy cover."""

BLOCK = 32
"""Ids that are given out together, so that lane l of a warp has the l-th."""


MOST_IDS = 1 << 22
"""Ids of a launch; a set of them has one bit for each, 512 KiB in all."""


class Knowledge(NamedTuple):
    """What is ordered before the next access of some lanes.

    Attributes
    ----------
    generic, async_, tensor
        Ids, by the proxy of that access.
    hidden
        Ids that were released to a scope that does not reach these lanes.
    unfenced
        Ids that relaxed reads saw: an acquire fence orders them.
    committed
        tcgen05 operations that the lanes' own commits completed.
    """

    generic: int = 0
    async_: int = 0
    tensor: int = 0
    hidden: int = 0
    unfenced: int = 0
    committed: int = 0

    def plus(self, other: Knowledge) -> Knowledge:
        """Join two."""
        return Knowledge(
            self.generic | other.generic,
            self.async_ | other.async_,
            self.tensor | other.tensor,
            self.hidden | other.hidden,
            self.unfenced | other.unfenced,
            self.committed | other.committed,
        )


class Ids:
    """Gives out ids, and knows which of them are accesses of which memory."""

    def __init__(self) -> None:
        self.next = 0
        self.of_space: dict[str, int] = {}
        self.of_tmem = 0
        self._single = 0
        self._singles_left = 0

    @property
    def full(self) -> bool:
        """Whether there are no more new ids: the last ones are given out again."""
        return self.next >= MOST_IDS

    def _new(self) -> int:
        """First of `BLOCK` new ids."""
        if not self.full:
            self.next += BLOCK
        return self.next - BLOCK

    def block(self, space: str, width: int) -> int:
        """First of `width` new ids for accesses of `space`."""
        if width == 1:
            return self.single(space)
        base = self._new()
        self._add(space, (1 << width) - 1 << base)
        return base

    def single(self, space: str) -> int:
        """One new id."""
        if not self._singles_left:
            self._single, self._singles_left = self._new(), BLOCK
        base = self._single
        self._single += 1
        self._singles_left -= 1
        self._add(space, 1 << base)
        return base

    def also_of(self, base: int, space: str) -> None:
        """Count one id to another memory too: an operation of two CTAs."""
        self._add(space, 1 << base)

    def _add(self, space: str, bits: int) -> None:
        """Note what ids are accesses of."""
        self.of_space[space] = self.of_space.get(space, 0) | bits
        if space.startswith("tmem"):
            self.of_tmem |= bits

    def of(self, spaces: tuple[str, ...] | None) -> int:
        """Return the ids of accesses of some memories; None is all of them."""
        if spaces is None:
            return -1
        found = 0
        for space in spaces:
            found |= self.of_space.get(space, 0)
        return found


class Place(NamedTuple):
    """Where a thread runs: its cluster and its CTA, as numbers of the launch."""

    cluster: int
    cta: int


class BulkGroups:
    """Bulk stores of a warp's threads, by the lanes that issued them.

    Attributes
    ----------
    open, groups
        Those that no commit has closed, and the committed groups, oldest first: each
        store is the pair of what reads its source and what writes its target.
    """

    def __init__(self) -> None:
        self.open: dict[int, list[Any]] = {}
        self.groups: dict[int, list[list[Any]]] = {}

    def commit(self, active: int) -> None:
        """``cp.async.bulk.commit_group`` by the lanes `active`."""
        for lanes, stores in self.open.items():
            if lanes & active:
                self.groups.setdefault(lanes, []).append(list(stores))
                stores.clear()


class Actor:
    """The lanes of one warp.

    Attributes
    ----------
    lanes, active
        Lanes that have not exited, and those that execute now.
    groups
        Lanes with equal knowledge, and that knowledge.
    own
        By first id of a block: which lanes made an access in it, and which of them
        have fenced it for the async proxy. Every lane knows its own bit only; once all
        lanes know all, the entry moves to the groups.
    """

    def __init__(
        self, ids: Ids, who: str, place: Place, source: Callable[[], str]
    ) -> None:
        self.ids, self.who, self.place, self.source = ids, who, place, source
        self.width = 1
        self.lanes = self.active = 1
        self.groups: list[tuple[int, Knowledge]] = [(1, Knowledge())]
        self.own: dict[int, list[int]] = {}
        self.open: dict[str, int] = {}
        self.fences: dict[int, tuple[int, int, int]] = {}
        self.init_fences: dict[int, tuple[int, int, int]] = {}
        self.tcgen05: dict[int, list[int]] = {}
        self.bulk = BulkGroups()

    def widen(self, lanes: int) -> None:
        """Say that the lanes act one by one, before their first access."""
        self.width = BLOCK
        self.lanes = self.active = lanes
        self.groups = [(lanes, Knowledge())]

    @property
    def first(self) -> int:
        """Lowest executing lane."""
        return self.active & -self.active

    @property
    def executing(self) -> list[int] | None:
        """Each executing lane, as a bit; None for a warp that acts as one."""
        if self.width == 1:
            return None
        return [1 << i for i in range(BLOCK) if self.active >> i & 1]

    def at(self, lane: int) -> Knowledge:
        """Return what the groups know for one lane, given as a bit."""
        for mask, known in self.groups:
            if mask & lane:
                return known
        return Knowledge()

    def handed_over(self, lane: int) -> int:
        """Return what one lane has ordered before the async proxy, its own included."""
        found = self.at(lane).async_
        for base, own in self.own.items():
            found |= (own[ASYNC] & lane) << base
        return found

    # -- own accesses -------------------------------------------------------------

    def access(self, space: str, mask: int) -> int:
        """First id for an access of `space` by the lanes of `mask`."""
        base = self.open.get(space, -1)
        if base < 0:
            base = self.open[space] = self.ids.block(space, self.width)
            self.own[base] = [0, 0]
        self.own[base][GENERIC] |= mask
        return base

    def exported(self, mask: int) -> tuple[int, int]:
        """Return what the lanes of `mask` can give away: generic and async ids.

        Later accesses get new ids: they are not among these.
        """
        generic = async_ = 0
        for lanes, known in self.groups:
            if lanes & mask:
                generic |= known.generic
                async_ |= known.async_
        for base, (made, fenced) in self.own.items():
            generic |= (made & mask) << base
            async_ |= (fenced & mask) << base
        self.open.clear()
        if self.width == 1:
            self.fold()
        return generic, async_

    def fold(self) -> None:
        """Let all lanes know what each of them knew of itself."""
        generic = async_ = 0
        for base, (made, fenced) in self.own.items():
            generic |= made << base
            async_ |= fenced << base
        self.own.clear()
        self.open.clear()
        self.learn(self.lanes, Knowledge(generic, async_))

    # -- what others give ---------------------------------------------------------

    def learn(self, mask: int, more: Knowledge) -> None:
        """Order `more` before what the lanes of `mask` do next."""
        self.groups = [
            (part, known.plus(more) if taken else known)
            for part, known, taken in self._parts(mask)
        ]
        self._merge()

    def _parts(self, mask: int) -> list[tuple[int, Knowledge, bool]]:
        """Split the groups at `mask`: lanes, knowledge, whether they are in it."""
        parts = []
        for lanes, known in self.groups:
            if lanes & mask:
                parts.append((lanes & mask, known, True))
            if lanes & ~mask:
                parts.append((lanes & ~mask, known, False))
        return parts

    def _merge(self) -> None:
        """Join lanes that know the same."""
        if len(self.groups) > 1:
            joined: dict[Knowledge, int] = {}
            for lanes, known in self.groups:
                joined[known] = joined.get(known, 0) | lanes
            self.groups = [(lanes, known) for known, lanes in joined.items()]

    def meet(self, mask: int) -> None:
        """``bar.warp.sync``: the lanes of `mask` learn what each of them knows."""
        generic, async_ = self.exported(mask)
        self.learn(mask, Knowledge(generic, async_))
        if mask & self.lanes == self.lanes:
            self.fold()

    # -- fences -------------------------------------------------------------------

    def fence_proxy(self, mask: int, within: int) -> None:
        """Order the ids `within` for both proxies, each lane for itself."""
        groups = []
        for lanes, known, taken in self._parts(mask):
            if taken:
                known = known._replace(
                    generic=known.generic | known.async_ & within,
                    async_=known.async_ | known.generic & within,
                )
            groups.append((lanes, known))
        self.groups = groups
        self._merge()
        for base, own in self.own.items():
            own[ASYNC] |= own[GENERIC] & mask & (within >> base)
        self.open.clear()

    def fence_tensor(self, mask: int, before: bool) -> None:
        """``tcgen05.fence``: before a thread sync, or after one.

        It orders tcgen05 operations only; a later commit carries no ``ld.shared``.
        """
        if self.width == 1:
            self.fold()
        groups = []
        for lanes, known, taken in self._parts(mask):
            if taken and before:
                known = known._replace(generic=known.generic | known.tensor)
            elif taken:
                mine = known.generic & self.ids.of_tmem
                known = known._replace(tensor=known.tensor | mine)
            groups.append((lanes, known))
        self.groups = groups
        self._merge()

    def acquire_unfenced(self, mask: int) -> None:
        """Order what relaxed reads saw: an acquire fence."""
        groups = []
        for lanes, known, taken in self._parts(mask):
            if taken and known.unfenced:
                generic = known.generic | known.unfenced
                known = known._replace(generic=generic, unfenced=0)
            groups.append((lanes, known))
        self.groups = groups
        self._merge()

    # -- the question -------------------------------------------------------------

    def unordered(
        self, by: Actor | None, base: int, made: int, mine: int, view: int
    ) -> int:
        """Return which of the lanes `made` of an access are unordered before `mine`.

        Parameters
        ----------
        by, base, made
            Who made the access, its first id, and the lanes that did.
        mine, view
            Lanes that access now, and the proxy they use.
        """
        if view == EITHER:
            return self.unordered(by, base, made, mine, GENERIC) & self.unordered(
                by, base, made, mine, TENSOR
            )
        found = 0
        for lanes, known in self.groups:
            here = lanes & mine
            if not here:
                continue
            seen = known.tensor | known.committed if view == UMMA else known[view]
            missing = made & ~(seen >> base)
            # A lane knows its own bit; of several lanes each misses the others'.
            alone = not here & (here - 1)
            if missing and alone and by is self and base in self.own and view < TENSOR:
                missing &= ~(self.own[base][view] & here)
            found |= missing
        return found
