"""Part 8. cluster: ranks, remote addresses, multicast masks, the cluster barrier.

Source: PTX, ``mapa`` and ``barrier.cluster``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.errors import ClusterFault
from fp4ref.hardware.shared_memory import RANK_SHIFT
from fp4ref.hardware.sm import Blocked, Cluster, Cta, Warp
from fp4ref.hardware.timing import Timed


def mapa(warp: Warp, address: int, rank: int) -> int:
    """``mapa.shared::cluster``: the same offset in the CTA of `rank`.

    Raises
    ------
    ClusterFault
        The cluster has no such rank.
    """
    mapped = rank << RANK_SHIFT | address & ((1 << RANK_SHIFT) - 1)
    warp.cta.peer_rank(mapped)
    return mapped


def multicast_targets(warp: Warp, mask: int) -> list[Cta]:
    """CTAs of a multicast mask, in rank order.

    Raises
    ------
    ClusterFault
        The mask is empty, or names a rank outside the cluster or one that has exited.
    """
    ctas = warp.cta.cluster.ctas
    if not 0 < mask < 1 << len(ctas):
        raise ClusterFault(
            f"multicast mask {mask:#06x}",
            who=warp.who,
            where=f"cluster of {len(ctas)} CTAs",
            rule="every bit of the mask is a rank of the cluster [PTX: multicast]",
            remedy="build the mask from the cluster shape",
        )
    targets = [cta for rank, cta in enumerate(ctas) if mask >> rank & 1]
    for cta in targets:
        cta.check_resident(warp, f"multicast with mask {mask:#06x}")
    return targets


def of_pair(cta: Cta, parity: int, what: str = "a pair", who: str = "") -> Cta:
    """CTA of rank parity `parity` in the pair of `cta`: the ranks 2i and 2i + 1.

    Raises
    ------
    ClusterFault
        The cluster ends before that rank.
    """
    ctas, rank = cta.cluster.ctas, cta.rank & ~1 | parity
    if rank >= len(ctas):
        raise ClusterFault(
            f"{what}: rank {cta.rank} has no peer",
            who=who or f"cta {cta.ctaid}",
            where=f"cluster of {len(ctas)} CTAs",
            rule="a CTA pair is two ranks of a cluster that differ in the last bit "
            "[PTX: CTA pair]",
            remedy="launch clusters of an even number of CTAs",
        )
    return ctas[rank]


@dataclass(frozen=True, slots=True)
class ClusterWait:
    """A warp waits at the cluster barrier."""

    cluster: Cluster
    this_round: int

    def ready(self) -> bool:
        """Whether every live warp of the cluster has arrived."""
        return self.cluster.rounds > self.this_round

    def visible_at(self, clock: Timed) -> float:
        """When the round is complete for a waiter."""
        key = "cluster", self.cluster.ctas[0].place.cluster, self.this_round
        return clock.marked(key, clock.durations.cluster_barrier)

    def describe(self) -> str:
        """How many warps came."""
        arrived, live = len(self.cluster.arrived), len(self.cluster.live)
        return f"barrier.cluster: {arrived} of {live} live warps have arrived"

    def released_by(self) -> str:
        """Return the warps that have not arrived."""
        missing = [w.who for w in self.cluster.live if w not in self.cluster.arrived]
        return ", ".join(missing)


def arrive(warp: Warp, relaxed: bool = False) -> int:
    """``barrier.cluster.arrive{.relaxed}``; returns the round to wait for.

    Raises
    ------
    ClusterFault
        The warp has arrived in this round already.
    """
    cluster = warp.cta.cluster
    if warp in cluster.arrived:
        raise ClusterFault(
            "barrier.cluster.arrive twice with no wait between",
            who=warp.who,
            where=f"round {cluster.rounds} of the cluster barrier",
            rule="every arrive is followed by a wait [PTX: barrier.cluster]",
            remedy="execute barrier.cluster.wait first",
        )
    this_round = cluster.rounds
    order, key = warp.machine.order, ("cluster", warp.cta.place.cluster)
    if relaxed:
        order.arrive_relaxed(warp.actor, key, this_round)
    else:
        order.arrive(warp.actor, key, this_round, "cluster")
    if warp.machine.clock is not None:
        warp.machine.clock.mark((*key, this_round))
    cluster.arrived.add(warp)
    cluster.settle()
    warp.record("barrier.cluster.arrive", {"round": this_round})
    return this_round


def wait(warp: Warp, this_round: int) -> Generator[Blocked, None, None]:
    """``barrier.cluster.wait``: until every live warp of the cluster has arrived."""
    yield from warp.wait(ClusterWait(warp.cta.cluster, this_round))
    key = ("cluster", warp.cta.place.cluster)
    warp.machine.order.leave(warp.actor, key, this_round, "cluster")
    warp.record("barrier.cluster.wait", {"round": this_round})
