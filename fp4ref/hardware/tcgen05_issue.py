"""tcgen05_issue: how a warp's cp, mma and commit get in flight, and in which order.

Order that PTX promises within one thread: an MMA comes after earlier copies and after
earlier MMAs of the same shape and accumulator, a commit after everything. Other MMAs
run in order too, but relying on it is a fault. A copy is *not* ordered after an earlier
MMA; compiled kernels rely on it, so ``ordering="shipped"`` keeps all of a thread's work
in order. Source: PTX, tcgen05 memory model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import NotModelled, ReadWhileInFlight
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.instr_descriptor import SHAPE_MASK
from fp4ref.hardware.order.book import NO_FACTS
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Range


def check_cta_group(warp: Warp, cta_group: int, what: str) -> None:
    """Raise `NotModelled` for a pair of CTAs."""
    if cta_group != 1:
        raise NotModelled(
            f"{what}.cta_group::{cta_group}",
            who=warp.who,
            remedy="use cta_group::1",
            gap="cta-pair",
        )


def in_flight_of(warp: Warp) -> list[AsyncOp]:
    """Return the warp's tcgen05 work that has not landed, oldest first."""
    queue = [op for op in warp.tcgen05_queue if not op.landed]
    warp.tcgen05_queue = queue
    return list(queue)


def before_cp(warp: Warp, target: Range) -> list[AsyncOp]:
    """Return what a copy to `target` comes after."""
    earlier = in_flight_of(warp)
    read = any(r.overlaps(target) for op in earlier for r in op.reads)
    allowed = warp.machine.allows(Advisory.COPY_OVER_MMA, used=read)
    return earlier if allowed else []


def before_mma(warp: Warp, d: Range, d_tmem: int, idesc: int) -> list[AsyncOp]:
    """Return what an MMA into `d` comes after.

    Raises
    ------
    ReadWhileInFlight
        An MMA of another shape or start still uses columns of the accumulator.
    """
    earlier = in_flight_of(warp)
    for op in earlier:
        if op.operation != "tcgen05.mma" or warp.machine.ordering == "shipped":
            continue
        same_shape = (op.operands["idesc"] ^ idesc) & SHAPE_MASK == 0
        same = op.operands["d_tmem"] == d_tmem and same_shape
        if not same and op.writes[0].overlaps(d):
            raise ReadWhileInFlight(
                "tcgen05.mma into columns that an MMA in flight of another shape or "
                "start writes",
                who=warp.who,
                where=warp.tmem.describe(max(d.start, op.writes[0].start)),
                rule="MMAs are ordered only with the same shape and accumulator [PTX: "
                "tcgen05 memory model]",
                remedy="wait for the commit of the earlier MMAs",
            )
    return earlier


def accumulator_facts(d_tmem: int, idesc: int) -> dict[str, int]:
    """Return what two MMAs have in common that the pipeline keeps in order."""
    return {"d_tmem": d_tmem, "shape": idesc & SHAPE_MASK}


def issue(
    warp: Warp,
    operation: str,
    operands: Mapping[str, Any],
    land: Callable[[], None],
    *,
    after: Sequence[AsyncOp],
    reads: Sequence[Range] = (),
    writes: Sequence[Range] = (),
) -> None:
    """Put tcgen05 work in flight, last in the warp's line."""
    op = warp.issue(
        operation,
        operands,
        land,
        unit="tcgen05",
        reads=reads,
        writes=writes,
        after=after,
    )
    warp.tcgen05_queue.append(op)


def observe(
    warp: Warp,
    operation: str,
    *,
    tiles: Sequence[NDArray[np.int64]],
    reads: Sequence[Range],
    writes: Range,
    facts: Mapping[str, Any] = NO_FACTS,
) -> None:
    """Let the engine see what a cp or mma reads and writes.

    Parameters
    ----------
    tiles
        Shared addresses of every byte that it reads.
    reads, writes
        Blocks of TMEM.
    """
    order = warp.machine.order
    if not order.watches:
        return
    access = order.issue(warp.actor, operation, facts=facts)
    for addresses in tiles:
        access.reads(warp.smem, addresses)
    access.reads(warp.tmem, *reads)
    access.writes(warp.tmem, writes)
    order.queue(access)
