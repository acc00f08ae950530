"""Part 1. warps: which warp of a CTA has which role, and where the roles meet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

WARP_THREADS = 32


class WarpRole(Enum):
    """CUTLASS's ``WarpCategory``: which warp does what."""

    MMA = 0
    SCHEDULER = 1
    MAINLOOP_LOAD = 2
    EPILOGUE_LOAD = 3
    EPILOGUE = 4


class NamedBarrierId(Enum):
    """Ids of the CTA's named barriers; 0 is ``__syncthreads``."""

    CTA = 0
    EPILOGUE = 1
    TMEM_ALLOCATION = 6


@dataclass(frozen=True, slots=True)
class RoleWarps:
    """The warps of one role.

    Attributes
    ----------
    first, count
        Index of the first warp, and how many there are.
    works
        Whether they have anything to do; else they only meet the others once.
    """

    role: WarpRole
    first: int
    count: int
    works: bool = True

    @property
    def threads(self) -> int:
        """Threads of the role."""
        return self.count * WARP_THREADS


EPILOGUE_WARPS = 4
"""One for each quarter of the TMEM lanes, which a warp cannot leave."""

EPILOGUE_THREADS = EPILOGUE_WARPS * WARP_THREADS


ORDERS: dict[str, tuple[WarpRole, ...]] = {
    "mma_first": tuple(WarpRole),
    "load_first": (WarpRole.MAINLOOP_LOAD, WarpRole.MMA, WarpRole.EPILOGUE),
}
"""Roles in the order of the warps: CUTLASS's, and document 003's."""


def warps(
    *,
    loads_c: bool,
    asks_clc: bool,
    order: str = "mma_first",
    epilogue_warps: int = EPILOGUE_WARPS,
) -> tuple[RoleWarps, ...]:
    """Return the table of roles, in the order of the warps."""
    works = {WarpRole.EPILOGUE_LOAD: loads_c, WarpRole.SCHEDULER: asks_clc}
    found: list[RoleWarps] = []
    first = 0
    for role in ORDERS[order]:
        count = epilogue_warps if role is WarpRole.EPILOGUE else 1
        found.append(RoleWarps(role, first, count, works.get(role, True)))
        first += count
    return tuple(found)


CTA_WARPS = sum(each.count for each in warps(loads_c=False, asks_clc=True))
CTA_THREADS = CTA_WARPS * WARP_THREADS
