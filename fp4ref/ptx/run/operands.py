"""operands: functions that read and write the operands of an instruction, by lane.

An instruction's type comes from its opcode; where a register's width differs, reads
take the low bits (or extend with zeros), and writes extend by the sign of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from fp4ref.hardware.shared_memory import RANK_SHIFT
from fp4ref.ptx.run.special_registers import special_reader
from fp4ref.ptx.run.state import (
    FULL,
    LANES,
    STORAGE,
    Lanes,
    LaunchContext,
    WarpState,
    dtype_of,
)
from fp4ref.ptx.text.syntax import (
    TYPE_NBYTES,
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    PtxError,
    Register,
    Symbol,
    Vector,
)

Get = Callable[[WarpState], Lanes]
Put = Callable[[WarpState, Lanes], None]


def reader(
    context: LaunchContext, operand: Operand | None, kind: str, instruction: Instruction
) -> Get:
    """Return a function that reads an operand as `kind`, one value for each lane."""
    dtype = dtype_of(kind)
    if isinstance(operand, Immediate):
        value = constant(operand, dtype)
        return lambda state: value
    if isinstance(operand, Symbol):
        return _symbol(context, operand, dtype, instruction)
    if isinstance(operand, Negated):
        index = context.register(operand.register, instruction)
        _check_predicate(context, index, kind, instruction)
        return lambda state: ~state.registers[index]
    if isinstance(operand, Register) and operand.name not in context.index:
        return special_reader(operand.name, dtype, instruction)
    index = context.register(operand, instruction)
    declared = context.kinds[index]
    _check_predicate(context, index, kind, instruction)
    if "b128" in (declared, kind) and declared != kind:
        raise PtxError(
            f"PTX line {instruction.line}: {instruction.opcode} reads {kind} from a "
            f"register of type {declared}"
        )
    if declared in ("pred", "b128"):
        return lambda state: state.registers[index]
    if TYPE_NBYTES[declared] == dtype.itemsize:
        return lambda state: state.view(index, dtype)
    storage = STORAGE[dtype.itemsize]
    return lambda state: state.registers[index].astype(storage).view(dtype)


def _check_predicate(
    context: LaunchContext, index: int, kind: str, instruction: Instruction
) -> None:
    if (context.kinds[index] == "pred") != (kind == "pred"):
        raise PtxError(
            f"PTX line {instruction.line}: {instruction.opcode} mixes predicates and "
            "values"
        )


def constant(operand: Immediate, dtype: np.dtype[Any]) -> Lanes:
    """Broadcast a literal; a float literal gives its bits."""
    if dtype == np.bool_:
        return np.full(LANES, operand.value != 0)
    bits = operand.value
    if dtype.kind == "f" and operand.float_bits == 64 and dtype.itemsize == 4:
        value = np.array([bits], np.uint64).view(np.float64).astype(np.float32)
        return np.full(LANES, value[0], dtype)
    unsigned = bits % (1 << 8 * dtype.itemsize)
    return np.full(LANES, unsigned, STORAGE[dtype.itemsize]).view(dtype)


def _symbol(
    context: LaunchContext,
    operand: Symbol,
    dtype: np.dtype[Any],
    instruction: Instruction,
) -> Get:
    """Read the address of a variable; a shared one carries the CTA's rank.

    A local one of a recursive function lies on the lane's stack.
    """
    if operand.name not in context.addresses or dtype.itemsize < 4:
        raise PtxError(
            f"PTX line {instruction.line}: {instruction.opcode} uses the unknown "
            f"symbol {operand.name}"
        )
    address = context.addresses[operand.name]
    if operand.name in context.shared:
        return lambda s: _everywhere(address | s.warp.cta.rank << RANK_SHIFT, dtype)
    if operand.name in context.stacked:
        return lambda s: (s.stack + np.uint64(address)).astype(dtype)
    constant = np.full(LANES, address % (1 << 8 * dtype.itemsize), dtype)
    return lambda state: constant


@lru_cache(maxsize=1024)
def _everywhere(value: int, dtype: np.dtype[Any]) -> Lanes:
    """Return one value for all lanes; not to be written."""
    lanes = np.full(LANES, value, dtype)
    lanes.flags.writeable = False
    return lanes


def writer(
    context: LaunchContext, operand: Operand | None, kind: str, instruction: Instruction
) -> Put:
    """Return a function that writes `kind` values to a register, in executing lanes."""
    if operand is None:
        return lambda state, values: None
    index = context.register(operand, instruction)
    declared = context.kinds[index]
    _check_predicate(context, index, kind, instruction)
    if declared == "b128" or kind == "b128":
        if declared != kind:
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} writes {kind} to a "
                f"register of type {declared}"
            )

        def put_wide(state: WarpState, values: Lanes) -> None:
            state.registers[index][state.lanes] = values[state.lanes]

        return put_wide
    dtype = dtype_of(kind)
    storage = np.dtype(np.bool_ if kind == "pred" else STORAGE[TYPE_NBYTES[declared]])
    if storage.itemsize == dtype.itemsize:

        def put(state: WarpState, values: Lanes) -> None:
            if state.mask == FULL:
                state.registers[index][:] = values.view(storage)
            else:
                np.copyto(
                    state.registers[index], values.view(storage), where=state.lanes
                )

        return put
    source = np.dtype(f"<{'i' if kind[0] == 's' else 'u'}{dtype.itemsize}")

    def put_extended(state: WarpState, values: Lanes) -> None:
        bits = values.view(source).astype(storage)
        np.copyto(state.registers[index], bits, where=state.lanes)

    return put_extended


def items_of(operand: Operand | None) -> tuple[Operand | None, ...]:
    """Return the elements of a vector operand; a single operand is a vector of one."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def address_reader(
    context: LaunchContext, operand: Operand | None, each: Instruction
) -> Get:
    """Return a function that computes the byte address of every lane."""
    if not isinstance(operand, Address):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} needs an address in brackets"
        )
    base = reader(context, operand.base, "u64", each)
    if operand.offset == 0:
        return base
    offset = np.uint64(operand.offset % (1 << 64))
    return lambda s: base(s) + offset
