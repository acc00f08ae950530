"""lanes: instructions by which the lanes of a warp see each other.

Source: PTX, shfl.sync, vote.sync, match.sync, redux.sync, elect.sync, activemask.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.sm import elect_sync
from fp4ref.ptx.instructions.floating import canonical, smallest_or_largest
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import (
    FULL,
    LANES,
    Lanes,
    LaunchContext,
    WarpState,
    dtype_of,
    lanes_to_mask,
    mask_to_lanes,
)
from fp4ref.ptx.text.syntax import Instruction, Pair, PtxError, Register

_LANE = np.arange(LANES)


@instruction(
    "shfl.sync",
    form=".(?P<mode>up|down|bfly|idx).b32",
    operands=5,
    taints=True,
)
def shuffle(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``shfl.sync``: lane i gets a value from a lane of its segment.

    A value from a lane that is not a member of the lane's mask is undefined.
    """
    mode = form["mode"]
    target = each.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, Pair) else (target, None)
    )
    put = writer(context, first, "b32", each)
    put_valid = writer(context, second, "pred", each)
    a, b, c, members = (reader(context, o, "u32", each) for o in each.operands[1:5])
    control = [o for o in each.operands[2:5] if isinstance(o, Register)]
    used = [context.index[o.name] for o in control if o.name in context.index]
    given = each.operands[1]
    given_at = context.index.get(given.name, -1) if isinstance(given, Register) else -1
    targets = [
        (context.register(o, each), o is second)
        for o in (first, second)
        if o is not None
    ]

    def act(state: WarpState) -> None:
        state.check_defined(used, state.mask)
        masks = members(state)
        state.members(masks, each.opcode)
        source, valid = _source_lane(mode, b(state), c(state))
        values = a(state)[source]
        known = state.mask & (state.defined[given_at] if given_at >= 0 else -1)
        put(state, values)
        put_valid(state, valid)
        if known == FULL and (masks == FULL).all():
            defined = FULL
        else:
            member = masks >> source.astype(np.uint32) & np.uint32(1) != 0
            defined = lanes_to_mask(mask_to_lanes(known)[source] & member)
        for index, is_valid in targets:
            state.define(index, -1 if is_valid else defined)

    return act


