"""rules: the failure classes, and for each the rule of PTX and what mends it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Words(NamedTuple):
    """What a report says about a class of failures."""

    name: str
    rule: str
    remedy: str


class Failure(Enum):
    """What is missing between two accesses."""

    SYNC = Words(
        "missing synchronisation",
        "two accesses of the same bytes, one of them a write, need a path of barriers "
        "or fences between them [PTX: Memory consistency model, causality order]",
        "let the first thread arrive on a barrier after its access, and the second one "
        "wait for it before its own",
    )
    LANE = Words(
        "missing lane order",
        "lanes of one warp run in no order; elect, shfl, vote and mma.sync give none "
        "[PTX: bar.warp.sync]",
        "execute __syncwarp() (bar.warp.sync) between the two accesses",
    )
    ACQUIRE = Words(
        "missing release or acquire",
        "a relaxed operation orders nothing by itself [PTX: release and acquire "
        "patterns]",
        "use the .release and .acquire forms, or put fence.acq_rel before the arrival "
        "and after the wait",
    )
    SCOPE = Words(
        "scope too narrow",
        "a release reaches only acquires in its scope, and an acquire only releases "
        "in its own [PTX: scope, morally strong]",
        "name the scope that has both threads in it: .cluster for a peer CTA, .gpu "
        "beyond the cluster",
    )
    PROXY = Words(
        "missing proxy fence",
        "the generic and the async proxy do not see each other's accesses in order "
        "without fence.proxy.async [PTX: async proxy]",
        "execute fence.proxy.async in the thread that made the generic access, after "
        "it and before the barrier that hands it over",
    )
    BRIDGE = Words(
        "missing proxy bridge",
        "tcgen05.commit orders what the async proxy read only for the async proxy "
        "[PTX: tcgen05.commit, async proxy]",
        "execute fence.proxy.async after the wait and before the ordinary access",
    )
    MAP_RELEASE = Words(
        "missing tensor map release",
        "a map that the kernel writes is handed to the tensormap proxy by the thread "
        "that wrote it, with a proxy fence that releases it [PTX: membar / fence, "
        "tensormap.cp_fenceproxy]",
        "execute fence.proxy.tensormap::generic.release after the write, or copy the "
        "map with tensormap.cp_fenceproxy, before the barrier that hands it over",
    )
    MAP_ACQUIRE = Words(
        "missing tensor map acquire",
        "a tensor copy reads its map through the tensormap proxy, which sees a write "
        "only after an acquire of these 128 bytes [PTX: membar / fence]",
        "execute fence.proxy.tensormap::generic.acquire of the map's address, after "
        "the release and before the copy",
    )
    TENSOR_AFTER = Words(
        "missing tcgen05.fence::after_thread_sync",
        "tcgen05 operations of two threads are ordered by a thread sync only with a "
        "tcgen05.fence at both ends [PTX: tcgen05.fence]",
        "execute tcgen05.fence::after_thread_sync after the wait",
    )
    TENSOR_BEFORE = Words(
        "missing tcgen05.fence::before_thread_sync",
        "tcgen05 operations of two threads are ordered by a thread sync only with a "
        "tcgen05.fence at both ends [PTX: tcgen05.fence]",
        "execute tcgen05.fence::before_thread_sync before the arrival",
    )
    PIPELINE = Words(
        "missing tcgen05 pipeline order",
        "of one thread's tcgen05 operations only five pairs are ordered by themselves, "
        "such as cp before mma and mma before mma of the same shape and accumulator "
        "[PTX: tcgen05 memory model]",
        "commit the first operation to an mbarrier and wait for it",
    )
    LIFETIME = Words(
        "async lifetime not drained",
        "an asynchronous operation uses its memory until its completion mechanism says "
        "that it is done, to each thread for itself [PTX: async operations]",
        "wait for its mbarrier, group or tcgen05.wait, and hand that over by a barrier",
    )
    REGISTERS = Words(
        "tcgen05.ld ordered by its registers only",
        "a register dependency of tcgen05.ld implies no other order "
        "[PTX: 9.7.16.6.4.5]",
        "execute tcgen05.wait::ld before the TMEM is given away",
    )
    INIT = Words(
        "mbarrier used before its init is visible",
        "mbarrier.init is an ordinary write: other threads need a barrier after it, "
        "and asynchronous operations a fence.mbarrier_init or fence.proxy.async where "
        "they reach the mbarrier by the async proxy, which PTX leaves open up to 9.2 "
        "[PTX: mbarrier.init]",
        "after the inits execute fence.mbarrier_init.release.cluster, then a barrier "
        "that all users pass",
    )
    INVAL = Words(
        "mbarrier invalidated while in use",
        "mbarrier.inval comes after every other operation on the mbarrier [PTX: "
        "mbarrier.inval]",
        "let all users of the mbarrier pass a barrier before it is invalidated",
    )
    LIVE = Words(
        "ordinary access to a live mbarrier",
        "only mbarrier operations may touch an mbarrier between init and inval [PTX: "
        "mbarrier]",
        "place the data elsewhere, or execute mbarrier.inval first",
    )
    PEER = Words(
        "peer not synchronised before tcgen05.dealloc",
        "the warps of both CTAs of a pair synchronise their TMEM accesses before "
        "either deallocates [PTX: tcgen05.dealloc]",
        "put a cluster barrier, or an mbarrier of each CTA, between the last access "
        "of both and tcgen05.dealloc",
    )
    EXIT = Words(
        "work of others not drained at exit",
        "shared memory and TMEM are gone when the CTA has exited, also for operations "
        "in flight and for their signals",
        "let one thread of the CTA wait for it before the last one returns: a tail "
        "that waits for every stage, or wait_group",
    )
