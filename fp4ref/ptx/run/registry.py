"""registry: which function translates which instruction.

A *maker* takes the launch context, an instruction and the modifiers of its opcode, and
returns an action. An entry states every modifier that its maker knows, so that none can
be ignored. All makers run before the first instruction does, and everything unknown is
listed by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fp4ref.errors import NotModelled, RefusedForm
from fp4ref.gaps import covering
from fp4ref.hardware.sm import Blocked
from fp4ref.ptx.run.activation import Call
from fp4ref.ptx.run.modifiers import in_order
from fp4ref.ptx.run.state import Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.program import base_name
from fp4ref.ptx.text.syntax import (
    Address,
    Instruction,
    Negated,
    Operand,
    Pair,
    PtxError,
    Register,
    Symbol,
    Vector,
)

Wait = Generator[Blocked, None, None]
Action = Callable[[WarpState], Wait | None]
Form = Mapping[str, str]
"""Modifiers of an opcode by the group names of the entry's form; '' if absent."""


class Lanewise(NamedTuple):
    """What an instruction computes, where lanes and other instructions do not matter.

    Several of them that do the same to other registers can be done by one call of
    `function`: see `fp4ref.ptx.run.stretches`.

    Attributes
    ----------
    function
        Takes one array for each source, with the lanes along the last axis.
    kinds, kind
        Types of the sources and of the result.
    alone
        Does it for one instruction.
    """

    function: Callable[..., Lanes]
    sources: tuple[Operand | None, ...]
    kinds: tuple[str, ...]
    target: Operand | None
    kind: str
    alone: Action


Maker = Callable[[LaunchContext, Instruction, Form], Action | Lanewise]


class Unknown(Exception):
    """The executor does not know this use of an instruction.

    Parameters
    ----------
    gap
        Id of its row in the list of gaps.
    """

    def __init__(self, gap: str) -> None:
        self.gap = gap
        super().__init__(gap)


@dataclass(frozen=True, slots=True)
class Entry:
    """A maker, the opcodes it takes and how their operands are used."""

    make: Maker
    opcode: re.Pattern[str]
    operands: tuple[int, ...]
    writes: int
    strict: bool
    blocks: bool
    taints: bool
    effect: bool


ENTRIES: dict[str, list[Entry]] = {}
"""By first word of the opcode."""


def instruction(
    *names: str,
    form: str = "",
    operands: int | tuple[int, ...],
    writes: int = 1,
    strict: bool = False,
    blocks: bool = False,
    taints: bool = False,
    effect: bool | None = None,
) -> Callable[[Maker], Maker]:
    """Register a maker.

    Parameters
    ----------
    names, form
        The maker takes a name followed by what the regular expression `form` matches.
        A dot stands for itself.
    operands
        How many operands there may be.
    writes
        How many leading operands are destinations.
    strict
        Whether all sources must be defined (addresses, stores, hardware operations).
    blocks
        Whether the action is a generator.
    taints
        Whether the action says itself which results are defined.
    effect
        Whether other warps can see it; by default if it is strict or blocks.
    """
    counts = (operands,) if isinstance(operands, int) else operands
    visible = strict or blocks if effect is None else effect
    alternatives = "|".join(re.escape(name) for name in names)
    pattern = re.compile(f"(?P<name>{alternatives}){form.replace('.', '[.]')}")

    def register(make: Maker) -> Maker:
        entry = Entry(make, pattern, counts, writes, strict, blocks, taints, visible)
        for base in {base_name(name) for name in names}:
            ENTRIES.setdefault(base, []).append(entry)
        return make

    return register


def find(opcode: str) -> tuple[Entry, Form] | None:
    """Return the entry that takes `opcode`, and its modifiers, in any legal order."""
    listed = ENTRIES.get(base_name(opcode), ())
    for entry in listed:
        if match := entry.opcode.fullmatch(opcode):
            return entry, match.groupdict("")
    for entry in listed:
        text = in_order(entry.opcode.pattern, opcode)
        if text is not None and (match := entry.opcode.fullmatch(text)):
            return entry, match.groupdict("")
    return None


@dataclass(slots=True)
class Step:
    """One translated instruction.

    Attributes
    ----------
    act
        Does the work for the executing lanes; a generator if it can block.
    sources, targets
        Registers read and written.
    defines
        Targets that are defined wherever all sources are.
    must_be_defined
        Registers that are addresses, stored values or operands of hardware.
    taints
        Whether the action says itself which results are defined.
    lanewise
        What it computes, if that is all that it does.
    target, meet
        Where a branch goes, and where its lanes meet again; -1 for other instructions.
    choices
        Where ``brx.idx`` may go.
    call
        What a call of a function of the program does.
    """

    act: Action
    line: int
    flow: str = ""
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    defines: tuple[int, ...] = ()
    must_be_defined: tuple[int, ...] = ()
    blocks: bool = False
    effect: bool = False
    taints: bool = False
    lanewise: Lanewise | None = None
    guard: int = -1
    guard_negated: bool = False
    target: int = -1
    meet: int = -1
    choices: tuple[int, ...] = ()
    uniform: bool = False
    call: Call | None = None


