"""atomics: ``atom`` and ``red`` on global and shared memory.

A vector is as many scalar operations, in the order of its elements.

Lanes of one address take their turn in lane order; PTX leaves the order open.
``add.f32`` flushes subnormals in global memory and keeps them in shared memory, of this
CTA or another, whatever the kind of address. ``add.f64`` and ``.noftz`` keep them
everywhere. Of ``min`` and ``max`` of halves a NaN loses, as without ``.NaN``.
Source: PTX, atom; red.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.arithmetic import add_f32
from fp4ref.ptx.instructions import doubles
from fp4ref.ptx.instructions.floating import flush
from fp4ref.ptx.instructions.halves import smaller_or_larger
from fp4ref.ptx.instructions.rounded import rounded
from fp4ref.ptx.instructions.rounding import NARROW
from fp4ref.ptx.run.observed import observe, strength
from fp4ref.ptx.run.operands import address_reader, items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction
from fp4ref.ptx.run.spaces import (
    Addresses,
    check_alignment,
    read_memory,
    resolve,
    write_memory,
)
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import Instruction, Operand, PtxError

_WHERE = "(.(cta|cluster|gpu|sys))?(.(?P<space>global|shared(::cta|::cluster)?))?"
_REDUCE = "add|min|max|inc|dec|and|or|xor"
_KIND = ".(?P<kind>[bsu](32|64)|f32)"

_HALVES = ("f16", "bf16")
_HALF = ".noftz.(?P<kind>b?f16(x2)?)"

_TYPES = {
    "add": ("s32", "u32", "u64", "f32", "f64"),
    "min": ("s32", "u32", "s64", "u64"),
    "max": ("s32", "u32", "s64", "u64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
}


Operation = Callable[[Lanes, Lanes, Lanes], Lanes]


def _add_in_global(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float32, subnormal sources and results flushed."""
    return flush(add_f32(flush(old), flush(b)))


