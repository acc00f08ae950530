"""nvfp4_gemm: set up one CTA and start its warps, each in its role.

Warp 0 issues MMAs, 1 schedules tiles, 2 loads A and B with their scales, 3 loads C, and
4 to 7 are the epilogue: CUTLASS's roles.
"""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.parts import parts
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.roles import RoleBody, body
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware.sm import Cta, Role


def nvfp4_gemm(cta: Cta, plan: Plan, params: GemmParams) -> Sequence[Role]:
    """Return the role of each warp of `cta`."""
    storage, chosen = SharedStorage.of(cta, plan, params), parts(plan)

    def start(role: RoleBody) -> Role:
        return lambda warp: role(warp, storage, chosen)

    return [start(body(plan, each)) for each in plan.warps for _ in range(each.count)]
