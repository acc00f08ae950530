"""Part 2. scheduler_warp: asks for tiles by cluster launch control."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.parts import ClcRequest, Parts
from fp4ref.gemm.pipeline import Consumer, Producer, arrive_on_empty, committed_by_tma
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware.sm import Blocked, Warp, frame


@frame("1.10")
def request_work(
    producer: Producer, storage: SharedStorage, request: type[ClcRequest]
) -> Generator[Blocked, None, None]:
    """Ask for one more tile: ``advance_to_next_work``. Frame 1.10."""
    with (yield from producer.acquire()) as stage:
        request.ask(producer.warp, storage, stage)


def request_tiles(
    storage: SharedStorage,
    work: WorkIterator,
    throttle: Consumer,
    clc_ring: Producer,
    request: type[ClcRequest],
) -> Generator[Blocked, None, None]:
    """Ask for a tile each time the load warp has started one.

    The throttle keeps the warp from taking tiles that another SM would do sooner.
    """
    while work.has_work:
        with (yield from throttle.wait()):
            pass
        yield from request_work(clc_ring, storage, request)
        yield from work.next()
    yield from clc_ring.tail()


def scheduler_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Serve every role of this CTA's cluster that needs tiles."""
    yield from init_barriers(warp, storage)
    if not storage.cta.is_first:
        return
    yield from request_tiles(
        storage,
        WorkIterator(parts.tile_scheduler(warp, storage)),
        Consumer(warp, storage.ring("throttle"), arrive_on_empty(WARP_THREADS)),
        Producer(warp, storage.ring("clc"), committed_by_tma),
        parts.clc_request,
    )
