"""cp_async: copies of a few bytes per thread, and the arrival that follows them.

Each thread copies 4, 8 or 16 bytes from global to shared memory. A warp's instruction
is one operation here, so its lanes' bytes land together. The copies are ordered by
nothing but what waits for them: ``cp.async.mbarrier.arrive`` arrives when all earlier
copies of its threads are complete. They write through the generic proxy. Source: PTX,
cp.async.
"""

from __future__ import annotations

from collections.abc import Sequence

from fp4ref.errors import ClusterFault, MisalignedAddress
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.order.knowledge import GENERIC
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import store_generic
from fp4ref.trace import Range


def copy(
    warp: Warp, targets: Sequence[int], sources: Sequence[int], nbytes: int
) -> None:
    """``cp.async.{ca,cg}.shared.global [target], [source], nbytes`` of some lanes.

    Parameters
    ----------
    targets, sources
        A shared and a global address for each executing lane.

    Raises
    ------
    MisalignedAddress, ClusterFault, OutOfBounds
    """
    pieces = []
    for target, source in zip(targets, sources, strict=True):
        if target % nbytes or source % nbytes:
            raise MisalignedAddress(
                f"cp.async of {nbytes} bytes from {source:#x} to {target:#x}",
                who=warp.who,
                rule="both addresses are aligned to the size [PTX: cp.async]",
                remedy="align them, or copy fewer bytes at a time",
            )
        cta, offset = warp.cta.resolve_shared(target)
        if cta is not warp.cta:
            raise ClusterFault(
                f"cp.async to shared memory of cta {cta.ctaid}",
                who=warp.who,
                rule="the target is .shared::cta [PTX: cp.async]",
                remedy="let a warp of that CTA copy",
            )
        pieces.append((source, offset))
    gmem, smem = warp.machine.gmem, warp.smem
    reads = [Range(gmem.space, source, nbytes) for source, _ in pieces]
    writes = [Range(smem.space, offset, nbytes) for _, offset in pieces]
    for where in reads:
        gmem.check_bounds(where)
    for where in writes:
        smem.check_bounds(where)

    access = warp.machine.order.issue(
        warp.actor, "cp.async", proxy=GENERIC, whole_warp=True
    )
    lanes = warp.actor.executing
    access.reads(gmem, *reads, lanes=lanes)
    access.writes(smem, *writes, lanes=lanes)

    def land() -> None:
        for where, (_, offset) in zip(reads, pieces, strict=True):
            store_generic(warp, warp.cta, offset, gmem.read(where)[0])

    op = warp.issue(
        "cp.async",
        {"smem": pieces[0][1], "lanes": len(pieces), "nbytes": nbytes * len(pieces)},
        land,
        unit="cp.async",
        reads=reads,
        writes=writes,
    )
    op.access = access
    warp.cp_async_queue.append(op)
    warp.cp_async_issued.append(access)


def mbarrier_arrive_noinc(warp: Warp, mbar: int, count: int) -> None:
    """``cp.async.mbarrier.arrive.noinc``: one arrival of each of `count` lanes.

    It comes when all earlier ``cp.async`` of the warp have landed; of every lane at
    once, although a lane has to wait only for its own.
    """
    cta, offset = warp.cta.resolve_shared(mbar)
    if cta is not warp.cta:
        raise ClusterFault(
            f"cp.async.mbarrier.arrive on an mbarrier of cta {cta.ctaid}",
            who=warp.who,
            rule="it takes a .shared::cta address [PTX: cp.async.mbarrier.arrive]",
            remedy="let a warp of that CTA do it",
        )
    cta.mbarriers.load(offset)
    issued = list(warp.cp_async_issued)
    access = warp.machine.order.issue(
        warp.actor, "cp.async.mbarrier.arrive", proxy=GENERIC, whole_warp=True
    )
    access.signals(cta.smem, offset)

    def land() -> None:
        phase = cta.mbarriers.completed.get(offset, 0)
        access.hand_over(issued, cta.smem, offset, phase)
        cta.mbarriers.update(offset, arrivals=count, who=warp.who)

    earlier: list[AsyncOp] = [op for op in warp.cp_async_queue if not op.landed]
    op = warp.issue(
        "cp.async.mbarrier.arrive.noinc",
        {"mbar": mbar, "count": count},
        land,
        unit="cp.async",
        after=earlier,
    )
    warp.cp_async_queue = [*earlier, op]
