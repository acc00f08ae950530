"""sentences: what each event of a trace does, in words, made without a browser.

One sentence an event, of at most 25 words and with no bare address. The templates
are in ``strings.json`` under ``words.``: operation, then how it went. A template asks
for what it needs by name; each name is a function here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from string import Formatter
from typing import Any, Final

from fp4ref.trace import Barrier, Event, Range, Trace
from fp4ref.trace.recorded_plan import RecordedPlan, is_m_major, splits_of
from fp4ref.viz.so_far import MMA, WINDOW, SoFar
from fp4ref.viz.strings import say, strings

_DIMENSIONS = re.compile(r"\.\dd\b")
_LABEL = re.compile(r"(\w+)(?:\.(full|empty)\[(\d+)\])?")
"""Ring, side and stage of a barrier's name; some barriers are alone."""
_CELL_COLUMN: Final = 0xFFFF
"""Bits of a TMEM address that name the column."""


def sentences(trace: Trace) -> list[str]:
    """Return one sentence for each event, in order."""
    so_far, told = SoFar(trace), []
    for event in trace:
        so_far.take(event)
        told.append(_sentence(so_far, event))
    return told


def sentence(trace: Trace, step: int) -> str:
    """Return the sentence for the event at a step."""
    so_far = SoFar(trace)
    for event in trace.events[: step + 1]:
        so_far.take(event)
    return _sentence(so_far, trace.events[step])


def operation_word(event: Event) -> str:
    """Return the operation without its number of dimensions, as templates name it."""
    return _DIMENSIONS.sub("", event.operation)


def _sentence(so_far: SoFar, event: Event) -> str:
    template = next(key for key in _keys(so_far, event) if key in strings())
    needs = {name for _, name, _, _ in Formatter().parse(strings()[template]) if name}
    words = say(template, **{name: _FIELDS[name](so_far, event) for name in needs})
    return words[0].upper() + words[1:]


def _keys(so_far: SoFar, event: Event) -> Iterator[str]:
    """Keys of templates, the most special one first."""
    name, how = operation_word(event), list(_how(so_far, event))
    while name:
        for each in how:
            yield f"words.{name}.{each}"
        yield f"words.{name}"
        name = name.rpartition(".")[0]
    yield f"words.{event.kind}"


def _how(so_far: SoFar, event: Event) -> Iterator[str]:
    """Say what is special about an event, the most special first."""
    if event.kind in ("issue", "land"):
        known = event.operation != MMA or _from_plan(so_far, event)
        if event.operation == MMA and known and not event.operands["enable_input_d"]:
            yield f"{event.kind}.first"
        if event.agent.endswith(".read"):
            yield "read"
        if known:
            yield event.kind
        yield f"{event.kind}.other"
        return
    operands = event.operands
    if operands.get("done") is False or operands.get("valid") is False:
        yield "not"
    elif event.issued >= 0 and event.issued < event.step:
        yield "waited"
    if any(each.before[0] != each.after[0] for each in event.barrier):
        yield "completes"
    if isinstance(value := operands.get("value"), str):
        yield value
    if "node" in operands:
        yield "node"
    yield "plain"


# -- agents and barriers ---------------------------------------------------------------


def agent_words(plan: RecordedPlan | None, agent: str) -> str:
    """Name a warp by its role, and by its place among those of that role."""
    if not agent.startswith("warp"):
        key = f"who.{agent}"
        return say(key) if key in strings() else agent
    role = plan.roles.get(agent) if plan else None
    if plan is None or role is None or f"who.{role}" not in strings():
        return say("who.warp", n=agent.removeprefix("warp"))
    same = [name for name, each in plan.roles.items() if each == role]
    alone = len(same) == 1
    return say(f"who.{role}") + ("" if alone else f" {same.index(agent)}")


def _who(so_far: SoFar, event: Event) -> str:
    return agent_words(so_far.plan, event.agent)


def _barrier(so_far: SoFar, event: Event) -> tuple[str, str, int]:
    """Return label, shared memory and address of the barrier of an event."""
    if event.barrier:
        change = event.barrier[0]
        return change.label, change.space, change.address
    space, address = f"smem{event.sm}", int(event.operands.get("mbar", -1))
    for key in ((space, address), (space, address & WINDOW)):
        if key in so_far.labels:
            return so_far.labels[key], *key
    return "", space, address


