"""Part 8. accumulator_tail: the epilogue has read all of its accumulators.

Only overlapped ones need it: each is given back when a part has been read, so that the
MMA warp cannot tell from the last one whether TMEM may be freed.
"""

from __future__ import annotations

from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import cluster, mbarrier, tcgen05
from fp4ref.hardware.mbarrier import DEFAULT, Semantics
from fp4ref.hardware.sm import Warp


def accumulator_tail(warp: Warp, storage: SharedStorage) -> None:
    """Tell the MMA warps of this CTA and of its peer. Frame 8.6."""
    plan = storage.plan
    if not plan.overlapped:
        return
    own = storage.ring("tmem_dealloc").full[0]
    with warp.frame("8.6"):
        tcgen05.fence_before_thread_sync(warp)
        if plan.cta_group > 1:
            theirs = cluster.mapa(warp, own, storage.cta.peer)
            mbarrier.arrive(warp, theirs, WARP_THREADS, Semantics(scope="cluster"))
        mbarrier.arrive(warp, own, WARP_THREADS, _semantics(storage))


def _semantics(storage: SharedStorage) -> Semantics:
    in_cluster = storage.plan.cluster_size > 1
    return Semantics(scope="cluster") if in_cluster else DEFAULT
