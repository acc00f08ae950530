"""nvfp4_gemm: set up one CTA and start its warps, each in its role.

Warp 0 issues MMAs, 1 schedules tiles, 2 loads A and B with their scales, 3 loads C, and
4 to 7 are the epilogue: CUTLASS's roles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fp4ref.gemm.epilogue_load_warp import epilogue_load_warp
from fp4ref.gemm.epilogue_warp import epilogue_warp
from fp4ref.gemm.mma_warp import mma_warp
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Consumer, Producer, arrive_on_empty, committed_by_tma
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.plan.warps import WARP_THREADS, WarpRole
from fp4ref.gemm.producer_warp import producer_warp
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_scheduler import scheduler_warp
from fp4ref.hardware.sm import Body, Cta, Role, Warp


def nvfp4_gemm(cta: Cta, plan: Plan, params: GemmParams) -> Sequence[Role]:
    """Return the role of each warp of `cta`."""
    storage = SharedStorage.of(cta, plan, params)

    def start(body: Callable[[Warp, SharedStorage], Body]) -> Role:
        return lambda warp: body(warp, storage)

    return [start(_ROLES[each.role]) for each in plan.warps for _ in range(each.count)]


def _scheduler(warp: Warp, storage: SharedStorage) -> Body:
    """Warp 1: ask for tiles, if the scheduler is CLC."""
    yield from init_barriers(warp, storage)
    if storage.plan.ring("clc").used:
        throttle = Consumer(
            warp, storage.ring("throttle"), arrive_on_empty(WARP_THREADS)
        )
        producer = Producer(warp, storage.ring("clc"), committed_by_tma)
        scheduler = storage.tile_scheduler(warp)
        responses = storage.clc_responses
        yield from scheduler_warp(warp, scheduler, throttle, producer, responses)


_ROLES: dict[WarpRole, Callable[[Warp, SharedStorage], Body]] = {
    WarpRole.MMA: mma_warp,
    WarpRole.SCHEDULER: _scheduler,
    WarpRole.MAINLOOP_LOAD: producer_warp,
    WarpRole.EPILOGUE_LOAD: epilogue_load_warp,
    WarpRole.EPILOGUE: epilogue_warp,
}
