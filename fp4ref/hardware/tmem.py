"""Part 4. tmem: 128 lanes x 512 columns of 32 bits, and how warps reach them.

An address is ``lane << 16 | column``. Columns are allocated in powers of two from 32 to
512, by a whole warp. A warp reaches only the lanes of its own quarter:
``32 * (warp % 4)`` and the 31 after it. Source: PTX, Tensor Memory; CUTLASS
``copy_sm100.hpp``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DescriptorFault, TmemAllocationFault
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.cta_pair import pair_of, participants, with_group
from fp4ref.hardware.in_flight import AsyncOp, find_conflict
from fp4ref.hardware.registers import Registers
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.hardware.tensor_memory import CELL_NBYTES as CELL_NBYTES
from fp4ref.hardware.tensor_memory import COLUMNS as COLUMNS
from fp4ref.hardware.tensor_memory import LANE_NBYTES as LANE_NBYTES
from fp4ref.hardware.tensor_memory import LANES as LANES
from fp4ref.hardware.tensor_memory import MAX_REPEAT as MAX_REPEAT
from fp4ref.hardware.tensor_memory import SLOT_COLUMNS as SLOT_COLUMNS
from fp4ref.hardware.tensor_memory import Shape as Shape
from fp4ref.hardware.tensor_memory import TensorMemory as TensorMemory
from fp4ref.hardware.tensor_memory import address as address
from fp4ref.hardware.tensor_memory import fragment as fragment
from fp4ref.hardware.tensor_memory import lane_column as lane_column
from fp4ref.hardware.tmem_access import find_access
from fp4ref.hardware.tmem_wait import AllocWait, TmemWait
from fp4ref.trace import Range


def _alloc_fault(warp: Warp, what: str, rule: str, remedy: str) -> TmemAllocationFault:
    return TmemAllocationFault(
        what, who=warp.who, where=warp.tmem.space, rule=rule, remedy=remedy
    )


def alloc(
    warp: Warp, smem_address: int, columns: int, cta_group: int = 1
) -> Generator[Blocked, None, None]:
    """``tcgen05.alloc.sync.aligned.shared::cta.b32``. Frame 4.2.

    Blocks until the columns are free, then writes the TMEM address to shared memory.
    With ``cta_group::2`` a warp of each CTA of the pair executes it, and both get the
    same columns, each in its own TMEM.

    Raises
    ------
    TmemAllocationFault
        Not a power of two in 32..512, more than an earlier allocation of the CTA, or
        after ``relinquish_alloc_permit``; or the peer asked for another size.
    ClusterFault
        There is no peer, or the kernel uses the other group too.
    """
    tmem = warp.tmem
    ctas = participants(warp, cta_group, "tcgen05.alloc")
    if columns not in (32, 64, 128, 256, 512):
        raise _alloc_fault(
            warp,
            f"tcgen05.alloc of {columns} columns",
            "the column count is a power of two in 32..512 [PTX: tcgen05.alloc]",
            "round up to a power of two",
        )
    if tmem.relinquished:
        raise _alloc_fault(
            warp,
            "tcgen05.alloc after relinquish_alloc_permit",
            "a CTA may not allocate after it gave up the permit [PTX: tcgen05.alloc]",
            "relinquish after the last allocation",
        )
    if columns > tmem.last_size:
        raise _alloc_fault(
            warp,
            f"tcgen05.alloc of {columns} columns after one of {tmem.last_size}",
            "successive allocations of a CTA must not grow [PTX: tcgen05.alloc]",
            "allocate the largest block first",
        )
    if len(ctas) > 1:
        column = yield from _columns_of_pair(warp, columns)
    else:
        # Another warp may have taken the columns that woke this one.
        while (free := tmem.find_free(columns)) is None:
            yield from warp.wait(AllocWait(tmem, columns))
        column = free
    peers = [each.tmem for each in ctas if each is not warp.cta]
    warp.machine.order.alloc(warp.actor, tmem, tmem.take(column, columns), peers)
    cta, offset = warp.cta.resolve_shared(smem_address)
    word = np.frombuffer(column.to_bytes(4, "little"), np.uint8)
    where = Range(cta.smem.space, offset, 4)
    warp.machine.order.collective(warp.actor, cta.smem, where, "tcgen05.alloc")
    cta.smem.write(where, word.reshape(1, 4))
    operands = {"dst": smem_address, "columns": columns, "taddr": column}
    warp.record("tcgen05.alloc", with_group(operands, cta_group))


def _columns_of_pair(warp: Warp, columns: int) -> Generator[Blocked, None, int]:
    """First column that both CTAs of a pair get, once it is free."""
    pair = pair_of(warp, "tcgen05.alloc")
    tmem, claims = warp.tmem, pair.claims_of(warp.cta)
    while True:
        if claims:
            return pair.claimed(warp, columns)
        if (column := tmem.find_free(columns)) is not None:
            pair.claim(warp.cta, column, columns)
            return column
        yield from warp.wait(AllocWait(tmem, columns, claims))


def dealloc(warp: Warp, taddr: int, columns: int, cta_group: int = 1) -> None:
    """``tcgen05.dealloc``: free what one ``alloc`` gave. Frame 8.5.

    With ``cta_group::2`` both CTAs of the pair execute it, after all accesses to the
    TMEM of both. The columns are free when the second one has done so.

    Raises
    ------
    TmemAllocationFault
        The address and size are not those of a live allocation, or the peer has not
        executed its alloc.
    """
    tmem = warp.tmem
    ctas = participants(warp, cta_group, "tcgen05.dealloc", last=True)
    lane, column = lane_column(taddr)
    if lane or tmem.sizes.get(column) != columns:
        raise _alloc_fault(
            warp,
            f"tcgen05.dealloc of {columns} columns at {taddr:#x}",
            "dealloc names the address and size of one live alloc [PTX: "
            "tcgen05.dealloc]",
            "keep the address that tcgen05.alloc wrote",
        )
    if len(ctas) > 1:
        pair_of(warp, "tcgen05.dealloc").free(warp, column, columns)
    else:
        tmem.release(column, columns)
    peers = [cta.tmem for cta in ctas if cta is not warp.cta]
    where = tmem.rectangle(0, LANES, column, columns)
    warp.machine.order.dealloc(warp.actor, tmem, where, peers)
    if warp.machine.clock is not None:
        for cta in ctas:
            warp.machine.clock.mark(cta.tmem.space)
    warp.machine.guard(where, True)
    tmem.leave_undefined(where)
    operands = {"taddr": taddr, "columns": columns}
    warp.record("tcgen05.dealloc", with_group(operands, cta_group))


def relinquish_alloc_permit(warp: Warp, cta_group: int = 1) -> None:
    """``tcgen05.relinquish_alloc_permit``: no more allocations. Frame 8.2."""
    participants(warp, cta_group, "tcgen05.relinquish_alloc_permit", last=True)
    warp.tmem.relinquished = True
    warp.record("tcgen05.relinquish_alloc_permit", with_group({}, cta_group))


def ld(
    warp: Warp,
    taddr: int,
    shape: Shape = "32x32b",
    repeat: int = 1,
    half_split: int = 0,
    packed: bool = False,
) -> Registers:
    """``tcgen05.ld.sync.aligned.SHAPE.xN{.pack::16b}.b32``. Frame 7.5.

    Returns its registers: a use waits for the value, `wait_ld` for the load.

    Parameters
    ----------
    packed
        Whether each register takes the low halves of two neighbouring cells.

    Raises
    ------
    LaneQuarterViolation, TmemAllocationFault, DescriptorFault, MisalignedAddress
    """
    cells = find_access(warp, taddr, shape, repeat, half_split, "tcgen05.ld", packed)
    blocks = cells.blocks
    registers = Registers(warp.machine, warp.who)

    def land() -> None:
        registers.fill(*cells.load())

    access = warp.machine.order.issue(
        warp.actor, "tcgen05.ld", whole_warp=True, facts=registers.facts
    )
    access.reads(warp.tmem, *blocks)
    operands = _operands(taddr, shape, repeat, packed)
    stores = _stores_of(warp, blocks)
    if not warp.machine.allows(Advisory.LOAD_AFTER_STORE, used=bool(stores)):
        stores = ()
    registers.op = warp.issue("tcgen05.ld", operands, land, reads=blocks, after=stores)
    registers.op.access = access
    warp.tmem_accesses.append(registers.op)
    warp.tmem_loads.append(registers)
    return registers


def _operands(taddr: int, shape: Shape, repeat: int, packed: bool) -> dict[str, Any]:
    """Return what the trace says of an access."""
    found: dict[str, Any] = {"taddr": taddr, "shape": shape, "repeat": repeat}
    return found | {"packed": True} if packed else found


def _stores_of(warp: Warp, blocks: Sequence[Range]) -> tuple[AsyncOp, ...]:
    """Return what the warp has stored into these blocks, with no ``wait::st`` since."""
    return tuple(
        op
        for op in warp.tmem_accesses
        if op.operation == "tcgen05.st" and find_conflict(blocks, (), op)
    )


def st(
    warp: Warp,
    taddr: int,
    words: NDArray[np.uint32],
    shape: Shape = "32x32b",
    repeat: int = 1,
    half_split: int = 0,
    packed: bool = False,
) -> None:
    """``tcgen05.st.sync.aligned.SHAPE.xN{.unpack::16b}.b32``.

    Parameters
    ----------
    words
        (32 threads, registers).
    packed
        Whether each register goes to the low halves of two neighbouring cells.

    Raises
    ------
    LaneQuarterViolation, TmemAllocationFault, DescriptorFault, MisalignedAddress
    """
    cells = find_access(warp, taddr, shape, repeat, half_split, "tcgen05.st", packed)
    if words.shape != cells.shape:
        raise DescriptorFault(
            f"tcgen05.st.{shape}.x{repeat} of {words.shape} words",
            who=warp.who,
            rule=f"it takes {cells.shape[1]} registers of each of 32 threads",
            remedy="pass one word for each register",
        )
    # Registers may be reused at once: the values are those at issue.
    words = words.copy()

    def land() -> None:
        cells.store(words)

    access = warp.machine.order.issue(warp.actor, "tcgen05.st", whole_warp=True)
    access.writes(warp.tmem, *cells.blocks)
    operands = _operands(taddr, shape, repeat, packed)
    op = warp.issue("tcgen05.st", operands, land, writes=cells.blocks)
    op.access = access
    warp.tmem_accesses.append(op)


def _wait(warp: Warp, operation: str) -> Generator[Blocked, None, None]:
    ops = tuple(op for op in warp.tmem_accesses if op.operation == operation)
    name = operation.replace("tcgen05.", "tcgen05.wait::")
    yield from warp.wait(TmemWait(ops, name))
    warp.machine.order.drain(warp.actor, [op.access for op in ops])
    warp.tmem_accesses = [op for op in warp.tmem_accesses if op.operation != operation]
    warp.record(name, {})


def wait_ld(warp: Warp) -> Generator[Blocked, None, None]:
    """``tcgen05.wait::ld``: this warp's loads have landed in registers."""
    yield from _wait(warp, "tcgen05.ld")
    for registers in warp.tmem_loads:
        registers.wait()
    warp.tmem_loads = []


def wait_st(warp: Warp) -> Generator[Blocked, None, None]:
    """``tcgen05.wait::st``: this warp's stores have landed in TMEM."""
    return _wait(warp, "tcgen05.st")
