"""stretches: straight-line instructions that are executed in one go.

A stretch has no branch, guard or wait, and nothing jumps into it. Compilers unroll
loops, so that one instruction stands there many times, for other registers each time.
Where such copies need no result of each other they are one call of NumPy for all of
them: the registers of a width lie in one array, a row each. Everything else keeps its
order.

A stretch is executed only if all registers that it takes from before are defined; then
so are all that it writes. If one is not, its instructions are executed one by one, as
those outside of stretches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.operands import constant, reader, writer
from fp4ref.ptx.run.registry import Action, Lanewise, Step
from fp4ref.ptx.run.special_registers import CLOCKS
from fp4ref.ptx.run.state import (
    FULL,
    STORAGE,
    Lanes,
    LaunchContext,
    WarpState,
    dtype_of,
    width_of,
)
from fp4ref.ptx.text.program import Program
from fp4ref.ptx.text.syntax import Immediate, Instruction, Register

_FEWEST = 3
"""Copies of an instruction for which it pays to collect their registers."""

Rows = slice | NDArray[np.intp]


class Deed(NamedTuple):
    """One call in a stretch.

    Attributes
    ----------
    position, line
        Of the instruction; of several, the first.
    effect
        Whether other warps can see it.
    """

    act: Action
    position: int
    line: int
    effect: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instructions up to `stop`.

    Attributes
    ----------
    sources
        Registers that it takes from before.
    targets
        Registers that it writes.
    """

    deeds: tuple[Deed, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    stop: int

    def takes(self, state: WarpState, mask: int) -> bool:
        """Whether lanes can be executed in one go; then their results are defined."""
        if state.pending or state.partial:
            return False
        defined = state.defined
        for index in self.sources:
            if mask & ~defined[index]:
                return False
        for index in self.targets:
            defined[index] |= mask
        return True


def stretches(context: LaunchContext, steps: Sequence[Step]) -> dict[int, Stretch]:
    """Return the stretches of a program, by their first position."""
    found = {}
    for start, stop in _bounds(context.program, steps):
        deeds = tuple(_deeds(context, steps, range(start, stop)))
        sources, targets = _uses(steps[start:stop])
        found[start] = Stretch(deeds, sources, targets, stop)
    return found


def _bounds(program: Program, steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """Give first and last position, plus one, of every stretch of two or more."""
    entered = {*program.labels.values(), *(step.meet for step in steps)}
    start = 0
    for position, step in enumerate([*steps, None]):
        goes_on = step is not None and _belongs(program, position, step)
        if goes_on and position not in entered:
            continue
        if position - start > 1:
            yield start, position
        start = position if goes_on else position + 1


def _belongs(program: Program, position: int, step: Step) -> bool:
    """Whether a step always goes on to the next one, and defines what it writes."""
    if step.flow or step.blocks or step.guard >= 0:
        return False
    each = program.instructions[position]
    if any(isinstance(o, Register) and o.name in CLOCKS for o in each.operands):
        return False  # readings stay in their order
    opcode = each.opcode
    return not step.taints or bool(step.lanewise) or opcode.startswith("ld.param")


def _uses(steps: Sequence[Step]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the registers that steps take from before them, and those they write."""
    taken: dict[int, None] = {}
    written: dict[int, None] = {}
    for step in steps:
        taken.update((i, None) for i in step.sources if i not in written)
        written.update((i, None) for i in step.targets)
    return tuple(taken), tuple(written)


# -- copies of an instruction ------------------------------------------------------


def _deeds(
    context: LaunchContext, steps: Sequence[Step], positions: range
) -> Iterator[Deed]:
    """Give the calls of a stretch: copies on one level of it become one."""
    instructions = context.program.instructions
    levels = _levels([steps[i] for i in positions])

    def place(position: int) -> tuple[int, str]:
        step = steps[position]
        level, each = levels[position - positions.start], step.lanewise
        if each is None or not _can_join(context, each):
            return level, ""
        return level, instructions[position].opcode + _signature(each)

    ordered = sorted(positions, key=place)
    for (_, what), group in groupby(ordered, key=place):
        copies = list(group)
        found = [steps[i].lanewise for i in copies]
        if what and len(copies) >= _FEWEST:
            joined = _join(context, [each for each in found if each])
            yield Deed(joined, copies[0], steps[copies[0]].line, False)
            continue
        for i in copies:
            act = _alone(context, steps[i], instructions[i])
            yield Deed(act, i, steps[i].line, steps[i].effect)


def _alone(context: LaunchContext, step: Step, each: Instruction) -> Action:
    """Return the action of one instruction whose sources are all defined."""
    lanewise = step.lanewise
    if lanewise is None:
        return step.act
    function = lanewise.function
    put = writer(context, lanewise.target, lanewise.kind, each)
    reads = [
        reader(context, source, kind, each)
        for source, kind in zip(lanewise.sources, lanewise.kinds, strict=True)
    ]
    if len(reads) == 2:
        first, second = reads
        return lambda state: put(state, function(first(state), second(state)))
    return lambda state: put(state, function(*[read(state) for read in reads]))


def _levels(steps: Sequence[Step]) -> list[int]:
    """Return for each step how many others must come one after the other before it.

    A step comes after the writers of what it reads, and after the readers and writers
    of what it writes. One that does more than compute comes after all such before it.
    """
    wrote: dict[int, int] = {}
    read: dict[int, int] = {}
    last, levels = 0, []
    for step in steps:
        before = [wrote.get(i, 0) for i in (*step.sources, *step.targets)]
        before += [read.get(i, 0) for i in step.targets]
        before += [0] if step.lanewise else [last]
        level = 1 + max(before)
        last = last if step.lanewise else level
        for i in step.sources:
            read[i] = max(read.get(i, 0), level)
        for i in step.targets:
            wrote[i] = level
        levels.append(level)
    return levels


def _signature(each: Lanewise) -> str:
    """Say which sources are literals, and which are registers."""
    return "".join("#" if isinstance(s, Immediate) else "r" for s in each.sources)


def _can_join(context: LaunchContext, each: Lanewise) -> bool:
    """Whether all operands are literals, or registers of just the operation's width."""
    kinds = (*each.kinds, each.kind)
    for operand, kind in zip((*each.sources, each.target), kinds, strict=True):
        if isinstance(operand, Immediate):
            continue
        name = operand.name if isinstance(operand, Register) else ""
        if name not in context.index:
            return False
        if context.places[context.index[name]][0] != width_of(kind):
            return False
    return each.kind != "b128"


def _join(context: LaunchContext, copies: Sequence[Lanewise]) -> Action:
    """Build the call that does all of `copies`."""
    first = copies[0]
    reads = [
        _read(context, [each.sources[i] for each in copies], kind)
        for i, kind in enumerate(first.kinds)
    ]
    width = width_of(first.kind)
    rows = _rows([context.places[_index(context, each.target)][1] for each in copies])
    stored = np.dtype(np.bool_ if width == "pred" else STORAGE[int(width[1:]) // 8])
    function = first.function

    def act(state: WarpState) -> None:
        values = function(*[read(state) for read in reads]).view(stored)
        file = state.files[width]
        if state.mask == FULL:
            file[rows] = values
        else:
            file[rows] = np.where(state.lanes, values, file[rows])

    return act


def _read(
    context: LaunchContext, operands: Sequence[object], kind: str
) -> Callable[[WarpState], Lanes]:
    """Return a function that reads one operand of every copy: (copies or 1, lanes)."""
    dtype = dtype_of(kind)
    literals = [o for o in operands if isinstance(o, Immediate)]
    if literals:
        column = np.stack([constant(o, dtype)[:1] for o in literals])
        return lambda state: column
    places = [context.places[_index(context, o)][1] for o in operands]
    # One register for all of them stands for itself.
    rows = _rows(places[:1] if len(set(places)) == 1 else places)
    return partial(_file_rows, width_of(kind), rows, dtype)


def _file_rows(
    width: str, rows: Rows, dtype: np.dtype[np.generic], state: WarpState
) -> Lanes:
    return state.files[width][rows].view(dtype)


def _index(context: LaunchContext, operand: object) -> int:
    assert isinstance(operand, Register)
    return context.index[operand.name]


def _rows(places: Sequence[int]) -> Rows:
    """Return a slice for rows at equal distances, which NumPy need not copy."""
    step = places[1] - places[0] if len(places) > 1 else 1
    if step > 0 and list(places) == list(range(places[0], places[-1] + 1, step)):
        return slice(places[0], places[-1] + 1, step)
    return np.array(places, np.intp)
