"""memory: ``ld`` and ``st`` in every state space, and the arguments of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.observed import Strength, observe, strength
from fp4ref.ptx.run.operands import Get, Put, address_reader, items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction
from fp4ref.ptx.run.spaces import (
    Addresses,
    check_alignment,
    read_local,
    read_memory,
    read_params,
    resolve,
    write_local,
    write_memory,
)
from fp4ref.ptx.run.state import (
    FULL,
    LANES,
    LaunchContext,
    WarpState,
    dtype_of,
    lanes_of,
    lanes_to_mask,
    width_of,
)
from fp4ref.ptx.run.taint import all_defined, undefined_bytes
from fp4ref.ptx.text.syntax import (
    TYPE_NBYTES,
    Address,
    Instruction,
    Operand,
    PtxError,
    Register,
    Symbol,
)
from fp4ref.trace import Bytes

_SCOPE = "(cta|cluster|gpu|sys)"
_EVICT = (
    "(.L1::(evict_normal|evict_unchanged|evict_first|evict_last|no_allocate))?"
    "(.L2::(evict_normal|evict_first|evict_last))?"
)
_LOAD_ORDER = f"(.(weak|volatile|(relaxed|acquire).{_SCOPE}))?"
_LOAD_CACHE = f"(.nc)?(.(ca|cg|cs|lu|cv))?{_EVICT}(.L2::(64B|128B|256B))?"
_STORE_ORDER = f"(.(weak|volatile|(relaxed|release).{_SCOPE}))?"
_STORE_CACHE = f"(.(wb|cg|cs|wt))?{_EVICT}"
"""Orders and cache hints change no value here: a warp's accesses are seen at once."""

_VECTOR = "(.v(?P<count>2|4|8))?.(?P<kind>[bsu](8|16|32|64)|f32|f64|b128)"
_SHARED = "shared(::cta|::cluster)?"


def _width(each: Instruction, form: Form, space: str) -> tuple[str, int, int]:
    """Return element type, elements, and bytes of one lane's access."""
    kind, count = form["kind"], int(form.get("count") or 1)
    nbytes = count * TYPE_NBYTES[kind]
    if nbytes > 32 or (nbytes > 16 and space not in ("global", "generic")):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} moves {nbytes} bytes; a lane moves "
            "16, or 32 of global memory"
        )
    if (count == 8 and nbytes != 32) or (nbytes == 32 and space == "generic"):
        raise Unknown("ptx-ld-st")
    if nbytes != 32 and ".L2::evict" in each.opcode:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} moves {nbytes} bytes; a priority of "
            "L2 goes with 32"
        )
    return kind, count, nbytes


@instruction(
    "ld",
    # PTX states the order first; the compilers take it behind the space too.
    form=".(?P<space>global|shared).acquire.(cta|gpu).(?P<kind>b32)",
    operands=2,
    taints=True,
)
@instruction(
    "ld",
    form=f"{_LOAD_ORDER}(.(?P<space>global|{_SHARED}|local|param(::entry)?|const))?"
    f"{_LOAD_CACHE}{_VECTOR}",
    operands=2,
    taints=True,
)
def load(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``ld`` from any state space, scalar or vector."""
    space = form["space"].split("::")[0] or "generic"
    kind, count, nbytes = _width(each, form, space)
    items = items_of(each.operands[0])
    if len(items) != count:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} has {len(items)} destinations"
        )
    puts = [writer(context, item, kind, each) for item in items]
    targets = [context.register(item, each) for item in items if item is not None]
    dtype = dtype_of(kind)
    argument = _argument(context, each.operands[1], space)
    if argument is not None:
        return _load_argument(argument, puts, targets, kind)
    at = address_reader(context, each.operands[1], each)
    name = f"ld.{space}"
    how = strength(each.opcode)

    def act(state: WarpState) -> None:
        lanes, addresses = lanes_of(state.mask), at(state)
        if state.mask != FULL:
            addresses = addresses[lanes]
        check_alignment(state, addresses, nbytes, each.opcode)
        data, defined = _read(state, space, lanes, addresses, nbytes, how)
        spread = data
        if state.mask != FULL:
            spread = np.zeros((LANES, nbytes), np.uint8)
            spread[lanes] = data
        values = spread.view(dtype)
        if kind == "b128":
            puts[0](state, values)
        else:
            columns = np.ascontiguousarray(values.T)
            for put, column in zip(puts, columns, strict=True):
                put(state, column)
        for target in targets:
            state.define(target, defined)
        if space not in ("param", "local"):
            state.warp.record(name, {"lanes": lanes.size, "nbytes": data.size})

    return act


def _read(
    state: WarpState,
    space: str,
    lanes: NDArray[np.intp],
    addresses: Addresses,
    nbytes: int,
    how: Strength,
) -> tuple[Bytes, int]:
    """Read every lane's bytes; also which lanes' values are defined."""
    whole = np.empty((addresses.size, nbytes), np.uint8)
    defined = -1
    for found, offsets, part in resolve(space, addresses):
        if found == "param":
            whole[part] = read_params(state, offsets, nbytes)
        elif found == "local":
            mine = lanes[part]
            whole[part], written = read_local(state, mine, offsets, nbytes)
            undefined = np.zeros(LANES, np.bool_)
            undefined[mine] = ~written
            defined &= ~lanes_to_mask(undefined)
        else:
            name = f"ld.{found}"
            mine = lanes[part]
            observe(
                state, found, offsets, nbytes, name, is_write=False, lanes=mine, how=how
            )
            whole[part] = read_memory(state, found, offsets, nbytes)
    return whole, defined


@instruction(
    "st",
    form=f"{_STORE_ORDER}(.(?P<space>global|{_SHARED}|local|param(::func)?))?"
    f"{_STORE_CACHE}{_VECTOR}",
    operands=2,
    writes=0,
    effect=True,
)
def store(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``st`` to any state space, scalar or vector."""
    space = form["space"].split("::")[0] or "generic"
    kind, count, nbytes = _width(each, form, space)
    items = items_of(each.operands[1])
    if len(items) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} has {len(items)} sources")
    reads = [reader(context, item, kind, each) for item in items]
    if space == "param":
        return _store_argument(context, each, reads, nbytes)
    at = address_reader(context, each.operands[0], each)
    sources = [
        context.index[item.name]
        for item in items
        if isinstance(item, Register) and item.name in context.index
    ]
    name = f"st.{space}"
    how = strength(each.opcode)
    width = TYPE_NBYTES[kind]
    collect = _collector(context, items, kind, reads)

    def act(state: WarpState) -> None:
        lanes = lanes_of(state.mask)
        addresses, data = at(state), collect(state)
        if state.mask != FULL:
            addresses, data = addresses[lanes], data[lanes]
        check_alignment(state, addresses, nbytes, each.opcode)
        for found, offsets, part in resolve(space, addresses):
            if found == "param":
                raise PtxError(f"PTX line {each.line}: a kernel parameter is stored to")
            if found == "local":
                # A spilled value may be undefined; memory that others see may not.
                mine = lanes[part]
                known = _defined_lanes(state, sources, width)[mine]
                write_local(state, mine, offsets, data[part], known)
            else:
                _check_stored(state, sources, width)
                observe(
                    state,
                    found,
                    offsets,
                    nbytes,
                    f"st.{found}",
                    is_write=True,
                    lanes=lanes[part],
                    how=how,
                )
                write_memory(state, found, offsets, data[part])
        if space != "local":
            state.warp.record(name, {"lanes": lanes.size, "nbytes": data.size})

    return act


