"""Part 5. prefetching_producer_warp: the load warp, which finds the next tile ahead.

Where the next tile is only reckoned, it may be found before this one is loaded: then
nothing stands between the last load of a tile and the first of the next.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm import cleanup
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Producer, committed_by_tma
from fp4ref.gemm.producer_warp import load
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import clc
from fp4ref.hardware.sm import Blocked, Warp


def prefetching_producer_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Load every tile that this CTA works on. Frame 5 ctx."""
    loader = parts.loader(warp, storage)
    loader.prefetch()
    yield from init_barriers(warp, storage)
    yield from clc.griddepcontrol_wait(warp)
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    mainloop = Producer(warp, storage.ring("mainloop"), committed_by_tma)
    split_k, staged = storage.params.split_k, mainloop.ring.stages * loader.k_group
    load_order = parts.load_order_barrier(warp, storage)
    with warp.frame("5 ctx"):
        while work.has_work:
            tile = yield from work.next_prefetch()
            first, count = split_k.k_idx(tile.split), split_k.k_tile_count(tile.split)
            prologue = min(staged, count)
            with warp.frame("2.3"):
                warp.note("k_tile_count", k_tiles=count, prologue=prologue)
            yield from load(loader, mainloop, tile, first, first + prologue)
            load_order.arrive()
            with warp.frame("5.7"):
                rest = first + prologue, first + count
                yield from load(loader, mainloop, tile, *rest)
        yield from cleanup.load_tail(warp, mainloop)