def _source_lane(
    mode: str, b: Lanes, c: Lanes
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Lane that each lane reads, and whether it is inside the segment.

    Bits 0-4 of `c` are the clamp, bits 8-12 fix bits of the lane: a segment.
    """
    offset = b.astype(np.int64) & 31
    clamp = c.astype(np.int64) & 31
    segment = c.astype(np.int64) >> 8 & 31
    low = _LANE & segment
    high = low | clamp & ~segment
    if mode == "up":
        source = _LANE - offset
        valid = source >= high
    else:
        source = {
            "down": _LANE + offset,
            "bfly": _LANE ^ offset,
            "idx": low | offset & ~segment,
        }[mode]
        valid = source <= high
    return np.where(valid, source, _LANE), valid


@instruction(
    "vote.sync",
    form=".(?P<mode>all|any|uni).pred",
    operands=3,
    strict=True,
    effect=False,
)
@instruction(
    "vote.sync", form=".(?P<mode>ballot).b32", operands=3, strict=True, effect=False
)
def vote(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``vote.sync`` over the lanes of the member mask."""
    mode = form["mode"]
    kind = "b32" if mode == "ballot" else "pred"
    put = writer(context, each.operands[0], kind, each)
    predicate = reader(context, each.operands[1], "pred", each)
    members = reader(context, each.operands[2], "u32", each)

    def act(state: WarpState) -> None:
        masks = members(state)
        state.members(masks, each.opcode)
        votes = lanes_to_mask(predicate(state)) & state.mask
        mine = masks.astype(np.int64) & state.mask
        found = votes & mine
        results = {
            "ballot": found.astype(np.uint32),
            "all": found == mine,
            "any": found != 0,
            "uni": (found == mine) | (found == 0),
        }
        put(state, results[mode])

    return act


@instruction("activemask.b32", operands=1)
def activemask(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``activemask``: the executing lanes."""
    put = writer(context, each.operands[0], "b32", each)
    return lambda state: put(state, np.full(LANES, state.mask, np.uint32))


@instruction(
    "match.any.sync", form=".(?P<kind>b(32|64))", operands=3, strict=True, effect=False
)
@instruction(
    "match.all.sync", form=".(?P<kind>b(32|64))", operands=3, strict=True, effect=False
)
def match(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``match``: which lanes hold the same value."""
    every = form["name"] == "match.all.sync"
    target = each.operands[0]
    if isinstance(target, Pair) and not every:
        raise PtxError(f"PTX line {each.line}: {each.opcode} with a second result")
    first, second = (
        (target.first, target.second) if isinstance(target, Pair) else (target, None)
    )
    put = writer(context, first, "b32", each)
    put_all = writer(context, second, "pred", each)
    value = reader(context, each.operands[1], form["kind"], each)
    members = reader(context, each.operands[2], "u32", each)

    def act(state: WarpState) -> None:
        masks, values = members(state), value(state)
        state.members(masks, each.opcode)
        mine = masks.astype(np.int64) & state.mask
        same = np.array([lanes_to_mask(values == v) for v in values]) & mine
        equal: Lanes = np.equal(same, mine)
        found = np.where(equal, mine, 0) if every else same
        put(state, found.astype(np.uint32))
        put_all(state, equal)

    return act


_REDUCE: dict[str, Callable[..., Lanes]] = {
    "add": np.add.reduce,
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


@instruction(
    "redux.sync",
    form=".(?P<what>add|min|max).(?P<kind>[su]32)",
    operands=3,
    strict=True,
    effect=False,
)
@instruction(
    "redux.sync",
    form=".(?P<what>and|or|xor).(?P<kind>b32)",
    operands=3,
    strict=True,
    effect=False,
)
def reduce(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``redux.sync``: one value from all members."""
    kind = form["kind"]
    put = writer(context, each.operands[0], kind, each)
    value = reader(context, each.operands[1], kind, each)
    members = reader(context, each.operands[2], "u32", each)
    operation = _REDUCE[form["what"]]
    dtype = dtype_of(kind)

    def act(state: WarpState) -> None:
        masks, values = members(state), value(state)
        state.members(masks, each.opcode)
        results = np.zeros(LANES, dtype)
        for mask in {int(m) for m in masks[state.lanes]}:
            mine = mask_to_lanes(mask & state.mask)
            results[mine] = operation(values[mine], dtype=dtype)
        put(state, results)

    return act


@instruction(
    "redux.sync",
    form=".(?P<what>min|max)(?P<abs>.abs)?(?P<nan>.NaN)?.(?P<kind>f32)",
    operands=3,
    strict=True,
    effect=False,
)
def reduce_floats(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``redux.sync`` of float32: a NaN loses, or wins with ``.NaN``."""
    put = writer(context, each.operands[0], "f32", each)
    value = reader(context, each.operands[1], "f32", each)
    members = reader(context, each.operands[2], "u32", each)
    pick = smallest_or_largest(form["what"], keeps_nan=bool(form["nan"]))

    def act(state: WarpState) -> None:
        masks, values = members(state), value(state)
        state.members(masks, each.opcode)
        if form["abs"]:
            values = np.abs(values)
        results = np.zeros(LANES, np.float32)
        for mask in {int(m) for m in masks[state.lanes]}:
            mine = mask_to_lanes(mask & state.mask)
            results[mine] = fold(pick, np.split(values[mine], mine.sum()))
        put(state, canonical(results))

    return act


@instruction("elect.sync", operands=2, strict=True, effect=False)
def elect(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``elect.sync``: the lowest lane of the mask is elected."""
    target = each.operands[0]
    if not isinstance(target, Pair):
        raise PtxError(f"PTX line {each.line}: {each.opcode} needs lane|predicate")
    put_lane = writer(context, target.first, "b32", each)
    put = writer(context, target.second, "pred", each)
    members = reader(context, each.operands[1], "u32", each)

    def act(state: WarpState) -> None:
        state.members(members(state), each.opcode)
        mask = state.uniform(members(state), "the member mask") & state.mask
        lane = elect_sync(state.warp, mask)
        put_lane(state, np.full(LANES, lane, np.uint32))
        put(state, np.equal(_LANE, lane))

    return act
