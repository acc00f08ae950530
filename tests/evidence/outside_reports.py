"""outside_reports: public reports of wrong kernels, and the fix of each.

A program is the reported mistake in our words, as small as it goes, and the same with
the fix. What was reported is an error, and the fixed form is clean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mma_tiles import MBAR
from on_machine import TILE
from order_cases import WORD, ZEROS, written
from outside_programs import PAIR, Body, Program

from fp4ref.hardware import clc, cluster, gmem, mbarrier, smem, tcgen05, tma, tmem
from fp4ref.hardware import named_barrier as bar
from fp4ref.hardware import tensormap_proxy as maps
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.trace import Range

WIDE = Semantics(scope="cluster")


def _meet(warp: Any) -> Any:
    return cluster.wait(warp, cluster.arrive(warp))


class _Initialised:
    """Blocks until an init is done, which orders nothing."""

    def __init__(self, warp: Any) -> None:
        self.unit = warp.cta.mbarriers

    def ready(self) -> bool:
        return MBAR in self.unit.live


def init_of_one_thread(synced: bool) -> tuple[Body, ...]:
    """A thread initialises an mbarrier, and all arrive."""

    def first(warp: Any) -> Any:
        mbarrier.init(warp, MBAR, 2)
        if synced:
            yield from bar.sync(warp, 0)
        mbarrier.arrive(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    def second(warp: Any) -> Any:
        if synced:
            yield from bar.sync(warp, 0)
        else:
            yield _Initialised(warp)
        mbarrier.arrive(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    return first, second


def dealloc_of_a_pair(met: bool) -> tuple[Body, ...]:
    """Each CTA of a pair allocates and deallocates, with a cluster barrier between."""

    def body(warp: Any) -> Any:
        at = warp.cta.smem_base + 8
        yield from tmem.alloc(warp, at, 64, 2)
        if met:
            yield from _meet(warp)
        tmem.dealloc(warp, int(smem.ld(warp, at, 4).view("<u4")[0]), 64, 2)
        yield from _meet(warp)

    return (body,)


def columns_of_a_pair(variant: tuple[int, bool]) -> tuple[Body, ...]:
    """One CTA of a pair stores to TMEM; both deallocate, with a barrier before."""
    user, met = variant

    def body(warp: Any) -> Any:
        at = warp.cta.smem_base + 8
        yield from tmem.alloc(warp, at, 64, 2)
        yield from _meet(warp)
        columns = int(smem.ld(warp, at, 4).view("<u4")[0])
        if warp.cta.rank == user:
            tmem.st(warp, columns, np.zeros((32, 1), np.uint32))
            yield from tmem.wait_st(warp)
            tcgen05.fence_before_thread_sync(warp)
        if met:
            yield from _meet(warp)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, columns, 64, 2)
        yield from _meet(warp)

    return (body,)


def store_and_flag(waits: str) -> tuple[Body, ...]:
    """A TMA store is waited for, then a flag is released for a reader of the result."""

    def body(warp: Any) -> Any:
        if warp.cta.ctaid[0] == 0:
            smem.st(warp, TILE, np.zeros(128, np.uint8))
            smem.fence_proxy_async(warp)
            tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
            tma.commit_group(warp)
            yield from tma.wait_group(warp, 0, read=waits == "sources read")
            gmem.red_release(warp, warp.machine.word, 1)
            yield from tma.wait_group(warp, 0)
        else:
            yield from gmem.wait_eq(warp, warp.machine.word, 1)
            gmem.ld(warp, Range("gmem", warp.machine.tensor_map.address, 4))

    return (body,)


def store_and_result(waits: str) -> tuple[Body, ...]:
    """A TMA store is waited for, and the thread that issued it reads the result."""

    def body(warp: Any) -> Any:
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        smem.fence_proxy_async(warp)
        tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0, read=waits == "sources read")
        gmem.ld(warp, Range("gmem", warp.machine.tensor_map.address, 4))
        yield from tma.wait_group(warp, 0)

    return (body,)


def arrival_at_the_peer(scope: str) -> tuple[Body, ...]:
    """A CTA writes into its peer and arrives there; the peer waits and reads."""

    def body(warp: Any) -> Any:
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from _meet(warp)
        if rank == 0:
            smem.st(warp, cluster.mapa(warp, WORD, 1), ZEROS)
            peer = cluster.mapa(warp, MBAR, 1)
            mbarrier.arrive(warp, peer, semantics=Semantics(scope=scope))
        else:
            yield from mbarrier.try_wait(warp, base, 0, WIDE)
            smem.ld(warp, WORD | 1 << 24, 4)
        yield from _meet(warp)

    return (body,)


class _Arrived:
    """Blocks until a phase is over, which orders nothing."""

    def __init__(self, warp: Any) -> None:
        self.unit, self.at = warp.cta.mbarriers, MBAR

    def ready(self) -> bool:
        return bool(self.unit.completed.get(self.at, 0))


def peer_at_exit(met: bool) -> tuple[Body, ...]:
    """The last thing that a CTA does is an arrival at its peer, which returns."""

    def body(warp: Any) -> Any:
        mbarrier.init(warp, warp.cta.smem_base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from _meet(warp)
        if warp.cta.rank == 0:
            mbarrier.arrive(warp, cluster.mapa(warp, MBAR, 1), semantics=WIDE)
        else:
            yield _Arrived(warp)
        if met:
            yield from _meet(warp)

    return (body,)


def tile_at_exit(met: bool) -> tuple[Body, ...]:
    """A CTA sends its peer a tile and waits for its own half; the peer returns."""

    def body(warp: Any) -> Any:
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from _meet(warp)
        mbarrier.arrive_expect_tx(warp, base, 128)
        yield from _meet(warp)
        if rank == 0:
            tma.load(warp, warp.machine.tensor_map, (0, 0), TILE, MBAR, 0b11)
            yield from mbarrier.try_wait(warp, base, 0)
        if met:
            yield from mbarrier.try_wait(warp, base, 0)
            yield from _meet(warp)

    return (body,)


def answer_for_all(_: str) -> tuple[Body, ...]:
    """A CTA reads its peer's word and asks for work; told so, the peer writes it."""

    def body(warp: Any) -> Any:
        base, rank = warp.cta.smem_base, warp.cta.rank
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, base, 16)
        yield from _meet(warp)
        if rank == 0:
            smem.ld(warp, cluster.mapa(warp, WORD, 1), 4)
            clc.try_cancel(warp, TILE, MBAR, multicast=True)
        yield from mbarrier.try_wait(warp, base, 0)
        if rank == 1:
            smem.st(warp, WORD | 1 << 24, ZEROS)
        yield from _meet(warp)

    return (body,)


