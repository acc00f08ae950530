"""linking: the functions that an entry calls, laid out behind it.

The parser has given every function's registers, labels and variables names of their
own, so the entry and its functions share one list of instructions and one set of
registers. A function that can be called again while it runs is recursive: its registers
are saved, and its local variables lie on a stack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fp4ref.ptx.text.statements import called
from fp4ref.ptx.text.syntax import Entry, Function, Instruction, Label, Module


@dataclass(frozen=True)
class Linked:
    """An entry with its functions.

    Attributes
    ----------
    entry
        Its body alone, with the registers, variables and tables of all.
    functions
        By name, in the order in which they lie behind the entry.
    starts
        Position of each function.
    recursive
        Names of the functions that can be called while they run.
    """

    entry: Entry
    functions: dict[str, Function]
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    starts: dict[str, int]
    recursive: frozenset[str]


def link(module: Module, entry: Entry) -> Linked:
    """Lay out an entry and what it calls, directly and by way of others."""
    functions = _reached(module, entry)
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    starts: dict[str, int] = {}
    for part in (entry, *functions.values()):
        if isinstance(part, Function):
            starts[part.name] = len(instructions)
        for item in part.body:
            if isinstance(item, Label):
                labels[item.name] = len(instructions)
            else:
                instructions.append(item)
        if functions:
            instructions.append(_return(instructions))
    whole = replace(
        entry,
        registers={
            k: v for e in (entry, *functions.values()) for k, v in e.registers.items()
        },
        variables=[v for e in (entry, *functions.values()) for v in e.variables],
        branch_targets={
            k: v
            for e in (entry, *functions.values())
            for k, v in e.branch_targets.items()
        },
    )
    reach = {name: set(_reached(module, f)) for name, f in functions.items()}
    recursive = frozenset(name for name in functions if name in reach[name])
    return Linked(whole, functions, tuple(instructions), labels, starts, recursive)


def _reached(module: Module, entry: Entry) -> dict[str, Function]:
    """Return the functions that may run while `entry` does, without itself."""
    found: dict[str, Function] = {}
    ahead = [entry]
    while ahead:
        for name in called(ahead.pop()):
            if name in module.functions and name not in found:
                found[name] = module.functions[name]
                ahead.append(found[name])
    return found


def _return(before: list[Instruction]) -> Instruction:
    """Return what ends a body that runs past its last instruction."""
    line, location = (before[-1].line, before[-1].location) if before else (0, None)
    return Instruction("ret", (), None, line, location)
