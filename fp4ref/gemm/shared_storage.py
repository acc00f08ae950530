"""Parts 1 and 4. shared_storage: what the warps of one CTA share, by address.

CUTLASS's ``SharedStorage``: the rings of barriers, the stage buffers, the CLC responses
and the word that receives the TMEM address. Their places and arrival counts are the
plan's tables.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from fp4ref.gemm.cta_in_cluster import CtaInCluster
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Ring, Signals
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.plan.rings import Arrivals
from fp4ref.gemm.plan.warps import NamedBarrierId, WarpRole
from fp4ref.hardware import cluster, mbarrier, named_barrier
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.hardware.shared_memory import Signaller
from fp4ref.hardware.sm import Blocked, Cta, Warp


@dataclass(frozen=True)
class SharedStorage:
    """One CTA's view of plan, parameters and addresses."""

    plan: Plan
    params: GemmParams
    base: int
    cta: CtaInCluster

    @classmethod
    def of(cls, cta: Cta, plan: Plan, params: GemmParams) -> SharedStorage:
        """Place everything from the CTA's shared base."""
        cluster_m, cluster_n, _ = plan.cluster
        x, y, _ = cta.ctaid
        at = CtaInCluster(
            x % cluster_m, y % cluster_n, cluster_m, cluster_n, plan.cta_group
        )
        return cls(plan, params, cta.smem_base, at)

    def ring(self, name: str) -> Ring:
        """Return the barriers of a ring at their shared addresses.

        Arrival counts without a cluster, frames 1.2, 1.9 and 1.10: a mainloop stage
        becomes full by one arrive.expect_tx and its bytes, empty by one
        tcgen05.commit; an accumulator full by one commit, empty by 128 threads.
        """
        spec = self.plan.ring(name)
        at = [self.base + self.plan.smem[part] for part, _ in spec.parts()]
        full_by = self._signaller(spec.full, spec.producer)
        signals = self.signals(name)
        if spec.empty is None:
            ring = Ring.at(name, at[0], None, spec.stages, (spec.full.count, 0))
            return replace(ring, full_by=full_by, signals=signals)
        counts = (spec.full.count, spec.empty.count)
        ring = Ring.at(name, at[0], at[1], spec.stages, counts)
        empty_by = self._signaller(spec.empty, *spec.consumers)
        return replace(ring, full_by=full_by, empty_by=empty_by, signals=signals)

    def signals(self, name: str) -> Signals:
        """Say how the barriers of a ring are signalled in this CTA's cluster.

        A commit gives a mainloop stage back to all CTAs that sent to it, and an
        accumulator to both of a pair. The epilogue gives the accumulator back to the
        leader, and CLC's answers are given back to the CTA that asked.
        """
        plan, cta = self.plan, self.cta
        if plan.cluster_size == 1:
            return Signals()
        found = Signals(cta_group=plan.cta_group, semantics=Semantics(scope="cluster"))
        match name:
            case "mainloop":
                return replace(found, empty=cta.releases)
            case "accumulator":
                return replace(found, full=cta.pair, empty_in=cta.leader)
            case "clc":
                return replace(found, empty_in=0)
        return found

    def _signaller(self, arrivals: Arrivals, *roles: WarpRole) -> Signaller:
        """Return who arrives, and with which warps."""
        warps = [
            each.first + i
            for each in self.plan.warps
            if each.role in roles
            for i in range(each.count)
        ]
        return Signaller(arrivals.by, tuple(warps))

    def address(self, buffer: str, stage: int = 0) -> int:
        """Shared address of a stage of a buffer."""
        at = self.base + self.plan.smem[buffer]
        return at + stage * self.plan.buffer(buffer).nbytes


def init_barriers(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Initialise every barrier once, make it visible, and meet. Frame 1.4.

    Warp 0 initialises; no warp goes on before the CTA barrier, or that of the cluster,
    whose other CTAs signal these barriers too.
    """
    if warp.index == 0:
        with warp.frame("1.4"):
            for ring in used_rings(storage):
                ring.init(warp)
            mbarrier.fence_mbarrier_init(warp)
            for address, name in buffer_labels(storage):
                warp.smem.labels[warp.cta.resolve_shared(address)[1]] = name
    if storage.plan.cluster_size > 1:
        yield from cluster.wait(warp, cluster.arrive(warp))
    else:
        threads = storage.plan.threads
        yield from named_barrier.sync(warp, NamedBarrierId.CTA.value, threads)


def used_rings(storage: SharedStorage) -> Iterator[Ring]:
    """Return the rings of this configuration, in the order of their initialisation."""
    for spec in sorted(storage.plan.rings, key=lambda each: each.turn):
        if spec.used:
            yield storage.ring(spec.name)


def buffer_labels(storage: SharedStorage) -> list[tuple[int, str]]:
    """Names of the buffers, for faults and traces."""
    return [
        (
            storage.address(buffer.name, i),
            f"{buffer.label}[{i}]" if buffer.numbered else buffer.label,
        )
        for buffer in storage.plan.buffers
        if buffer.used
        for i in range(buffer.stages)
    ]
