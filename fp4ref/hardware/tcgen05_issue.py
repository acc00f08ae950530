"""tcgen05_issue: how a warp's cp, mma and commit get in flight, and in which order.

Order that PTX promises within one thread: an MMA comes after earlier copies and after
earlier MMAs of the same shape and accumulator, a commit after everything. Other MMAs
run in order too, but relying on it is a fault. A copy is *not* ordered after an earlier
MMA; compiled kernels rely on it, so ``ordering="shipped"`` keeps all of a thread's work
in order. Source: PTX, tcgen05 memory model.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from fp4ref.errors import ReadWhileInFlight, ScaleFactorFault
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.collector import HeldMatrix, Usage
from fp4ref.hardware.cta_pair import with_group
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.instr_descriptor import SHAPE_MASK
from fp4ref.hardware.mma_operands import Accumulator, Scales, Share, Shares, Tile
from fp4ref.hardware.order.book import NO_FACTS
from fp4ref.hardware.sm import Cta, Warp
from fp4ref.hardware.tensor_memory import CELL_NBYTES, TensorMemory
from fp4ref.trace import Range


def in_flight_of(warp: Warp) -> list[AsyncOp]:
    """Return the warp's tcgen05 work that has not landed, oldest first."""
    queue = [op for op in warp.tcgen05_queue if not op.landed]
    warp.tcgen05_queue = queue
    return list(queue)


def before_cp(warp: Warp, targets: Sequence[Range]) -> list[AsyncOp]:
    """Return what a copy to `targets` comes after."""
    earlier = in_flight_of(warp)
    read = any(overlap(op.reads, targets) for op in earlier)
    allowed = warp.machine.allows(Advisory.COPY_OVER_MMA, used=read)
    return earlier if allowed else []


def before_mma(
    warp: Warp, d: Sequence[Range], d_tmem: int, idesc: int
) -> list[AsyncOp]:
    """Return what an MMA into the cells `d` comes after.

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
        if not same and (shared := overlap(op.writes, d)):
            raise ReadWhileInFlight(
                "tcgen05.mma into columns that an MMA in flight of another shape or "
                "start writes",
                who=warp.who,
                where=_tmem_of(warp, shared[1]).describe(
                    max(each.start for each in shared)
                ),
                rule="MMAs are ordered only with the same shape and accumulator [PTX: "
                "tcgen05 memory model]",
                remedy="wait for the commit of the earlier MMAs",
            )
    return earlier


def overlap(some: Sequence[Range], others: Sequence[Range]) -> tuple[Range, ...]:
    """Return the first range of each that share a byte; () if none do."""
    for a in some:
        for b in others:
            if a.overlaps(b):
                return a, b
    return ()


def check_apart(warp: Warp, d: Accumulator, *scales: Scales) -> None:
    """Raise `ScaleFactorFault` for scales in the columns of the accumulator."""
    for each, name in zip(scales, ("SFA", "SFB"), strict=True):
        if shared := overlap(d.blocks, [each.where]):
            raise ScaleFactorFault(
                f"{name} lies in the columns of the accumulator",
                who=warp.who,
                where=d.tmem.describe(max(where.start for where in shared)),
                rule="an MMA may not overwrite the scales it reads",
                remedy=f"keep {d.blocks[0].nbytes // CELL_NBYTES} columns for D, and "
                "the scales outside them",
            )


def _tmem_of(warp: Warp, where: Range) -> TensorMemory:
    """TMEM of the cluster that a range lies in."""
    ctas = warp.cta.cluster.ctas
    return next(cta.tmem for cta in ctas if cta.tmem.space == where.space)


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


def with_modifiers(
    operands: dict[str, Any], cta_group: int, collector: Usage
) -> dict[str, Any]:
    """Return operands for the trace, with the modifiers that are not the usual ones."""
    found = with_group(operands, cta_group)
    return found if collector == "discard" else found | {"collector": collector}


def pass_collector(
    shares: Sequence[Share],
    values: Sequence[NDArray[Any]],
    negate: bool,
    usage: Usage,
    who: str,
) -> None:
    """Let the A of each CTA pass the collector buffer of its tensor core.

    Parameters
    ----------
    values
        What was read of A's memory.
    negate
        Whether the MMA negates A.

    Raises
    ------
    CollectorFault
    """
    for share, a in zip(shares, values, strict=True):
        buffer = share.d.tmem.collector
        if usage == "discard":
            buffer.empty()
        else:
            buffer.land(usage, HeldMatrix((share.a, negate), a), who, share.a.place)


def issue_mma(
    warp: Warp,
    operands: Mapping[str, Any],
    shares: Shares[Share],
    land: Callable[[], None],
) -> None:
    """Put an MMA in flight, after what it is ordered after."""
    d_tmem, idesc = operands["d_tmem"], operands["idesc"]
    machine = warp.machine
    if machine.order.watches:
        observe(
            warp,
            "tcgen05.mma",
            tiles=[tile for share in shares.each for tile in share.tiles],
            reads=[(share.d.tmem, share.cells_read) for share in shares.each],
            writes=[(share.d.tmem, share.d.blocks) for share in shares.each],
            facts=accumulator_facts(d_tmem, idesc),
        )
    for share in shares.each:
        for scales in share.scales:
            if scales.is_odd:
                machine.allows(Advisory.ODD_SCALE_COLUMN)
    issue(
        warp,
        "tcgen05.mma",
        operands,
        land,
        reads=shares.reads,
        writes=shares.writes,
        after=before_mma(warp, shares.writes, d_tmem, idesc),
    )


Named = TypeVar("Named")


def named_once(
    ctas: Sequence[Cta], bits: Hashable, decode: Callable[[], Named]
) -> Named:
    """Return what the operands of an instruction name, decoded at their first use.

    It follows from their bits, the CTAs and what is allocated in the TMEM of these.

    Parameters
    ----------
    bits
        The instruction and its operands.
    """
    key = bits, *((cta.ctaid, cta.tmem.allocations) for cta in ctas)
    known = ctas[0].named
    found: Named | None = known.get(key)
    if found is None:
        found = known[key] = decode()
    return found


def observe(
    warp: Warp,
    operation: str,
    *,
    tiles: Sequence[Tile],
    reads: Sequence[tuple[TensorMemory, Sequence[Range]]],
    writes: Sequence[tuple[TensorMemory, Sequence[Range]]],
    facts: Mapping[str, Any] = NO_FACTS,
) -> None:
    """Let the engine see what a cp or mma reads and writes.

    Parameters
    ----------
    tiles
        What it reads of shared memory.
    reads, writes
        Blocks of TMEM, by CTA.
    """
    order = warp.machine.order
    if not order.watches:
        return
    access = order.issue(warp.actor, operation, facts=facts)
    for tile in tiles:
        access.reads(tile.smem, tile.addresses)
    for tmem, blocks in reads:
        access.reads(tmem, *blocks)
    for tmem, blocks in writes:
        access.writes(tmem, *blocks)
    order.queue(access)
