"""cta_pair: two CTAs of a cluster whose tensor cores do one operation together.

Their ranks differ in the last bit only. The even one is called the leader, because
CUTLASS lets it issue; PTX lets a thread of either. The k-th ``tcgen05.alloc`` of both
is one allocation. Neither waits for the other here, though the instruction may:
whoever relies on that waiting is found out. Source: PTX, CTA pair, issue granularity.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from fp4ref.errors import ClusterFault, TmemAllocationFault
from fp4ref.hardware.cluster import of_pair
from fp4ref.hardware.sm import Cta, Warp


@dataclass(slots=True, eq=False)
class CtaPair:
    """An even CTA, the one after it, and the TMEM that they allocate together.

    Attributes
    ----------
    claims
        By last bit of the rank: columns that the other CTA's ``tcgen05.alloc`` has set
        aside, (first column, columns), for the next one of this CTA.
    """

    ctas: tuple[Cta, Cta]
    claims: tuple[deque[tuple[int, int]], deque[tuple[int, int]]] = field(
        default_factory=lambda: (deque(), deque())
    )

    def other(self, cta: Cta) -> Cta:
        """Return the peer of a CTA of the pair."""
        return self.ctas[1 - (cta.rank & 1)]

    def claims_of(self, cta: Cta) -> deque[tuple[int, int]]:
        """Return what the peer has set aside for a CTA, oldest first."""
        return self.claims[cta.rank & 1]

    def claimed(self, warp: Warp, columns: int) -> int:
        """First column of the allocation that the peer has begun.

        Raises
        ------
        TmemAllocationFault
            The peer asked for another number of columns.
        """
        column, of_peer = self.claims_of(warp.cta).popleft()
        if of_peer != columns:
            raise TmemAllocationFault(
                f"tcgen05.alloc of {columns} columns where cta "
                f"{self.other(warp.cta).ctaid} asked for {of_peer}",
                who=warp.who,
                where=warp.tmem.space,
                rule="one warp of each CTA of a pair performs an allocation, both for "
                "the same columns [PTX: tcgen05.alloc]",
                remedy="let both CTAs allocate alike, in the same order",
            )
        return column

    def claim(self, cta: Cta, column: int, columns: int) -> None:
        """Allocate columns for the peer of `cta` too, whose alloc is still to come."""
        peer = self.other(cta)
        peer.tmem.set_aside(column, columns)
        self.claims_of(peer).append((column, columns))

    def free(self, warp: Warp, column: int, columns: int) -> None:
        """Give columns back for one CTA; they are free when both have.

        Raises
        ------
        TmemAllocationFault
            The peer has not executed its ``tcgen05.alloc`` of them.
        """
        peer = self.other(warp.cta)
        if (column, columns) in self.claims_of(peer):
            raise TmemAllocationFault(
                f"tcgen05.dealloc of {columns} columns before cta {peer.ctaid}, the "
                "peer, has executed its tcgen05.alloc of them",
                who=warp.who,
                where=peer.tmem.describe(column * 4),
                rule="both CTAs of a pair perform an allocation and its deallocation, "
                "and neither waits for the other for certain [PTX: tcgen05.alloc, "
                "issue granularity]",
                remedy="put a cluster barrier between tcgen05.alloc and "
                "tcgen05.dealloc",
            )
        warp.tmem.hold(column, columns)
        if column not in peer.tmem.sizes:
            for cta in self.ctas:
                cta.tmem.release(column, columns)


def pair_of(warp: Warp, what: str) -> CtaPair:
    """Return the pair of a warp's CTA.

    Raises
    ------
    ClusterFault
        There is no peer.
    """
    cta = warp.cta
    pairs = cta.cluster.pairs
    pair: CtaPair | None = pairs.get(cta.rank // 2)
    if pair is None:
        even = of_pair(cta, 0, what, warp.who)
        pair = CtaPair((even, of_pair(cta, 1, what, warp.who)))
        pairs[cta.rank // 2] = pair
    return pair


def participants(
    warp: Warp, cta_group: int, what: str, *, last: bool = False
) -> tuple[Cta, ...]:
    """CTAs that take part in a tcgen05 operation: the own one, or a pair, even first.

    Parameters
    ----------
    last
        Whether the peer may have exited, after its own deallocation.

    Raises
    ------
    ClusterFault
        There is no peer, it has exited, or the kernel uses the other group too.
    """
    machine = warp.machine
    if machine.cta_group != cta_group:
        if machine.cta_group:
            raise ClusterFault(
                f"{what}.cta_group::{cta_group} in a kernel that has executed "
                f"{machine.cta_group_user}",
                who=warp.who,
                where=f"cluster of {len(warp.cta.cluster.ctas)} CTAs",
                rule="all tcgen05 instructions of a kernel have the same .cta_group "
                "[PTX: tcgen05.alloc]",
                remedy="use one group, for alloc, dealloc, cp, mma and commit alike",
            )
        machine.cta_group = cta_group
        machine.cta_group_user = f"{what}.cta_group::{cta_group} by {warp.who}"
    if cta_group == 1:
        return (warp.cta,)
    pair = pair_of(warp, what)
    peer = pair.other(warp.cta)
    if peer.finished and not last:
        raise ClusterFault(
            f"{what}.cta_group::2 after the peer has exited",
            who=warp.who,
            where=f"peer: cta {peer.ctaid}",
            rule="when one CTA of a pair issues, the other one is active and has not "
            "exited [PTX: issue granularity]",
            remedy="let both CTAs pass a cluster barrier before they return",
        )
    return pair.ctas


def with_group(operands: dict[str, Any], cta_group: int) -> dict[str, Any]:
    """Return operands for the trace, with the group if it is a pair."""
    return operands | {"cta_group": cta_group} if cta_group > 1 else operands
