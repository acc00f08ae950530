"""atomics: ``atom`` and ``red`` on global and shared memory, lane after lane.

A vector is as many scalar operations, in the order of its elements.

Lanes of one instruction take their turn in lane order; PTX leaves the order open.
``add.f32`` flushes subnormals in global memory and keeps them in shared memory, of this
CTA or another, whatever the kind of address. ``add.f64`` keeps them everywhere.
Source: PTX, atom; red.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fp4ref.numerics.arithmetic import add_f32
from fp4ref.ptx.instructions import doubles
from fp4ref.ptx.instructions.floating import flush
from fp4ref.ptx.run.observed import observe, strength
from fp4ref.ptx.run.operands import address_reader, items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction
from fp4ref.ptx.run.spaces import check_alignment, read_memory, resolve, write_memory
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import Instruction, Operand, PtxError

_WHERE = "(.(cta|cluster|gpu|sys))?(.(?P<space>global|shared(::cta|::cluster)?))?"
_REDUCE = "add|min|max|inc|dec|and|or|xor"
_KIND = ".(?P<kind>[bsu](32|64)|f32)"

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
    "cas": ("b32", "b64"),
}


Operation = Callable[[Lanes, Lanes, Lanes], Lanes]


def _add_in_global(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float32, subnormal sources and results flushed."""
    return flush(add_f32(flush(old), flush(b)))


def _add_in_shared(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float32, subnormals kept."""
    return add_f32(old, b)


def _add_doubles(old: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Add in float64, rounded to nearest even."""
    return doubles.quiet(np.add(old, b), [old, b])


_FLOAT_ADD: dict[str, Operation] = {"global": _add_in_global, "shared": _add_in_shared}


def operations(what: str, kind: str) -> dict[str, Operation]:
    """Return the new values as a function of old ones and operands, by space.

    Raises
    ------
    Unknown
        ``atom`` has no such operation of this type.
    """
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
        return dict.fromkeys(("global", "shared"), _add_doubles)
    return dict.fromkeys(("global", "shared"), functions[what])


@instruction(
    "atom",
    form=f"(.(relaxed|acquire|release|acq_rel))?{_WHERE}"
    f".(?P<what>{_REDUCE}|exch|cas){_KIND}",
    operands=(3, 4),
    strict=True,
    effect=False,
)
@instruction(
    "red",
    form=f"(.(relaxed|release))?{_WHERE}.(?P<what>{_REDUCE}){_KIND}",
    operands=2,
    writes=0,
    strict=True,
)
def atomic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``atom`` and ``red``."""
    returns = form["name"] == "atom"
    operands = each.operands if returns else (None, *each.operands)
    if len(operands) != (4 if form["what"] == "cas" else 3):
        raise PtxError(f"PTX line {each.line}: {each.opcode} with {len(operands)}")
    return _element(context, each, form, operands, 0)


@instruction(
    "atom",
    form=f"(.(relaxed|acquire|release|acq_rel))?{_WHERE}.(?P<what>add).(?P<kind>f64)",
    operands=3,
    strict=True,
    effect=False,
)
@instruction(
    "red",
    form=f"(.(relaxed|release))?{_WHERE}.(?P<what>add).(?P<kind>f64)",
    operands=2,
    writes=0,
    strict=True,
)
def double(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``atom.add.f64`` and ``red.add.f64``."""
    operands = each.operands if form["name"] == "atom" else (None, *each.operands)
    return _element(context, each, form, operands, 0)


@instruction(
    "atom",
    form="(.(relaxed|acquire|release|acq_rel))?(.(cta|cluster|gpu|sys))?"
    "(.(?P<space>global))?.(?P<what>add).(?P<vector>v2|v4).(?P<kind>f32)",
    operands=3,
    strict=True,
    effect=False,
)
@instruction(
    "red",
    form="(.(relaxed|release))?(.(cta|cluster|gpu|sys))?"
    "(.(?P<space>global))?.(?P<what>add).(?P<vector>v2|v4).(?P<kind>f32)",
    operands=2,
    writes=0,
    strict=True,
)
def vector(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``atom`` and ``red`` of vectors of float32 in global memory."""
    count = int(form["vector"][1:])
    returns = form["name"] == "atom"
    at, sources = each.operands[-2:]
    values = items_of(sources)
    targets = items_of(each.operands[0]) if returns else (None,) * count
    if len(values) != count or len(targets) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes {count} elements")
    address = address_reader(context, at, each)
    nbytes = dtype_of(form["kind"]).itemsize * count
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


def _element(
    context: LaunchContext,
    each: Instruction,
    form: Form,
    operands: Sequence[Operand | None],
    number: int,
) -> Action:
    """Build the operation of one element; operands: destination, address, sources."""
    what, kind = form["what"], form["kind"]
    by_space = operations(what, kind)
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
        addresses = at(state) + np.uint64(number * dtype.itemsize)
        check_alignment(state, addresses[lanes], dtype.itemsize, each.opcode)
        results = np.zeros(LANES, dtype)
        # The operands first: the destination may be one of them.
        left, right = b(state).copy(), c(state).copy()
        for lane in lanes:
            ((space, where, _),) = resolve(generic, addresses[lane : lane + 1])
            if space not in by_space:
                raise PtxError(f"PTX line {each.line}: {each.opcode} in {space} memory")
            mine = lanes[lanes == lane]
            observe(
                state,
                space,
                where,
                dtype.itemsize,
                name,
                is_write=True,
                lanes=mine,
                how=how,
                modifies=True,
            )
            old = read_memory(state, space, where, dtype.itemsize).view(dtype)[0]
            one = slice(lane, lane + 1)
            new = by_space[space](old, left[one], right[one]).astype(dtype)[None]
            results[lane] = old[0]
            if new.tobytes() != old.tobytes():
                # A failed compare-and-swap changes nothing that others could see.
                state.context.changes += 1
                write_memory(state, space, where, new.view(np.uint8))
        put(state, results)
        state.warp.record(name, {"lanes": lanes.size})

    return act
