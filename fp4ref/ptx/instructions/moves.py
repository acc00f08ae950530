"""moves: moves, packing, address spaces, comparisons and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fp4ref.hardware.cluster import mapa
from fp4ref.ptx.instructions.floating import flush
from fp4ref.ptx.run.operands import Put, reader, writer
from fp4ref.ptx.run.registry import Action, Form, Lanewise, instruction
from fp4ref.ptx.run.spaces import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from fp4ref.ptx.run.state import (
    LANES,
    Lanes,
    LaunchContext,
    WarpState,
    dtype_of,
    lanes_to_mask,
)
from fp4ref.ptx.run.taint import Undefined, follow
from fp4ref.ptx.text.syntax import (
    TYPE_NBYTES,
    Instruction,
    Pair,
    PtxError,
    Register,
    Vector,
)

VALUE = "[bsu](16|32|64)|f32|f64"


@instruction("mov", form=f".(?P<kind>{VALUE}|pred|b128)", operands=2, taints=True)
def move(context: LaunchContext, each: Instruction, form: Form) -> Action | Lanewise:
    """Build ``mov``: registers, constants, addresses, packing and unpacking."""
    kind = form["kind"]
    target, source = each.operands
    if isinstance(target, Vector):
        return _unpack(context, each, target, kind)
    if isinstance(source, Vector):
        return _pack(context, each, source, kind)
    put = writer(context, target, kind, each)
    read = reader(context, source, kind, each)
    taint = follow(
        context, [source], [target], lambda s, found: found, TYPE_NBYTES[kind]
    )

    def act(state: WarpState) -> None:
        define = taint(state)
        put(state, read(state))
        define(state)

    return Lanewise(_same, (source,), (kind,), target, kind, act)


def _same(values: Lanes) -> Lanes:
    return values


def _pieces(each: Instruction, kind: str, count: int) -> str:
    bits = 8 * TYPE_NBYTES[kind]
    fits = count in (2, 4) and bits % count == 0 and bits // count in (8, 16, 32, 64)
    if kind[0] != "b" or not fits:
        raise PtxError(f"PTX line {each.line}: {each.opcode} of {count} pieces")
    return f"b{bits // count}"


def _pack(
    context: LaunchContext, each: Instruction, source: Vector, kind: str
) -> Action:
    piece = _pieces(each, kind, len(source.items))
    reads = [reader(context, o, piece, each) for o in source.items]
    put = writer(context, each.operands[0], kind, each)
    target, piece_type = dtype_of(kind), dtype_of(piece)

    def join(state: WarpState, found: list[Undefined]) -> list[Undefined]:
        return [np.concatenate(found, axis=1)]

    taint = follow(context, source.items, each.operands[:1], join, TYPE_NBYTES[piece])

    def act(state: WarpState) -> None:
        define = taint(state)
        stacked = np.empty((LANES, len(reads)), piece_type)
        for i, read in enumerate(reads):
            stacked[:, i] = read(state)
        whole = stacked.view(target)
        put(state, whole if kind == "b128" else whole[:, 0])
        define(state)

    return act


def _unpack(
    context: LaunchContext, each: Instruction, target: Vector, kind: str
) -> Action:
    piece = _pieces(each, kind, len(target.items))
    read = reader(context, each.operands[1], kind, each)
    puts = [writer(context, o, piece, each) for o in target.items]
    dtype = dtype_of(piece)

    def split(state: WarpState, found: list[Undefined]) -> list[Undefined]:
        return np.split(found[0], len(puts), axis=1)

    taint = follow(context, each.operands[1:], target.items, split, TYPE_NBYTES[kind])

    def act(state: WarpState) -> None:
        define = taint(state)
        # A copy: the source may be among the targets.
        whole = read(state).copy().reshape(LANES, -1)
        pieces = np.ascontiguousarray(whole.view(dtype).T)
        for put, values in zip(puts, pieces, strict=True):
            put(state, values)
        define(state)

    return act


_WINDOWS = {
    "global": 0,
    "const": 0,
    "param": PARAM_WINDOW,
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}


@instruction(
    "cvta", form=f"(?P<to>.to)?.(?P<space>{'|'.join(_WINDOWS)}).u64", operands=2
)
def convert_address(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cvta``: between a state space and generic addresses."""
    window = np.uint64(_WINDOWS[form["space"]])
    read = reader(context, each.operands[1], "u64", each)
    put = writer(context, each.operands[0], "u64", each)
    if form["to"]:
        return lambda s: put(s, read(s) - window)
    return lambda s: put(s, read(s) + window)


