"""Parts 1 to 8. roles: what each warp of a CTA runs."""

from __future__ import annotations

from collections.abc import Callable

from fp4ref.gemm.epilogue_load_warp import epilogue_load_warp
from fp4ref.gemm.epilogue_warp import epilogue_warp
from fp4ref.gemm.idle_warp import idle_warp
from fp4ref.gemm.mma_warp import mma_warp
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.plan.warps import RoleWarps, WarpRole
from fp4ref.gemm.prefetching_producer_warp import prefetching_producer_warp
from fp4ref.gemm.producer_warp import producer_warp
from fp4ref.gemm.scheduler_warp import scheduler_warp
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.staged_epilogue_warp import staged_epilogue_warp
from fp4ref.hardware.sm import Body, Warp

RoleBody = Callable[[Warp, SharedStorage, Parts], Body]

ROLES: dict[WarpRole, RoleBody] = {
    WarpRole.MMA: mma_warp,
    WarpRole.SCHEDULER: scheduler_warp,
    WarpRole.MAINLOOP_LOAD: producer_warp,
    WarpRole.EPILOGUE_LOAD: epilogue_load_warp,
    WarpRole.EPILOGUE: epilogue_warp,
}
"""What the warps of a role run, if no configuration says otherwise."""


def body(plan: Plan, warps: RoleWarps) -> RoleBody:
    """Return what the warps of a role run; one without work only meets the others."""
    if not warps.works:
        return idle_warp
    if warps.role is WarpRole.EPILOGUE and plan.staged:
        return staged_epilogue_warp
    if warps.role is WarpRole.MAINLOOP_LOAD and plan.config.warps.prefetch_tile:
        return prefetching_producer_warp
    return ROLES[warps.role]
