"""registry: which function translates which instruction.

A *maker* takes the launch context and an instruction and returns a `Step`. All makers
run before the first instruction does, so that everything unknown is listed by name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from fp4ref.errors import NotModelled
from fp4ref.hardware.sm import Blocked
from fp4ref.ptx.parser import (
    Address,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)
from fp4ref.ptx.state import LaunchContext, WarpState

Action = Callable[[WarpState], Generator[Blocked, None, None] | None]


@dataclass(slots=True)
class Step:
    """One translated instruction.

    Attributes
    ----------
    act
        Does the work for the executing lanes; a generator if it can block.
    must_be_defined
        Registers that are addresses, stored values or branch conditions.
    sources, targets
        Registers read and written.
    """

    act: Action
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    must_be_defined: tuple[int, ...] = ()
    blocks: bool = False
    guard: int = -1
    guard_negated: bool = False


Maker = Callable[[LaunchContext, Instruction], Action]


@dataclass(frozen=True, slots=True)
class Entry:
    """A maker and how its operands are used."""

    make: Maker
    writes: int = 1
    strict: bool = False
    blocks: bool = False


MAKERS: dict[str, Entry] = {}


class Unknown(Exception):
    """A maker does not know a modifier."""


def instruction(
    *names: str, writes: int = 1, strict: bool = False, blocks: bool = False
) -> Callable[[Maker], Maker]:
    """Register a maker for opcodes that start with one of `names`.

    Parameters
    ----------
    writes
        How many leading operands are destinations.
    strict
        Whether all sources must be defined (addresses, stores, hardware operations).
    blocks
        Whether the action is a generator.
    """

    def register(make: Maker) -> Maker:
        for name in names:
            MAKERS[name] = Entry(make, writes, strict, blocks)
        return make

    return register


def find(opcode: str) -> Entry | None:
    """Return the entry with the longest name that `opcode` starts with."""
    parts = opcode.split(".")
    for length in range(len(parts), 0, -1):
        if entry := MAKERS.get(".".join(parts[:length])):
            return entry
    return None


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


def translate(context: LaunchContext) -> list[Step]:
    """Translate every instruction of the program.

    Raises
    ------
    NotModelled
        Lists each instruction that has no translation, by name and line.
    """
    steps: list[Step] = []
    unknown: dict[str, list[int]] = {}
    for each in context.program.instructions:
        entry = find(each.opcode)
        try:
            if entry is None:
                raise Unknown
            act = entry.make(context, each)
        except Unknown:
            unknown.setdefault(each.opcode, []).append(each.line)
            continue
        uses = _Uses()
        for i, operand in enumerate(each.operands):
            _collect(context, operand, uses, i < entry.writes)
        must = uses.sources if entry.strict else uses.addresses
        step = Step(
            act,
            tuple(uses.sources),
            tuple(uses.targets),
            tuple(must),
            entry.blocks,
        )
        if each.guard is not None:
            step.guard = context.register(each.guard[0], each)
            step.guard_negated = each.guard[1]
        steps.append(step)
    if unknown:
        lines = "\n".join(
            f"    {opcode} (line {', '.join(map(str, at[:5]))}"
            f"{', ...' if len(at) > 5 else ''})"
            for opcode, at in sorted(unknown.items())
        )
        raise NotModelled(
            f"{len(unknown)} instructions of {context.program.entry.name[:60]} are not "
            f"modelled:\n{lines}",
            rule="an unknown instruction is refused before anything runs",
            remedy="see `fp4ref fidelity` for what is modelled",
        )
    return steps