def _add_in_shared(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float32, subnormals kept."""
    return add_f32(old, b)


def _add_doubles_in_global(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float64, rounded to nearest even; a signalling NaN stays as it is."""
    found = doubles.quiet(np.add(old, b), [old, b])
    for source in (old, b):
        found = np.where(np.isnan(source), source, found)
    return found


def _add_doubles_in_shared(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float64, as ``add.f64`` of the operand and what is there."""
    return doubles.quiet(np.add(b, old), [b, old])


def _on_halves(what: str, half: str) -> Operation:
    """Return an operation of patterns: one of 16 bits, or two in 32."""
    to = NARROW[half]

    def act(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
        x, y = (np.ascontiguousarray(each).view(to.storage) for each in (old, b))
        if what == "add":
            found = rounded("add", to, "rn", to.widen(x), to.widen(y))[1]
        else:
            found = smaller_or_larger(x, y, to, larger=what == "max", keeps_nan=False)
        return found.astype(to.storage).view(old.dtype)

    return act


_FLOAT_ADD: dict[str, Operation] = {"global": _add_in_global, "shared": _add_in_shared}
_DOUBLE_ADD: dict[str, Operation] = {
    "global": _add_doubles_in_global,
    "shared": _add_doubles_in_shared,
}


def operations(what: str, kind: str) -> dict[str, Operation]:
    """Return the new values as a function of old ones and operands, by space.

    Raises
    ------
    Unknown
        ``atom`` has no such operation of this type.
    """
    half = kind.removesuffix("x2")
    if half in _HALVES:
        return dict.fromkeys(("global", "shared"), _on_halves(what, half))
    functions: dict[str, Operation] = {
        "add": lambda old, b, c: old + b,
        "min": lambda old, b, c: np.minimum(old, b),
        "max": lambda old, b, c: np.maximum(old, b),
        "inc": lambda old, b, c: np.where(old >= b, 0, old + 1),
        "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - 1),
        "and": lambda old, b, c: old & b,
        "or": lambda old, b, c: old | b,
        "xor": lambda old, b, c: old ^ b,
        "exch": lambda old, b, c: b,
        "cas": lambda old, b, c: np.where(old == b, c, old),
    }
    if kind not in _TYPES[what]:
        raise Unknown("ptx-atomics")
    if kind == "f32":
        return _FLOAT_ADD
    if kind == "f64":
        return _DOUBLE_ADD
    return dict.fromkeys(("global", "shared"), functions[what])


_ATOM = f"(.(relaxed|acquire|release|acq_rel))?{_WHERE}.(?P<what>"
_RED = f"(.(relaxed|release))?{_WHERE}.(?P<what>"


@instruction(
    "atom",
    form=f"{_ATOM}{_REDUCE}|exch|cas){_KIND}",
    operands=(3, 4),
    strict=True,
    effect=False,
)
@instruction(
    "atom", form=f"{_ATOM}cas).(?P<kind>b16)", operands=4, strict=True, effect=False
)
@instruction(
    "atom", form=f"{_ATOM}add).(?P<kind>f64)", operands=3, strict=True, effect=False
)
@instruction("atom", form=f"{_ATOM}add){_HALF}", operands=3, strict=True, effect=False)
@instruction("red", form=f"{_RED}{_REDUCE}){_KIND}", operands=2, writes=0, strict=True)
@instruction("red", form=f"{_RED}add).(?P<kind>f64)", operands=2, writes=0, strict=True)
@instruction("red", form=f"{_RED}add){_HALF}", operands=2, writes=0, strict=True)
def atomic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``atom`` and ``red``."""
    returns = form["name"] == "atom"
    operands = each.operands if returns else (None, *each.operands)
    if len(operands) != (4 if form["what"] == "cas" else 3):
        raise PtxError(f"PTX line {each.line}: {each.opcode} with {len(operands)}")
    return _element(context, each, form, operands, 0)


_SCOPE = "(.(cta|cluster|gpu|sys))?(.(?P<space>global))?"
_ORDERS = f"(.(relaxed|acquire|release|acq_rel))?{_SCOPE}"
_NO_ACQUIRE = f"(.(relaxed|release))?{_SCOPE}"
_OF_HALVES = ".(?P<what>add|min|max).noftz.(?P<vector>v2|v4|v8).(?P<kind>b?f16)"
_OF_PAIRS = ".(?P<what>add|min|max).noftz.(?P<vector>v2|v4).(?P<kind>b?f16x2)"


@instruction(
    "atom",
    form=f"{_ORDERS}.(?P<what>add).(?P<vector>v2|v4).(?P<kind>f32)",
    operands=3,
    strict=True,
    effect=False,
)
@instruction("atom", form=_ORDERS + _OF_HALVES, operands=3, strict=True, effect=False)
@instruction("atom", form=_ORDERS + _OF_PAIRS, operands=3, strict=True, effect=False)
@instruction("red", form=_NO_ACQUIRE + _OF_HALVES, operands=2, writes=0, strict=True)
@instruction("red", form=_NO_ACQUIRE + _OF_PAIRS, operands=2, writes=0, strict=True)
@instruction(
    "red",
    form=f"{_NO_ACQUIRE}.(?P<what>add).(?P<vector>v2|v4).(?P<kind>f32)",
    operands=2,
    writes=0,
    strict=True,
)
def vector(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``atom`` and ``red`` of vectors of floats in global memory."""
    count = int(form["vector"][1:])
    returns = form["name"] == "atom"
    at, sources = each.operands[-2:]
    values = items_of(sources)
    targets = items_of(each.operands[0]) if returns else (None,) * count
    if len(values) != count or len(targets) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes {count} elements")
    address = address_reader(context, at, each)
    nbytes = dtype_of(register_type(form["kind"])).itemsize * count
    acts = [
        _element(context, each, form, (target, at, value), i)
        for i, (target, value) in enumerate(zip(targets, values, strict=True))
    ]

    def act(state: WarpState) -> None:
        addresses = address(state)[state.lanes]
        check_alignment(state, addresses, nbytes, each.opcode)
        for element in acts:
            element(state)

    return act


def register_type(kind: str) -> str:
    """Return the type of the registers: halves are patterns."""
    if kind.removesuffix("x2") in _HALVES:
        return "b32" if kind.endswith("x2") else "b16"
    return kind


def _element(
    context: LaunchContext,
    each: Instruction,
    form: Form,
    operands: Sequence[Operand | None],
    number: int,
) -> Action:
    """Build the operation of one element; operands: destination, address, sources."""
    what, kind = form["what"], register_type(form["kind"])
    by_space = operations(what, form["kind"])
    put = writer(context, operands[0], kind, each)
    at = address_reader(context, operands[1], each)
    b = reader(context, operands[2], kind, each)
    c = reader(context, operands[3], kind, each) if what == "cas" else b
    dtype = dtype_of(kind)
    how = strength(each.opcode, "gpu")
    name = f"{form['name']}.{what}"
    generic = form["space"].split("::")[0] or "generic"

    def act(state: WarpState) -> None:
        lanes = np.flatnonzero(state.lanes)
        addresses = at(state)[lanes] + np.uint64(number * dtype.itemsize)
        check_alignment(state, addresses, dtype.itemsize, each.opcode)
        results = np.zeros(LANES, dtype)
        # The operands first: the destination may be one of them.
        left, right = b(state)[lanes], c(state)[lanes]
        for turn in _turns(addresses):
            for space, where, part in resolve(generic, addresses[turn]):
                if space not in by_space:
                    raise PtxError(
                        f"PTX line {each.line}: {each.opcode} in {space} memory"
                    )
                mine = turn[part]
                observe(
                    state,
                    space,
                    where,
                    dtype.itemsize,
                    name,
                    is_write=True,
                    lanes=lanes[mine],
                    how=how,
                    modifies=True,
                )
                old = read_memory(state, space, where, dtype.itemsize)
                new = (
                    by_space[space](old.view(dtype)[:, 0], left[mine], right[mine])
                    .astype(dtype)
                    .view(np.uint8)
                    .reshape(old.shape)
                )
                results[lanes[mine]] = old.view(dtype)[:, 0]
                changed = (new != old).any(axis=1)
                if changed.any():
                    # A failed compare-and-swap changes nothing that others could see.
                    state.context.changes += 1
                    write_memory(state, space, where[changed], new[changed])
        put(state, results)
        state.warp.record(name, {"lanes": lanes.size})

    return act


def _turns(addresses: Addresses) -> list[NDArray[np.intp]]:
    """Split lanes so that none of a turn's addresses is there twice.

    Lanes of one address take their turns in lane order.
    """
    _, place, counts = np.unique(addresses, return_inverse=True, return_counts=True)
    together = np.argsort(place, kind="stable")
    before = np.repeat(np.cumsum(counts) - counts, counts)
    turn = np.empty(addresses.size, np.intp)
    turn[together] = np.arange(addresses.size) - before
    return [np.flatnonzero(turn == k) for k in range(counts.max(initial=0))]