def _map_in_memory(warp: Any) -> int:
    at: int = warp.machine.map_at
    return at


def changed_map(by: str) -> tuple[Body, ...]:
    """A CTA changes a map and releases it; CTAs acquire it, and one uses it."""

    def body(warp: Any) -> Any:
        at, rank = _map_in_memory(warp), warp.cta.rank
        if rank == 0:
            tensor = warp.machine.tensor_map.address
            maps.replace(warp, "global", at, "global_address", tensor)
            maps.fence_release(warp, "gpu")
            if by in ("the other CTA", "each CTA"):
                maps.fence_acquire(warp, at, "gpu")
        yield from _meet(warp)
        if rank == 1:
            if by == "each CTA":
                maps.fence_acquire(warp, at, "gpu")
            maps.use(warp, at, "cp.async.bulk.tensor.2d.load")
        yield from _meet(warp)

    return (body,)


REPORTED = {True: "clean", False: "error"}
WAITS = {"whole": "clean", "sources read": "error"}
PROGRAMS = {
    "init of an mbarrier": Program(
        "NVIDIA/Fuser issue 1552: hangs; fixed in 1769", init_of_one_thread, REPORTED
    ),
    "dealloc before the peer's alloc": Program(
        "NVIDIA/cutlass issue 3435: a launch failure", dealloc_of_a_pair, REPORTED, PAIR
    ),
    "dealloc of a pair": Program(
        "triton-lang/triton pull request 9498: a barrier before the deallocation",
        columns_of_a_pair,
        {(user, met): REPORTED[met] for user in (0, 1) for met in (True, False)},
        PAIR,
    ),
    "TMA store and a flag": Program(
        "triton-lang/triton pull request 10415",
        store_and_flag,
        WAITS,
        {"grid": (2, 1, 1), "sms": 2},
    ),
    "TMA store and its result": Program(
        "triton-lang/triton pull request 10415", store_and_result, WAITS
    ),
    "scope of an arrival": Program(
        "NVIDIA/cutlass issue 3643: wrong results",
        arrival_at_the_peer,
        {"cluster": "clean", "cta": "error"},
        PAIR | {"setup": written},
    ),
    "arrival at a peer that returns": Program(
        "sgl-project/sglang issue 32907: target block not present",
        peer_at_exit,
        REPORTED,
        PAIR,
    ),
    "tile for a peer that returns": Program(
        "facebookexperimental/triton pull request 1105: target block not present",
        tile_at_exit,
        REPORTED,
        PAIR,
    ),
    "answer to both CTAs": Program(
        "triton-lang/triton pull request 10926: a race to ConSan",
        answer_for_all,
        {"peer": "error"},
        PAIR | {"setup": written},
    ),
    "changed tensor map": Program(
        "llvm/llvm-project pull request 133218, after the CUDA programming guide",
        changed_map,
        {"each CTA": "clean", "the other CTA": "error", "nobody": "error"},
        PAIR,
    ),
}