@dataclass(slots=True)
class _Uses:
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)


def _collect(
    context: LaunchContext, operand: Operand | None, uses: _Uses, target: bool
) -> None:
    match operand:
        case Register(name):
            if (index := context.index.get(name)) is not None:
                (uses.targets if target else uses.sources).append(index)
        case Negated(register):
            _collect(context, register, uses, target)
        case Vector(items):
            for item in items:
                _collect(context, item, uses, target)
        case Pair(first, second):
            _collect(context, first, uses, target)
            _collect(context, second, uses, target)
        case Address(base, _, coords):
            before = len(uses.sources)
            _collect(context, base, uses, False)
            _collect(context, coords, uses, False)
            uses.addresses += uses.sources[before:]
        case _:
            pass


def _step(context: LaunchContext, each: Instruction) -> Step:
    found = find(each.opcode)
    if found is None:
        raise _unknown(each)
    entry, form = found
    if len(each.operands) not in entry.operands:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {len(each.operands)} operands"
        )
    made = entry.make(context, each, form)
    lanewise = made if isinstance(made, Lanewise) else None
    act = made.alone if isinstance(made, Lanewise) else made
    step = Step(act, each.line, taints=entry.taints, lanewise=lanewise)
    uses = _Uses()
    for i, operand in enumerate(each.operands):
        _collect(context, operand, uses, i < entry.writes)
    step.sources, step.targets = tuple(uses.sources), tuple(uses.targets)
    step.defines = () if entry.taints else step.targets
    step.must_be_defined = tuple(uses.sources if entry.strict else uses.addresses)
    step.blocks, step.effect = entry.blocks, entry.effect
    if each.guard is not None:
        step.guard = context.register(each.guard[0], each)
        step.guard_negated = each.guard[1]
        if context.kinds[step.guard] != "pred":
            raise PtxError(f"PTX line {each.line}: the guard is not a predicate")
    name = form["name"]
    if name in ("bra", "brx.idx", "ret", "exit") or is_call(context, each):
        step.flow = name
        step.uniform = each.opcode.endswith(".uni")
    return step


def is_call(context: LaunchContext, each: Instruction) -> bool:
    """Whether an instruction calls a function of the program."""
    if base_name(each.opcode) != "call" or len(each.operands) < 2:
        return False
    name = each.operands[1]
    return isinstance(name, Symbol) and name.name in context.program.starts


def _unknown(each: Instruction) -> Unknown | PtxError:
    """Return a refusal of an opcode that PTX has, or an error about one it has not."""
    if gap := covering(each.opcode):
        return Unknown(gap.id)
    base = base_name(each.opcode)
    what = f"form of {base}" if base in ENTRIES else "instruction"
    return PtxError(
        f"PTX line {each.line}: {each.opcode} is no {what} that PTX 9.0 has for sm_100"
    )


def translate(context: LaunchContext) -> list[Step]:
    """Translate every instruction of the program.

    Raises
    ------
    NotModelled
        Lists each instruction that has no translation, by name and line.
    PtxError
        An operand is not what the instruction takes.
    """
    steps: list[Step] = []
    unknown: dict[tuple[str, str], list[int]] = {}
    program = context.program
    for position, each in enumerate(program.instructions):
        try:
            step = _step(context, each)
        except Unknown as use:
            unknown.setdefault((_called(each), use.gap), []).append(each.line)
            continue
        if step.flow in ("bra", "brx.idx"):
            step.choices = program.targets(each)
            step.target = min(step.choices)
            step.meet = program.reconvergence.get(position, -1)
        steps.append(step)
    if unknown:
        lines = "\n".join(
            f"    {opcode} (line {', '.join(map(str, at[:5]))}"
            f"{', ...' if len(at) > 5 else ''}): {gap}"
            for (opcode, gap), at in sorted(unknown.items())
        )
        raise NotModelled(
            f"{len(unknown)} instructions of {program.entry.name[:60]} are not "
            f"modelled:\n{lines}",
            rule="an unknown instruction is refused before anything runs",
            gap=", ".join(sorted({gap for _, gap in unknown})),
            forms=tuple(
                RefusedForm(opcode, tuple(at), gap)
                for (opcode, gap), at in sorted(unknown.items())
            ),
        )
    return steps


def _called(each: Instruction) -> str:
    """Opcode, and the function that a call names."""
    if base_name(each.opcode) == "call" and len(each.operands) > 1:
        name = each.operands[1]
        return f"{each.opcode} {name.name if isinstance(name, Symbol) else ''}"
    return each.opcode