@instruction("mapa.shared::cluster.u32", operands=3, strict=True, effect=False)
def map_address(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mapa.shared::cluster``: address and rank may differ by lane."""
    put = writer(context, each.operands[0], "u32", each)
    at, rank = (reader(context, o, "u32", each) for o in each.operands[1:3])

    def act(state: WarpState) -> None:
        addresses, ranks = at(state), rank(state)
        result = np.zeros(LANES, np.uint32)
        for lane in np.flatnonzero(state.lanes):
            result[lane] = mapa(state.warp, int(addresses[lane]), int(ranks[lane]))
        put(state, result)

    return act


@instruction(
    "isspacep",
    form=f".(?P<space>{'|'.join(s for s, window in _WINDOWS.items() if window)})",
    operands=2,
)
def is_space(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``isspacep``: whether a generic address is in the window of a space."""
    window = _WINDOWS[form["space"]]
    read = reader(context, each.operands[1], "u64", each)
    put = writer(context, each.operands[0], "pred", each)
    return lambda s: put(s, read(s) >> np.uint64(40) == np.uint64(window >> 40))


@instruction("isspacep", form=".(?P<space>global|const)", operands=2)
def is_outside_windows(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``isspacep`` of constants, the module's variables, and of all the rest."""
    read = reader(context, each.operands[1], "u64", each)
    put = writer(context, each.operands[0], "pred", each)
    windows = np.array([w >> 40 for w in _WINDOWS.values() if w], np.uint64)
    constants = [
        (np.uint64(context.addresses[v.name]), np.uint64(v.nbytes))
        for v in context.program.module.variables
        if v.space == "const"
    ]

    def act(state: WarpState) -> None:
        address = read(state)
        is_const = np.zeros(address.shape, np.bool_)
        for first, nbytes in constants:
            is_const |= address - first < nbytes
        if form["space"] == "const":
            put(state, is_const)
        else:
            put(state, ~np.isin(address >> np.uint64(40), windows) & ~is_const)

    return act


_COMPARE: dict[str, Callable[[Lanes, Lanes], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
BOOLEAN: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
COMBINE = "(.(?P<combine>and|or|xor))?"


def comparison(form: Form) -> Callable[[Lanes, Lanes], Lanes]:
    """Return a comparison.

    Without ``u`` a comparison with NaN is false, ``ne`` included; with it, true.
    """
    name, is_float = form["compare"], form["kind"][0] == "f"
    if not is_float:
        return _COMPARE[name]
    flushes = bool(form.get("ftz"))

    def compare(x: Lanes, y: Lanes) -> Lanes:
        if flushes:
            x, y = flush(x), flush(y)
        nan: Lanes = (x != x) | (y != y)
        if name == "nan":
            return nan
        if name == "num":
            return ~nan
        found: Lanes = _COMPARE[name[:2]](x, y)
        return found | nan if name.endswith("u") else found & ~nan

    return compare


@instruction(
    "setp",
    form=f".(?P<compare>eq|ne){COMBINE}.(?P<kind>[bsu](16|32|64))",
    operands=(3, 4),
)
@instruction(
    "setp",
    form=f".(?P<compare>lt|le|gt|ge){COMBINE}.(?P<kind>[su](16|32|64))",
    operands=(3, 4),
)
@instruction(
    "setp",
    form=f".(?P<compare>lo|ls|hi|hs){COMBINE}.(?P<kind>u(16|32|64))",
    operands=(3, 4),
)
@instruction(
    "setp",
    form=f".(?P<compare>(eq|ne|lt|le|gt|ge)u?|num|nan){COMBINE}"
    "(?P<ftz>.ftz)?.(?P<kind>f32)",
    operands=(3, 4),
)
@instruction(
    "setp",
    form=f".(?P<compare>(eq|ne|lt|le|gt|ge)u?|num|nan){COMBINE}.(?P<kind>f16|f64)",
    operands=(3, 4),
)
def set_predicate(
    context: LaunchContext, each: Instruction, form: Form
) -> Action | Lanewise:
    """Build ``setp``: compare, combine with a third predicate, one or two results."""
    kind, combine = form["kind"], form["combine"]
    if bool(combine) != (len(each.operands) == 4):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {len(each.operands)} operands"
        )
    compare = comparison(form)
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    put, put_second = _pair(context, each)
    if kind == "f16" and put_second is not None:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with two results; ptxas takes one "
            "for f16"
        )
    if not combine and put_second is None:
        sources, target = each.operands[1:], each.operands[0]
        return Lanewise(
            compare,
            sources,
            (kind, kind),
            target,
            "pred",
            lambda s: put(s, compare(a(s), b(s))),
        )
    third = reader(context, each.operands[3], "pred", each) if combine else None

    def act(state: WarpState) -> None:
        found = compare(a(state), b(state))
        other = ~found
        if third is not None:
            found, other = (BOOLEAN[combine](x, third(state)) for x in (found, other))
        put(state, found)
        if put_second is not None:
            put_second(state, other)

    return act


def _pair(context: LaunchContext, each: Instruction) -> tuple[Put, Put | None]:
    target = each.operands[0]
    if isinstance(target, Pair):
        return (
            writer(context, target.first, "pred", each),
            writer(context, target.second, "pred", each),
        )
    return writer(context, target, "pred", each), None


@instruction("selp", form=f".(?P<kind>{VALUE})", operands=4, taints=True)
def select(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build ``selp``: `a` where the predicate holds, else `b`.

    Only the value that is taken has to be defined: compilers select from registers
    that other paths leave unset.
    """
    kind = form["kind"]
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    a_defined, b_defined, p_defined = (_defined(context, o) for o in each.operands[1:])
    predicate = reader(context, each.operands[3], "pred", each)
    put = writer(context, each.operands[0], kind, each)
    target = context.register(each.operands[0], each)

    def act(state: WarpState) -> None:
        p = predicate(state)
        known = (a_defined(state), b_defined(state), p_defined(state))
        if all(state.mask & ~k == 0 for k in known):
            defined = state.mask
        else:
            chosen = lanes_to_mask(p)
            defined = (known[0] & chosen | known[1] & ~chosen) & known[2]
        put(state, np.where(p, a(state), b(state)))
        state.define(target, defined)

    return Lanewise(
        _choose,
        each.operands[1:],
        (kind, kind, "pred"),
        each.operands[0],
        kind,
        act,
    )


def _choose(a: Lanes, b: Lanes, p: Lanes) -> Lanes:
    return np.where(p, a, b)


def _defined(context: LaunchContext, operand: object) -> Callable[[WarpState], int]:
    """Return a function that tells in which lanes an operand is defined."""
    if isinstance(operand, Register) and operand.name in context.index:
        index = context.index[operand.name]
        return lambda state: state.defined[index]
    return lambda state: -1
