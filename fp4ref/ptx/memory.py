"""memory: loads and stores of PTX, by lane, in every state space.

An access is a gather or scatter of a few bytes for each executing lane. Neighbouring
lanes are joined into runs, so that bounds, poison, conflicts and the trace see ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import MisalignedAddress
from fp4ref.hardware.sm import Cta
from fp4ref.hardware.smem import RANK_SHIFT, load_generic, store_generic
from fp4ref.ptx.parser import (
    TYPE_NBYTES,
    Address,
    Instruction,
    PtxError,
    Symbol,
    Vector,
)
from fp4ref.ptx.registry import Action, Unknown, instruction
from fp4ref.ptx.state import (
    LANES,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_MASK,
    Get,
    LaunchContext,
    WarpState,
    dtype_of,
    reader,
    writer,
)
from fp4ref.trace import Bytes, Range

_CACHE = (
    "relaxed", "acquire", "release", "weak", "volatile", "cta", "cluster", "gpu", "sys",
    "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt",
)  # fmt: skip
"""Modifiers that change no value here."""


def address_reader(context: LaunchContext, operand: object, each: Instruction) -> Get:
    """Return a function that computes the byte address of every lane."""
    if not isinstance(operand, Address):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} needs an address in brackets"
        )
    base = reader(context, operand.base, "u64", each)
    offset = np.uint64(operand.offset % (1 << 64))
    if isinstance(operand.base, Symbol):
        rank = _is_shared(context, operand.base.name)
        if rank:
            return lambda s: base(s) + offset | np.uint64(s.warp.cta.rank << RANK_SHIFT)
    return lambda s: base(s) + offset


def _is_shared(context: LaunchContext, name: str) -> bool:
    program = context.program
    return any(
        v.name == name and v.space == "shared"
        for v in (*program.module.variables, *program.entry.variables)
    )


def runs(addresses: NDArray[np.uint64], nbytes: int) -> list[tuple[int, NDArray[Any]]]:
    """Join lanes whose bytes are neighbours: (first address, lanes in order)."""
    order = np.argsort(addresses, kind="stable")
    at = addresses[order]
    breaks = np.flatnonzero(np.diff(at) != nbytes) + 1
    return [(int(addresses[part[0]]), part) for part in np.split(order, breaks)]


def gather(
    read: Callable[[int, int], Bytes], addresses: NDArray[np.uint64], nbytes: int
) -> Bytes:
    """Read `nbytes` at each address, shape (lanes, nbytes).

    `read` takes an address and a size, and returns contiguous bytes.
    """
    distinct, inverse = np.unique(addresses, return_inverse=True)
    values = np.empty((distinct.size, nbytes), np.uint8)
    for start, part in runs(distinct, nbytes):
        values[part] = read(start, nbytes * part.size).reshape(part.size, nbytes)
    lanes: Bytes = values[inverse]
    return lanes


def scatter(
    write: Callable[[int, Bytes], None], addresses: NDArray[np.uint64], data: Bytes
) -> None:
    """Write data[i] at addresses[i]; of equal addresses the last lane wins.

    `write` takes an address and contiguous bytes.
    """
    reversed_first = np.unique(addresses[::-1], return_index=True)[1]
    keep = addresses.size - 1 - reversed_first
    distinct, rows = addresses[keep], data[keep]
    for start, part in runs(distinct, data.shape[1]):
        write(start, rows[part].ravel())


def _check_alignment(
    state: WarpState, addresses: NDArray[np.uint64], nbytes: int, each: Instruction
) -> None:
    bad = addresses % np.uint64(nbytes)
    if bad.any():
        address = int(addresses[np.flatnonzero(bad)[0]])
        raise MisalignedAddress(
            f"{each.opcode} of {nbytes} bytes at {address:#x}",
            who=state.warp.who,
            where=f"PTX line {each.line}",
            rule="an access is aligned to its size [PTX: addresses as operands]",
            remedy="align the address",
        )


def _shape(each: Instruction) -> tuple[str, str, int]:
    """Return (state space, element type, elements) of a load or store."""
    parts = each.opcode.split(".")[1:]
    kind = parts.pop()
    count, space = 1, "generic"
    for part in parts:
        if part in ("v2", "v4", "v8"):
            count = int(part[1:])
        elif part in _CACHE or part.startswith(("L1::", "L2::")):
            continue
        elif part in (
            "global",
            "shared",
            "shared::cta",
            "shared::cluster",
            "param",
            "local",
            "const",
        ):
            space = part.split("::")[0]
        else:
            raise Unknown
    if kind not in TYPE_NBYTES or kind == "pred":
        raise Unknown
    return space, kind, count


def _generic(state: WarpState, addresses: NDArray[np.uint64]) -> str:
    """State space of a generic access; all lanes are in one."""
    window = int(addresses[0]) & WINDOW_MASK
    spaces = {
        PARAM_WINDOW: "param",
        SHARED_WINDOW: "shared",
        LOCAL_WINDOW: "local",
    }
    return spaces.get(window, "global")


def _resolve(
    state: WarpState, space: str, addresses: NDArray[np.uint64]
) -> tuple[str, NDArray[np.uint64]]:
    if space != "generic":
        return space, addresses
    found = _generic(state, addresses)
    if found == "global":
        return found, addresses
    return found, addresses & np.uint64((1 << 40) - 1)


def _shared(
    state: WarpState, addresses: NDArray[np.uint64]
) -> tuple[Cta, NDArray[np.uint64]]:
    """CTA whose shared memory the addresses are in, and their local offsets."""
    rank = int(addresses[0]) >> RANK_SHIFT
    cta, _ = state.warp.cta.resolve_shared(rank << RANK_SHIFT)
    return cta, addresses & np.uint64((1 << RANK_SHIFT) - 1)


def _gather_shared(
    state: WarpState, addresses: NDArray[np.uint64], nbytes: int
) -> Bytes:
    cta, offsets = _shared(state, addresses)
    return gather(lambda at, size: load_generic(cta, at, size), offsets, nbytes)


def _scatter_shared(
    state: WarpState, addresses: NDArray[np.uint64], data: Bytes
) -> None:
    cta, offsets = _shared(state, addresses)
    scatter(lambda at, run: store_generic(state.warp, cta, at, run), offsets, data)


def _load(
    state: WarpState, space: str, addresses: NDArray[np.uint64], nbytes: int
) -> Bytes:
    space, addresses = _resolve(state, space, addresses)
    match space:
        case "param":
            table = np.frombuffer(state.context.params, np.uint8)
            index = addresses.astype(np.int64)[:, None] + np.arange(nbytes)
            found: Bytes = table[index]
            return found
        case "local":
            lanes = np.flatnonzero(state.lanes)[:, None]
            index = addresses.astype(np.int64)[:, None] + np.arange(nbytes)
            mine: Bytes = state.local[lanes, index]
            return mine
        case "shared":
            data = _gather_shared(state, addresses, nbytes)
        case _:
            gmem = state.warp.machine.gmem
            data = gather(
                lambda at, size: gmem.read(Range(gmem.space, at, size))[0],
                addresses,
                nbytes,
            )
            space = "global"
    state.warp.record(
        f"ld.{space}", {"lanes": int(addresses.size), "nbytes": int(data.size)}
    )
    return data


def _store(
    state: WarpState, space: str, addresses: NDArray[np.uint64], data: Bytes
) -> None:
    space, addresses = _resolve(state, space, addresses)
    match space:
        case "param":
            raise PtxError(f"PTX line {state.line}: a kernel parameter is stored to")
        case "local":
            lanes = np.flatnonzero(state.lanes)[:, None]
            index = addresses.astype(np.int64)[:, None] + np.arange(data.shape[1])
            state.local[lanes, index] = data
            return
        case "shared":
            _scatter_shared(state, addresses, data)
        case _:
            gmem = state.warp.machine.gmem
            scatter(
                lambda at, run: gmem.write(
                    Range(gmem.space, at, run.size), run.reshape(1, -1)
                ),
                addresses,
                data,
            )
            space = "global"
    state.warp.record(
        f"st.{space}", {"lanes": int(addresses.size), "nbytes": int(data.size)}
    )


@instruction("ld", "ldu")
def load(context: LaunchContext, each: Instruction) -> Action:
    """Build ``ld`` from any state space, scalar or vector."""
    space, kind, count = _shape(each)
    target = each.operands[0]
    items = target.items if isinstance(target, Vector) else (target,)
    if len(items) != count:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} has {len(items)} destinations"
        )
    at = address_reader(context, each.operands[1], each)
    if kind == "b128":
        index = context.register(items[0], each)

        def load_b128(state: WarpState) -> None:
            addresses = at(state)[state.lanes]
            data = _load(state, space, addresses, 16)
            state.registers[index][state.lanes] = np.ascontiguousarray(data).view("<u8")

        return load_b128
    puts = [writer(context, item, kind, each) for item in items]
    size = TYPE_NBYTES[kind]
    dtype = dtype_of(kind)

    def act(state: WarpState) -> None:
        addresses = at(state)[state.lanes]
        _check_alignment(state, addresses, size * count, each)
        data = _load(state, space, addresses, size * count)
        values = np.ascontiguousarray(data).view(dtype)
        for i, put in enumerate(puts):
            spread = np.zeros(LANES, dtype)
            spread[state.lanes] = values[:, i]
            put(state, spread)

    return act


@instruction("st", writes=0, strict=True)
def store(context: LaunchContext, each: Instruction) -> Action:
    """Build ``st`` to any state space, scalar or vector."""
    space, kind, count = _shape(each)
    source = each.operands[1]
    items = source.items if isinstance(source, Vector) else (source,)
    if len(items) != count or kind == "b128":
        raise Unknown
    reads = [reader(context, item, kind, each) for item in items]
    if space == "param":
        return _store_argument(context, each, reads, kind)
    at = address_reader(context, each.operands[0], each)
    size = TYPE_NBYTES[kind]

    def act(state: WarpState) -> None:
        addresses = at(state)[state.lanes]
        _check_alignment(state, addresses, size * count, each)
        stacked = np.stack([read(state)[state.lanes] for read in reads], axis=1)
        data = np.ascontiguousarray(stacked).view(np.uint8)
        _store(state, space, addresses, data)

    return act


def _store_argument(
    context: LaunchContext, each: Instruction, reads: list[Get], kind: str
) -> Action:
    """Build a store to a call's argument, which is kept for the call."""
    operand = each.operands[0]
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        raise Unknown
    name, offset = operand.base.name, operand.offset

    def act(state: WarpState) -> None:
        lane = state.first_lane
        data = b"".join(read(state)[lane].tobytes() for read in reads)
        before = state.call_params.get(name, b"").ljust(offset, b"\0")
        state.call_params[name] = before[:offset] + data

    return act