def _thing(so_far: SoFar, event: Event) -> str:
    """What the barrier stands for: ``stage 2``."""
    label, space, address = _barrier(so_far, event)
    if (found := _LABEL.fullmatch(label)) and f"thing.{found[1]}" in strings():
        return say(f"thing.{found[1]}", i=found[3])
    if label:
        return say("thing.named", label=label)
    number = so_far.numbers.get((space, address))
    return say("thing.unknown") if number is None else say("thing.number", n=number)


def _is(so_far: SoFar, event: Event) -> str:
    """What the barrier says when its phase is complete: ``full``."""
    found = _LABEL.fullmatch(_barrier(so_far, event)[0])
    names = [name for name in found.group(1, 2) if name] if found else []
    key = ".".join(["is", *names])
    return say(key if key in strings() else "is.complete")


def _state(so_far: SoFar, event: Event) -> str:
    """How the barrier stands after the event."""
    values = {"thing": _thing(so_far, event), "is": _is(so_far, event)}
    if not event.barrier:
        return say("state.open", **values)
    change: Barrier = event.barrier[0]
    if change.before[0] != change.after[0]:
        return say("state.complete", **values)
    if change.after[2] > 0:
        return say("state.bytes", n=f"{change.after[2]:,}", **values)
    if change.after[2] < 0:
        return say("state.more", n=f"{-change.after[2]:,}", **values)
    return say("state.arrivals", n=change.after[1], **values)


def _threads(so_far: SoFar, event: Event) -> str:
    """How many threads a named barrier waits for."""
    count = event.operands.get("threads")
    return say("threads.all") if count is None else say("threads", n=count)


# -- tensors and places ----------------------------------------------------------------


def _box(so_far: SoFar, event: Event) -> str:
    """What a TMA operation moves."""
    return _box_of(so_far, event.operands)


def _box_of(so_far: SoFar, operands: Mapping[str, Any]) -> str:
    tensor, coords = str(operands.get("tensor", "")), operands.get("coords")
    values: dict[str, Any] = {"tensor": tensor, "n": _nbytes(operands)}
    if so_far.plan is None or coords is None:
        return say("box.named" if tensor else "box.bytes", **values)
    key = f"box.{tensor}"
    if key not in strings():
        return say("box.named", **values)
    box, shape = operands["box"], so_far.trace.meta["shape"]
    across, down = ("m", "n") if _is_turned(so_far, tensor) else ("n", "m")
    sizes = {"A": ("k", "m"), "B": ("k", "n")}.get(tensor, (across, down))
    for axis, name, i in ((sizes[0], "x", 0), (sizes[1], "y", 1)):
        first, last = int(coords[i]), int(coords[i]) + int(box[i]) - 1
        values[name] = say("range", first=first, last=min(last, shape[axis] - 1))
    if _is_turned(so_far, tensor):
        values["x"], values["y"] = values["y"], values["x"]
    return say(key, **values)


def _is_turned(so_far: SoFar, tensor: str) -> bool:
    return tensor in ("C", "D") and is_m_major(so_far.trace.meta)


def _nbytes(operands: Mapping[str, Any]) -> str:
    count = operands.get("tx_bytes", operands.get("nbytes"))
    return say("bytes.some") if count is None else f"{int(count):,}"


def _n(so_far: SoFar, event: Event) -> str:
    """Bytes that the event moves or announces."""
    moved = [r.size for r in (event.writes or event.reads)]
    if "tx_bytes" in event.operands or "nbytes" in event.operands or not moved:
        return _nbytes(event.operands)
    return f"{sum(moved):,}"


def _place(so_far: SoFar, event: Event) -> str:
    """Where in shared memory: a stage by the plan, else just shared memory."""
    operands, found = event.operands, None
    there = [r for r in (*event.writes, *event.reads) if r.space.startswith("smem")]
    if there:
        found = so_far.stage(there[0].space, there[0].start)
    elif "smem" in operands:
        found = so_far.stage(f"smem{event.sm}", int(operands["smem"]))
    elif "s_desc" in operands:
        found = so_far.stage(f"smem{event.sm}", (int(operands["s_desc"]) & 0x3FFF) << 4)
    if found is None:
        return say("place.smem")
    key = f"place.{found[0]}"
    return say(key if key in strings() else "place.stage", i=found[1])


def _part(so_far: SoFar, event: Event) -> str:
    """Which buffer of shared memory is read or written: ``A``, ``SFA`` ..."""
    there = [r for r in (*event.writes, *event.reads) if r.space.startswith("smem")]
    found = so_far.stage(there[0].space, there[0].start) if there else None
    if "s_desc" in event.operands:
        start = (int(event.operands["s_desc"]) & 0x3FFF) << 4
        found = so_far.stage(f"smem{event.sm}", start)
    key = f"part.{found[0]}" if found else "part.unknown"
    return say(key) if key in strings() else say("part.unknown")


