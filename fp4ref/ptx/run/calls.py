"""calls: lanes go into a function and come back, with their arguments and results.

A call is a path of its own (`fp4ref.ptx.run.divergence`): the lanes that call run in it
until they return, and the others of the caller's path wait for them. Arguments are
copied in lane by lane, results back. Every activation of a recursive function has its
own registers, parameters and local variables; others need none, because a lane is in
them once at a time. Source: PTX, call; ABI, device functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import HardwareFault
from fp4ref.ptx.run.activation import Call, Frame, Move
from fp4ref.ptx.run.divergence import Path
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import (
    Instruction,
    Operand,
    PtxError,
    Register,
    Symbol,
    Variable,
    Vector,
)

MOST_CALLS = 1000
"""Calls inside of each other; a card has as many as fit its stack, by default 1 KB."""

MOST_LOCAL = 1 << 19
"""Bytes of local memory of a thread [CUDA guide: technical specifications]."""


class CallDepth(HardwareFault):
    """Functions call each other deeper than the limit."""


def call_of(context: LaunchContext, each: Instruction) -> Call:
    """Return the call of a function of the program.

    Raises
    ------
    PtxError
        Arguments or results are not those of the function.
    """
    results, name, arguments = each.operands
    assert isinstance(results, Vector)
    assert isinstance(name, Symbol)
    assert isinstance(arguments, Vector)
    program = context.program
    function = program.functions[name.name]
    into = _moves(context, each, function.params, arguments.items, "arguments", True)
    back = _moves(context, each, function.results, results.items, "results", False)
    own = (*function.params, *function.results, *function.variables)
    return Call(
        name.name,
        program.starts[name.name],
        into,
        back,
        tuple(context.index[register] for register in function.registers),
        tuple(variable.name for variable in own if variable.space == "param"),
        name.name in program.recursive,
    )


def _moves(
    context: LaunchContext,
    each: Instruction,
    formals: Sequence[Variable],
    actuals: Sequence[Operand | None],
    what: str,
    inwards: bool,
) -> tuple[Move, ...]:
    if len(formals) != len(actuals):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {len(actuals)} {what}; the "
            f"function has {len(formals)}"
        )
    moves = []
    for formal, actual in zip(formals, actuals, strict=True):
        if actual is None:
            continue
        if formal.space == "param" and isinstance(actual, Symbol):
            names = (actual.name, formal.name)
            source, target = names if inwards else names[::-1]
            moves.append(_move_bytes(source, target, formal.nbytes))
        elif isinstance(actual, Symbol):
            raise PtxError(
                f"PTX line {each.line}: {each.opcode} passes {actual.name} for the "
                f"register {formal.name.split('@')[0]}"
            )
        elif formal.space == "reg":
            operands = (actual, Register(formal.name))
            first, second = operands if inwards else operands[::-1]
            moves.append(_move_register(context, each, formal.kind, first, second))
        elif inwards:
            moves.append(_store(context, each, formal, actual))
        else:
            moves.append(_load(context, each, formal, actual))
    return tuple(moves)


def _store(
    context: LaunchContext, each: Instruction, formal: Variable, source: Operand
) -> Move:
    """Move a register or a literal into a parameter."""
    get = reader(context, source, formal.kind, each)

    def read(state: WarpState) -> Callable[[WarpState], None]:
        data = np.ascontiguousarray(get(state)).view(np.uint8).reshape(LANES, -1)
        return lambda state: _put(state, formal.name, data)

    return read


def _load(
    context: LaunchContext, each: Instruction, formal: Variable, target: Operand
) -> Move:
    """Move a parameter into a register."""
    put = writer(context, target, formal.kind, each)
    at = context.register(target, each)

    def read(state: WarpState) -> Callable[[WarpState], None]:
        nothing = np.zeros((LANES, formal.nbytes), np.uint8)
        data = np.ascontiguousarray(state.arguments.get(formal.name, nothing))

        def write(state: WarpState) -> None:
            put(state, data.view(dtype_of(formal.kind))[:, 0])
            state.define(at, -1)

        return write

    return read


def _move_bytes(source: str, target: str, nbytes: int) -> Move:
    """Move a parameter; bytes that nobody stored are zeros."""

    def read(state: WarpState) -> Callable[[WarpState], None]:
        data = np.zeros((LANES, nbytes), np.uint8)
        given = state.arguments.get(source, data)[:, :nbytes]
        data[:, : given.shape[1]] = given

        def write(state: WarpState) -> None:
            _put(state, target, data)

        return write

    return read


def _put(state: WarpState, name: str, data: NDArray[np.uint8]) -> None:
    """Let a parameter have `data` in the executing lanes."""
    before = state.arguments.get(name, data)
    found = np.zeros((LANES, max(before.shape[1], data.shape[1])), np.uint8)
    found[:, : before.shape[1]] = before
    found[state.lanes, : data.shape[1]] = data[state.lanes]
    state.arguments[name] = found


def _move_register(
    context: LaunchContext,
    each: Instruction,
    kind: str,
    source: Operand | None,
    target: Operand | None,
) -> Move:
    get, put = reader(context, source, kind, each), writer(context, target, kind, each)
    at = context.register(target, each)
    taken = context.index.get(source.name) if isinstance(source, Register) else None

    def read(state: WarpState) -> Callable[[WarpState], None]:
        value = get(state).copy()
        defined = -1 if taken is None else state.defined[taken]

        def write(state: WarpState) -> None:
            put(state, value)
            state.define(at, defined)

        return write

    return read


# -- entering and leaving ------------------------------------------------------------


def enter(state: WarpState, call: Call, path: Path, paths: list[Path]) -> None:
    """Let the executing lanes of a path run a function.

    Raises
    ------
    CallDepth
        Too many activations are inside of each other.
    """
    above = _frame_of(path)
    depth = 1 + (above.depth if above else 0)
    if depth > MOST_CALLS:
        raise CallDepth(
            f"{depth} calls inside of each other, the last of {call.name[:60]}",
            who=state.warp.who,
            where=state.at,
            rule=f"the executor goes {MOST_CALLS:,} calls deep; a card's stack, 1 KB a "
            "thread by default, holds fewer",
            remedy="look at what ends the recursion",
        )
    written = [move(state) for move in call.into]
    frame = _saved(state, call, depth) if call.recursive else Frame(call, depth)
    for index in call.registers:
        state.define(index, 0)
    for write in written:
        write(state)
    lanes = state.mask
    path.mask &= ~lanes
    path.pc += 1
    if lanes:
        never = len(state.context.program.instructions)
        paths.append(Path(call.start, lanes, never, path, frame=frame))


def leave(state: WarpState, path: Path) -> bool:
    """Let the executing lanes of a path return; False if it is in no function."""
    body = path
    while body.frame is None:
        if body.into is None:
            return False
        body = body.into
    frame = body.frame
    written = [move(state) for move in frame.call.back]
    if frame.call.recursive:
        _restore(state, frame)
    for write in written:
        write(state)
    assert body.into is not None
    body.into.mask |= state.mask
    path.mask &= ~state.mask
    return True


def _frame_of(path: Path) -> Frame | None:
    at: Path | None = path
    while at is not None and at.frame is None:
        at = at.into
    return at.frame if at is not None else None


def _saved(state: WarpState, call: Call, depth: int) -> Frame:
    """Keep what an outer activation has, and give this one its own local memory."""
    registers = tuple(
        (index, state.registers[index].copy(), state.defined[index])
        for index in call.registers
    )
    named = state.arguments
    arguments = {name: named[name] for name in call.saved if name in named}
    _move_stack(state, state.context.stack_nbytes)
    return Frame(call, depth, registers, arguments)


def _restore(state: WarpState, frame: Frame) -> None:
    for index, values, defined in frame.registers:
        state.registers[index][state.lanes] = values[state.lanes]
        state.define(index, defined)
    for name, data in frame.arguments.items():
        _put(state, name, data)
    _move_stack(state, -state.context.stack_nbytes)


def _move_stack(state: WarpState, nbytes: int) -> None:
    """Give the executing lanes other local variables of recursive functions."""
    if not nbytes:
        return
    state.stack[state.lanes] += np.uint64(nbytes % (1 << 64))
    if nbytes < 0:
        return
    most = state.context.local_nbytes + int(state.stack.max())
    if most > MOST_LOCAL:
        raise CallDepth(
            f"{most:,} bytes of local memory in a lane",
            who=state.warp.who,
            where=state.at,
            rule=f"a thread has at most {MOST_LOCAL:,} bytes [CUDA guide: technical "
            "specifications]",
            remedy="look at what ends the recursion",
        )
    if more := max(most - state.local.shape[1], 0):
        state.local = np.pad(state.local, ((0, 0), (0, more)))
        state.local_written = np.pad(state.local_written, ((0, 0), (0, more)))
    for lane in np.flatnonzero(state.lanes):
        end = state.context.local_nbytes + int(state.stack[lane])
        state.local_written[lane, end - nbytes : end] = False
