"""cp_async: copies of a few bytes per thread, and the arrival that follows them.

Each thread copies 4, 8 or 16 bytes from global to shared memory; of fewer bytes read
the rest becomes 0. A warp's instruction
is one operation here, so its lanes' bytes land together, and a lane that has waited
for its own knows those of the others too. The copies are ordered by nothing but what
waits for them: ``cp.async.mbarrier.arrive`` arrives when all earlier copies of its
threads are complete, and ``cp.async.wait_group`` waits for those of a thread's own
groups. They write through the generic proxy. Source: PTX, cp.async.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from fp4ref.errors import ClusterFault, MisalignedAddress, OutOfBounds
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.order.knowledge import GENERIC
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.hardware.smem import mark_elements, store_generic
from fp4ref.hardware.timing import Timed
from fp4ref.trace import Range


def copy(
    warp: Warp,
    targets: Sequence[int],
    sources: Sequence[int],
    nbytes: int,
    source_nbytes: Sequence[int] | None = None,
) -> None:
    """``cp.async.{ca,cg}.shared.global [target], [source], nbytes`` of some lanes.

    Parameters
    ----------
    targets, sources
        A shared and a global address for each executing lane.
    source_nbytes
        Bytes that each lane reads, at most `nbytes`; the rest of its target becomes 0.
        None reads all.

    Raises
    ------
    MisalignedAddress, ClusterFault, OutOfBounds
    """
    sizes = [nbytes] * len(targets) if source_nbytes is None else list(source_nbytes)
    pieces = _pieces(warp, targets, sources, nbytes, sizes)
    gmem, smem = warp.machine.gmem, warp.smem
    reads = [Range(gmem.space, source, size) for source, _, size in pieces if size]
    writes = [Range(smem.space, offset, nbytes) for _, offset, _ in pieces]
    for where in reads:
        gmem.check_bounds(where)
    for where in writes:
        smem.check_bounds(where)

    access = warp.machine.order.issue(
        warp.actor, "cp.async", proxy=GENERIC, whole_warp=True
    )
    lanes, readers = warp.actor.executing, None
    joined_reads, joined_writes = joined(reads), joined(writes)
    if lanes is None:
        reads, writes = joined_reads, joined_writes
    else:
        readers = [i for i, size in zip(lanes, sizes, strict=False) if size]
    if reads:
        access.reads(gmem, *reads, lanes=readers)
    access.writes(smem, *writes, lanes=lanes)

    def land() -> None:
        if _copy_at_once(warp, pieces, nbytes):
            return
        for source, offset, size in pieces:
            data = np.zeros(nbytes, np.uint8)
            if size:
                data[:size] = gmem.read(Range(gmem.space, source, size))[0]
            store_generic(warp, warp.cta, offset, data)

    op = warp.issue(
        "cp.async",
        {"smem": pieces[0][1], "lanes": len(pieces), "nbytes": nbytes * len(pieces)},
        land,
        unit="cp.async",
        reads=joined_reads,
        writes=joined_writes,
    )
    op.access = access
    warp.cp_async_queue.append(op)
    warp.cp_async_issued.append(access)
    warp.cp_async_groups.append(op, warp.actor.active)


def _copy_at_once(
    warp: Warp, pieces: Sequence[tuple[int, int, int]], nbytes: int
) -> bool:
    """Copy all lanes' whole elements, if nobody wants to see each; False if not."""
    machine, smem = warp.machine, warp.smem
    whole = all(size == nbytes for _, _, size in pieces)
    if machine.recorder is not None or not whole:
        return False
    sources, offsets = (
        np.array([piece[i] for piece in pieces], np.int64) for i in range(2)
    )
    data = machine.gmem.gather_elements((sources - machine.gmem.base) // nbytes, nbytes)
    if data is None:
        return False
    numbers = (offsets - smem.base) // nbytes
    smem.scatter_elements(numbers, data)
    first, last = int(offsets.min()), int(offsets.max())
    around = Range(smem.space, first, last + nbytes - first)
    mark_elements(warp, smem, numbers, nbytes, around)
    return True


def _pieces(
    warp: Warp,
    targets: Sequence[int],
    sources: Sequence[int],
    nbytes: int,
    sizes: Sequence[int],
) -> list[tuple[int, int, int]]:
    """Return (source, shared offset, bytes read) of each lane; raise what is wrong."""
    pieces = []
    for target, source, size in zip(targets, sources, sizes, strict=True):
        if not 0 <= size <= nbytes:
            raise OutOfBounds(
                f"cp.async of {nbytes} bytes reads {size} from {source:#x}",
                who=warp.who,
                rule="src-size is at most cp-size [PTX: cp.async]",
                remedy="read no more than is written",
            )
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
        pieces.append((source, offset, size))
    return pieces


def joined(pieces: Sequence[Range]) -> list[Range]:
    """Return the same bytes of one memory in as few ranges as possible."""
    found: list[Range] = []
    for each in sorted(pieces, key=lambda where: where.start):
        if found and found[-1].start + found[-1].size == each.start:
            found[-1] = Range(each.space, found[-1].start, found[-1].size + each.size)
        else:
            found.append(each)
    return found


def commit_group(warp: Warp) -> None:
    """``cp.async.commit_group``: close a group of each executing lane."""
    warp.cp_async_groups.commit(warp.actor.active)
    warp.record("cp.async.commit_group", {})


@dataclass(frozen=True, slots=True)
class CopyWait:
    """A warp waits for ``cp.async`` groups."""

    ops: tuple[AsyncOp, ...]

    def ready(self) -> bool:
        """Whether all have landed."""
        return all(op.landed for op in self.ops)

    def visible_at(self, clock: Timed) -> float:
        """When the last of them is done."""
        return max((op.lands for op in self.ops), default=0.0)

    def describe(self) -> str:
        """How many operations are left."""
        return f"cp.async groups: {sum(not op.landed for op in self.ops)} in flight"

    def released_by(self) -> str:
        """The unit that copies."""
        return "cp.async"


def wait_group(warp: Warp, pending: int) -> Generator[Blocked, None, None]:
    """``cp.async.wait_group pending``.

    Blocks until at most the newest `pending` groups of each executing lane are
    unfinished. The lanes then see what these copies wrote; others need a barrier.
    """
    actor = warp.actor
    active = actor.active
    lanes_of = warp.cp_async_groups.take(active, pending)
    since = yield from warp.wait(CopyWait(tuple(lanes_of)))
    for lanes in set(lanes_of.values()):
        actor.active = lanes
        mine = [op.access for op, done in lanes_of.items() if done == lanes]
        warp.machine.order.drain(actor, mine)
    actor.active = active
    warp.cp_async_queue = [op for op in warp.cp_async_queue if not op.landed]
    warp.record("cp.async.wait_group", {"pending": pending}, since=since)


def wait_all(warp: Warp) -> Generator[Blocked, None, None]:
    """``cp.async.wait_all``: commit, and wait for every group."""
    commit_group(warp)
    yield from wait_group(warp, 0)


def mbarrier_arrive_noinc(warp: Warp, mbar: int, count: int) -> None:
    """``cp.async.mbarrier.arrive.noinc``: one arrival of each of `count` lanes.

    It comes when all earlier ``cp.async`` of the warp have landed; of every lane at
    once, although a lane has to wait only for its own.
    """
    _arrive(warp, mbar, count, ".noinc")


def mbarrier_arrive(warp: Warp, mbar: int, count: int) -> None:
    """``cp.async.mbarrier.arrive``: the phase waits for one arrival more of each lane.

    The pending count is raised first, so that the arrivals change nothing in all.
    """
    cta, offset = warp.cta.resolve_shared(mbar)
    if cta is warp.cta:
        cta.mbarriers.expect_arrivals(offset, count, warp.who)
    _arrive(warp, mbar, count, "")


def _arrive(warp: Warp, mbar: int, count: int, form: str) -> None:
    """Arrive on an mbarrier of this CTA when the copies so far have landed."""
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
        f"cp.async.mbarrier.arrive{form}",
        {"mbar": mbar, "count": count},
        land,
        unit="cp.async",
        after=earlier,
    )
    warp.cp_async_queue = [*earlier, op]