def _collector(
    context: LaunchContext,
    items: Sequence[Operand | None],
    kind: str,
    reads: Sequence[Get],
) -> Callable[[WarpState], Bytes]:
    """Return a function that does `_rows`; registers of one file are copied at once."""
    names = [item.name for item in items if isinstance(item, Register)]
    places = [context.places[i] for i in map(context.index.get, names) if i is not None]
    width = width_of(kind)
    if not 1 < len(items) == len(places) or any(file != width for file, _ in places):
        return lambda state: _rows(state, reads)
    rows = np.array([row for _, row in places])

    def collect(state: WarpState) -> Bytes:
        values = state.files[width][rows]
        return np.ascontiguousarray(values.T).view(np.uint8)

    return collect


def _rows(state: WarpState, reads: Sequence[Get]) -> Bytes:
    """Put the values that a lane has of each source next to each other: (32, bytes)."""
    columns = [read(state) for read in reads]
    rows = np.empty((LANES, len(columns), *columns[0].shape[1:]), columns[0].dtype)
    for i, column in enumerate(columns):
        rows[:, i] = column
    return rows.reshape(LANES, -1).view(np.uint8)


def _defined_lanes(
    state: WarpState, sources: list[int], nbytes: int
) -> NDArray[np.bool_]:
    """Return in which lanes the low `nbytes` of all sources have values."""
    known = np.ones(LANES, np.bool_)
    for index in sources:
        if state.mask & ~state.defined[index]:
            known &= ~undefined_bytes(state, index, nbytes).any(axis=1)
    return known


def _check_stored(state: WarpState, sources: list[int], nbytes: int) -> None:
    """Raise `UndefinedRegister` if a byte that is stored has no value."""
    if not all_defined(state, sources):
        known = lanes_to_mask(_defined_lanes(state, sources, nbytes))
        state.check_defined(sources, state.mask & ~known)


# -- arguments and results of calls ---------------------------------------------


def _argument(
    context: LaunchContext, operand: object, space: str
) -> tuple[str, int] | None:
    """Name and offset, if the operand is a parameter of a call, not of the kernel."""
    if space != "param" or not isinstance(operand, Address):
        return None
    base = operand.base
    if not isinstance(base, Symbol) or base.name in context.program.param_offsets:
        return None
    return base.name, operand.offset


def _store_argument(
    context: LaunchContext, each: Instruction, reads: list[Get], nbytes: int
) -> Action:
    """Build a store to a call's argument, which is kept for the call."""
    found = _argument(context, each.operands[0], "param")
    if found is None:
        raise PtxError(f"PTX line {each.line}: {each.opcode} to no argument of a call")
    name, offset = found

    def act(state: WarpState) -> None:
        data = _rows(state, reads)
        before = state.arguments.get(name, np.zeros((LANES, 0), np.uint8))
        size = max(before.shape[1], offset + nbytes)
        argument = np.zeros((LANES, size), np.uint8)
        argument[:, : before.shape[1]] = before
        argument[state.lanes, offset : offset + nbytes] = data[state.lanes]
        state.arguments[name] = argument

    return act


def _load_argument(
    argument: tuple[str, int], puts: list[Put], targets: list[int], kind: str
) -> Action:
    """Build a load of a call's result."""
    name, offset = argument
    dtype = dtype_of(kind)

    def act(state: WarpState) -> None:
        data = state.arguments.get(name, np.zeros((LANES, 0), np.uint8))
        end = offset + len(puts) * dtype.itemsize
        if data.shape[1] < end:
            raise PtxError(f"PTX line {state.line}: {name} holds no result")
        values = np.ascontiguousarray(data[:, offset:end]).view(dtype)
        for i, put in enumerate(puts):
            put(state, np.ascontiguousarray(values[:, i]))
        for target in targets:
            state.define(target, -1)

    return act
