"""Part 5. producer_warp: the load warp fills mainloop stages by TMA.

For each stage: wait until it is empty, expect its bytes, start four copies for each of
its k-tiles. The first stages of a tile are a prologue, after which the epilogue load
warp may start.

CUTLASS's scheduler and epilogue load warps wait for earlier grids too. Here the load
warp alone does: the others touch global memory only behind its loads or its signals.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm import cleanup
from fp4ref.gemm.parts import Loader, Parts
from fp4ref.gemm.pipeline import Producer, committed_by_tma
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware import clc
from fp4ref.hardware.sm import Blocked, Warp, elect_sync


def producer_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Load every tile that this CTA works on. Frame 5 ctx."""
    loader = parts.loader(warp, storage)
    loader.prefetch()
    yield from init_barriers(warp, storage)
    yield from clc.griddepcontrol_wait(warp)
    work = WorkIterator(parts.tile_scheduler(warp, storage))
    mainloop = Producer(warp, storage.ring("mainloop"), committed_by_tma)
    throttle = parts.throttle(warp, storage)
    split_k, staged = storage.params.split_k, mainloop.ring.stages * loader.k_group
    load_order = parts.load_order_barrier(warp, storage)
    with warp.frame("5 ctx"):
        while work.has_work:
            yield from throttle.signal()
            split = work.tile.split
            first, count = split_k.k_idx(split), split_k.k_tile_count(split)
            prologue = min(staged, count)
            with warp.frame("2.3"):
                warp.note("k_tile_count", k_tiles=count, prologue=prologue)
            yield from load(loader, mainloop, work.tile, first, first + prologue)
            load_order.arrive()
            with warp.frame("5.7"):
                rest = first + prologue, first + count
                yield from load(loader, mainloop, work.tile, *rest)
            yield from work.next()
        yield from cleanup.load_tail(warp, mainloop)


def load(
    loader: Loader, mainloop: Producer, work: WorkTile, first: int, last: int
) -> Generator[Blocked, None, None]:
    """Load k-tiles `first` to `last` - 1. Frames 5.3 to 5.6."""
    warp = mainloop.warp
    if first < last:
        with warp.frame("5.3"):
            mainloop.peek()
    for k_tile in range(first, last, loader.k_group):
        with warp.frame("5.4", *(["5.5"] if k_tile else [])):
            yield from load_k_tile(loader, mainloop, work, k_tile, last)
    with warp.frame("5.6"):
        warp.note("load.exit", k_tiles=last - first, **mainloop.state.facts())


def load_k_tile(
    loader: Loader, mainloop: Producer, work: WorkTile, k_tile: int, last: int
) -> Generator[Blocked, None, None]:
    """Fill one stage, with the last group of a tile perhaps in part. Frame 5.4."""
    warp = mainloop.warp
    group = range(k_tile, min(k_tile + loader.k_group, last))
    with warp.frame("5.4.1"):
        stage = yield from mainloop.acquire()
        with warp.frame("5.4.8"):
            loader.expect(stage, len(group))
    with stage:
        with warp.frame("5.4.2"):
            if group.stop < last:
                mainloop.peek()
        with warp.frame("5.4.3"):
            elect_sync(warp)
        loader.load(stage, work, group)
    with warp.frame("5.4.9"):
        warp.note("load.k_tile", k_tile=k_tile, left=last - group.stop)
