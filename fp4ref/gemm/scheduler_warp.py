"""Part 2. scheduler_warp: asks for tiles by cluster launch control."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.parts import Parts
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tiles.scheduler_work_iterator import SchedulerWorkIterator
from fp4ref.hardware.sm import Blocked, Warp


def scheduler_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Serve every role of this CTA's cluster that needs tiles."""
    yield from init_barriers(warp, storage)
    if not storage.cta.is_first:
        return
    scheduler = parts.tile_scheduler(warp, storage)
    work = SchedulerWorkIterator(warp, storage, scheduler, parts.clc_request)
    while work.has_work:
        yield from work.signal_and_advance()
        yield from work.next()
    yield from work.drain()