def _matrix_rows(state: WarpState, addresses: NDArray[np.uint64], count: int) -> Bytes:
    """Read eight 16-byte rows for each of `count` matrices, (8 * count, 16)."""
    return _gather_shared(state, addresses[: 8 * count], 16)


@instruction("ldmatrix.sync.aligned")
def load_matrix(context: LaunchContext, each: Instruction) -> Action:
    """Build ``ldmatrix.m8n8.xN{.trans}.shared.b16``.

    Lane 8 m + r holds the address of row r of matrix m; thread t receives
    the 32 bits of row t // 4, columns 2 (t % 4) and the next.
    """
    parts = each.opcode.split(".")
    if "m8n8" not in parts or parts[-1] != "b16":
        raise Unknown
    count = int(next(p for p in parts if p in ("x1", "x2", "x4"))[1:])
    transposed = "trans" in parts
    target = each.operands[0]
    items = target.items if isinstance(target, Vector) else (target,)
    puts = [writer(context, item, "b32", each) for item in items]
    at = address_reader(context, each.operands[1], each)

    def act(state: WarpState) -> None:
        rows = _matrix_rows(state, at(state), count)
        matrices = rows.view("<u2").reshape(count, 8, 8)
        if transposed:
            matrices = matrices.transpose(0, 2, 1)
        words = np.ascontiguousarray(matrices).view("<u4").reshape(count, LANES)
        for put, values in zip(puts, words, strict=True):
            put(state, values)
        state.warp.record("ldmatrix", {"matrices": count})

    return act


@instruction("stmatrix.sync.aligned", writes=0, strict=True)
def store_matrix(context: LaunchContext, each: Instruction) -> Action:
    """Build ``stmatrix.m8n8.xN{.trans}.shared.b16``, the inverse of ldmatrix."""
    parts = each.opcode.split(".")
    if "m8n8" not in parts or parts[-1] != "b16":
        raise Unknown
    count = int(next(p for p in parts if p in ("x1", "x2", "x4"))[1:])
    transposed = "trans" in parts
    source = each.operands[1]
    items = source.items if isinstance(source, Vector) else (source,)
    reads = [reader(context, item, "b32", each) for item in items]
    at = address_reader(context, each.operands[0], each)

    def act(state: WarpState) -> None:
        words = np.stack([read(state) for read in reads])
        matrices = words.view("<u2").reshape(count, 8, 8)
        if transposed:
            matrices = matrices.transpose(0, 2, 1)
        rows = np.ascontiguousarray(matrices).view(np.uint8).reshape(8 * count, 16)
        _scatter_shared(state, at(state)[: 8 * count], rows)
        state.warp.record("stmatrix", {"matrices": count})

    return act
