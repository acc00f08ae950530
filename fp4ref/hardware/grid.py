"""grid: what a grid must be before it starts, and must not leave when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from fp4ref.errors import ExitFault, LaunchFault
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.shared_memory import NBYTES
from fp4ref.hardware.sm import Cta, Role
from fp4ref.trace import Dim3

MAX_WARPS = 32
"""Warps of one CTA: 1,024 threads."""


PORTABLE_CLUSTER, LARGEST_CLUSTER = 8, 16
"""CTAs of a cluster on every GPU, and on a B200 with the non-portable attribute."""


def check_launch(
    grid: Dim3,
    cluster: Dim3,
    smem_nbytes: int,
    sms: int,
    preferred: Dim3 | None = None,
    nonportable: bool = False,
) -> None:
    """Raise `LaunchFault` for a grid that a machine of `sms` SMs cannot start."""
    if not 0 <= smem_nbytes <= NBYTES:
        raise LaunchFault(
            f"{smem_nbytes} bytes of dynamic shared memory",
            rule=f"a CTA has at most {NBYTES} bytes (227 KB)",
            remedy="use fewer stages or smaller tiles",
        )
    if min(*grid, *cluster) < 1 or not _divides(cluster, grid):
        raise LaunchFault(
            f"grid {grid} with clusters of {cluster}",
            rule="each extent of the grid is a multiple of the cluster's [CUDA "
            "programming guide, thread block clusters]",
            remedy="pad the grid to whole clusters",
        )
    for shape in (cluster, preferred or cluster):
        _check_cluster_size(shape, nonportable)
    if (size := prod(cluster)) > sms:
        raise LaunchFault(
            f"clusters of {cluster} on {sms} SMs",
            rule=f"a cluster needs one SM for each of its {size} CTAs, all at once",
            remedy=f"emulate {size} SMs or more",
        )
    if preferred and not (_divides(cluster, preferred) and _divides(preferred, grid)):
        raise LaunchFault(
            f"grid {grid} with preferred clusters of {preferred} and regular ones of "
            f"{cluster}",
            rule="a preferred cluster is a multiple of the regular one, and the grid "
            "of the preferred one [CUDA, cudaLaunchAttributePreferredClusterDimension]",
            remedy="choose a preferred shape between the two",
        )


def _divides(shape: Dim3, whole: Dim3) -> bool:
    """Whether `whole` consists of blocks of `shape`."""
    pairs = zip(shape, whole, strict=True)
    return all(1 <= part <= all_ and all_ % part == 0 for part, all_ in pairs)


def _check_cluster_size(shape: Dim3, nonportable: bool) -> None:
    size = prod(shape)
    if size > LARGEST_CLUSTER:
        raise LaunchFault(
            f"clusters of {shape}: {size} CTAs",
            rule=f"a cluster has at most {LARGEST_CLUSTER} CTAs on a B200",
            remedy="use smaller clusters",
        )
    if size > PORTABLE_CLUSTER and not nonportable:
        raise LaunchFault(
            f"clusters of {shape}: {size} CTAs without the non-portable attribute",
            rule=f"more than {PORTABLE_CLUSTER} CTAs need "
            "cudaFuncAttributeNonPortableClusterSizeAllowed [CUDA programming guide, "
            "thread block clusters]",
            remedy="set the attribute of the kernel, or use smaller clusters",
        )


def check_pairs(cluster: Dim3, operation: str, where: str) -> None:
    """Raise `LaunchFault` for clusters of an odd size if a kernel uses CTA pairs.

    `operation` is one that has ``.cta_group::2``.
    """
    if prod(cluster) % 2:
        raise LaunchFault(
            f"clusters of {prod(cluster)} CTAs for a kernel with {operation}",
            where=where,
            rule="two CTAs of a cluster whose ranks differ in the last bit form a pair "
            "[PTX: CTA pair]",
            remedy="launch with an even number of CTAs in a cluster",
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


def origins(grid: Dim3, cluster: Dim3, only: Iterable[Dim3] | None) -> list[Dim3]:
    """First CTA of each cluster to launch, x fastest."""
    counts = [g // c for g, c in zip(grid, cluster, strict=True)]
    origins = [
        (x * cluster[0], y * cluster[1], z * cluster[2])
        for z, y, x in product(*(range(count) for count in counts[::-1]))
    ]
    if only is None:
        return origins
    wanted = set(only)
    if unknown := wanted.difference(origins):
        raise LaunchFault(
            f"only={sorted(unknown)} of grid {grid} with clusters of {cluster}",
            rule="each entry is the first CTA of a cluster of the grid",
            remedy="name CTAs inside the grid",
        )
    return [o for o in origins if o in wanted]


def check_memory_unused(cta: Cta, in_flight: Iterable[AsyncOp]) -> None:
    """Raise `ExitFault` for what still uses the memory of a CTA whose warps ended.

    Its own operations, and those of its peers: multicasts and MMAs of a pair.
    """
    spaces = {cta.smem.space, cta.tmem.space}
    _check_landed(
        cta,
        [
            op
            for op in in_flight
            if spaces & {where.space for where in (*op.reads, *op.writes)}
        ],
    )


def _check_landed(cta: Cta, in_flight: Iterable[AsyncOp]) -> None:
    for op in in_flight:
        if op.survives_exit:
            continue
        mine = op.ctaid == cta.ctaid
        whose = "its CTA" if mine else f"cta {cta.ctaid}, which it uses,"
        raise ExitFault(
            f"{op.operation} is in flight when {whose} exits",
            who=op.who,
            where=op.statement,
            rule="shared memory and TMEM are gone after exit",
            remedy="wait for it before the warps return",
        )


def check_exit(cta: Cta, in_flight: Iterable[AsyncOp]) -> None:
    """Raise `ExitFault` for what a CTA must not leave behind."""
    who = f"cta {cta.ctaid}"
    _check_landed(cta, in_flight)
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
            f"{cta.tmem.held} TMEM columns were freed by one CTA of a pair only",
            who=who,
            where=cta.tmem.space,
            rule="one warp of each CTA of a pair performs tcgen05.alloc and dealloc "
            "[PTX: tcgen05.alloc]",
            remedy="let a warp of the peer take part",
        )
