"""grid: what a grid must be before it starts, and must not leave when it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import product

from fp4ref.errors import ExitFault, LaunchFault
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.shared_memory import NBYTES
from fp4ref.hardware.sm import Cta, Role
from fp4ref.trace import Dim3

MAX_WARPS = 32
"""Warps of one CTA: 1,024 threads."""


def check_launch(grid: Dim3, cluster: Dim3, smem_nbytes: int, sms: int) -> None:
    """Raise `LaunchFault` for a grid that a machine of `sms` SMs cannot start."""
    if not 0 <= smem_nbytes <= NBYTES:
        raise LaunchFault(
            f"{smem_nbytes} bytes of dynamic shared memory",
            rule=f"a CTA has at most {NBYTES} bytes (227 KB)",
            remedy="use fewer stages or smaller tiles",
        )
    size = cluster[0] * cluster[1] * cluster[2]
    extents = zip(grid, cluster, strict=True)
    if any(g < 1 or c < 1 or g % c for g, c in extents) or size > sms:
        raise LaunchFault(
            f"grid {grid} with clusters of {cluster} on {sms} SMs",
            rule="the grid is a multiple of the cluster, and a cluster needs one SM "
            "for each of its CTAs",
            remedy="pad the grid, or emulate more SMs",
        )


def check_roles(cta: Cta, roles: Sequence[Role]) -> None:
    """Raise `LaunchFault` for a CTA without warps or with too many."""
    if not 1 <= len(roles) <= MAX_WARPS:
        raise LaunchFault(
            f"a CTA of {len(roles)} warps",
            who=f"cta {cta.ctaid}",
            rule=f"a CTA has 1 to {MAX_WARPS} warps",
            remedy="return one role for each warp",
        )


def origins(grid: Dim3, cluster: Dim3, only: Iterable[Dim3] | None) -> deque[Dim3]:
    """First CTA of each cluster to launch, x fastest."""
    counts = [g // c for g, c in zip(grid, cluster, strict=True)]
    origins = [
        (x * cluster[0], y * cluster[1], z * cluster[2])
        for z, y, x in product(*(range(count) for count in counts[::-1]))
    ]
    if only is None:
        return deque(origins)
    wanted = set(only)
    if unknown := wanted.difference(origins):
        raise LaunchFault(
            f"only={sorted(unknown)} of grid {grid} with clusters of {cluster}",
            rule="each entry is the first CTA of a cluster of the grid",
            remedy="name CTAs inside the grid",
        )
    return deque(o for o in origins if o in wanted)


def check_exit(cta: Cta, in_flight: Iterable[AsyncOp]) -> None:
    """Raise `ExitFault` for what a CTA must not leave behind."""
    who = f"cta {cta.ctaid}"
    for op in in_flight:
        if not op.survives_exit:
            raise ExitFault(
                f"{op.operation} is in flight when its CTA exits",
                who=op.who,
                where=op.statement,
                rule="shared memory and TMEM are gone after exit",
                remedy="wait for it before the warps return",
            )
    for address, tx_count in cta.mbarriers.unbalanced():
        raise ExitFault(
            f"an mbarrier has tx-count {tx_count} at exit",
            who=who,
            where=cta.smem.describe(address),
            rule="the bytes that a phase expects are those that its copies bring",
            remedy="expect what this CTA receives, also from its peers",
        )
    if cta.tmem.allocated:
        raise ExitFault(
            f"{cta.tmem.allocated} TMEM columns are allocated at exit",
            who=who,
            where=cta.tmem.space,
            rule="all TMEM is freed before exit [PTX: tcgen05.alloc]",
            remedy="execute tcgen05.dealloc by a whole warp",
        )
    if cta.tmem.held:
        raise ExitFault(
            f"{cta.tmem.held} TMEM columns at exit were allocated or freed by the peer "
            "CTA alone",
            who=who,
            where=cta.tmem.space,
            rule="one warp of each CTA of a pair performs tcgen05.alloc and dealloc "
            "[PTX: tcgen05.alloc]",
            remedy="let a warp of this CTA take part in both",
        )