def _memory(so_far: SoFar, event: Event) -> str:
    """Name the global memory that is read or written."""
    for where in (*event.writes, *event.reads):
        if where.space == "gmem":
            return _allocation(so_far.trace, where)
    return say("place.gmem")


def _allocation(trace: Trace, where: Range) -> str:
    for name, start, nbytes in trace.meta.get("allocations", ()):
        if start <= where.start < start + nbytes:
            return str(name)
    return say("place.gmem")


def _column(so_far: SoFar, event: Event) -> str:
    taddr = event.operands.get("taddr", event.operands.get("d_tmem", 0))
    return str(int(taddr) & _CELL_COLUMN)


# -- MMAs ------------------------------------------------------------------------------


def _from_plan(so_far: SoFar, event: Event) -> bool:
    """Whether the plan and the loads before say which MMA it is."""
    return so_far.plan is not None and None not in _tile_of(so_far, event)


def _operand_at(so_far: SoFar, event: Event, name: str) -> Mapping[str, Any]:
    """Return the load that brought the operand of an MMA."""
    start = (int(event.operands.get(f"{name}_desc", 0)) & 0x3FFF) << 4
    where = Range(f"smem{event.sm}", start, 16)
    return so_far.load_at(where) if f"{name}_desc" in event.operands else {}


def _tile_of(so_far: SoFar, event: Event) -> tuple[int | None, int | None]:
    a, b = (_operand_at(so_far, event, name) for name in "ab")
    return so_far.tile(a, "A"), so_far.tile(b, "B")


def _tile(so_far: SoFar, event: Event) -> str:
    if "m" in event.operands:  # a note of the tile scheduler
        return say("tile", m=event.operands["m"], n=event.operands["n"])
    m, n = _tile_of(so_far, event)
    return say("tile", m=m, n=n)


def _of(so_far: SoFar, event: Event) -> str:
    """MMAs of one sum of a tile."""
    assert so_far.plan is not None
    meta = so_far.trace.meta
    k_tiles = -(-so_far.plan.k_tiles(meta["shape"]["k"]) // splits_of(meta))
    return str(k_tiles * so_far.plan.k_blocks)


def _mma_k(so_far: SoFar, event: Event) -> str:
    assert so_far.plan is not None
    return str(so_far.plan.mma_k)


def _done_k(so_far: SoFar, event: Event) -> str:
    """K that is summed when this MMA has landed."""
    assert so_far.plan is not None
    k = so_far.ordinal(event) * so_far.plan.mma_k
    return str(min(k, so_far.trace.meta["shape"]["k"]))


def _stage(so_far: SoFar, event: Event) -> str:
    start = (int(event.operands["a_desc"]) & 0x3FFF) << 4
    found = so_far.stage(f"smem{event.sm}", start)
    return say("place.smem") if found is None else say("place.stage", i=found[1])


def _accumulator(so_far: SoFar, event: Event) -> str:
    """Name the accumulator by its column."""
    column = int(_column(so_far, event))
    parts = so_far.plan.tmem if so_far.plan else ()
    for part in parts:
        if part.kind == "accumulator" and part.column <= column < part.column + (
            part.columns
        ):
            return say("accumulator", i=part.name.rpartition(" ")[2])
    return say("accumulator.column", column=column)


def _operand(name: str) -> Callable[[SoFar, Event], str]:
    return lambda so_far, event: str(event.operands.get(name, ""))


_FIELDS: Final[Mapping[str, Callable[[SoFar, Event], str]]] = {
    "who": _who,
    "thing": _thing,
    "is": _is,
    "state": _state,
    "box": _box,
    "n": _n,
    "place": _place,
    "part": _part,
    "memory": _memory,
    "column": _column,
    "tile": _tile,
    "of": _of,
    "k": _mma_k,
    "done_k": _done_k,
    "stage": _stage,
    "accumulator": _accumulator,
    "mma": lambda so_far, event: str(so_far.ordinal(event)),
    "threads": _threads,
    "operation": lambda so_far, event: event.operation,
    **{
        name: _operand(name)
        for name in (
            *("barrier", "count", "k_tile", "left", "k_tiles", "index"),
            *("ring", "subtile", "rows", "columns", "node", "pending"),
            *("prologue", "matrices", "lane"),
        )
    },
}
