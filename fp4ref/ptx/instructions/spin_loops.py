"""spin_loops: whether a test of an mbarrier comes back to itself until it is true.

The code behind the test is followed with the answer false. What depends on the answer
alone is computed; if that leads back to the test, and nothing on the way can be seen by
another warp, the test waits.
"""

from __future__ import annotations

from fp4ref.ptx.text.program import EXITS, Program, base_name
from fp4ref.ptx.text.syntax import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

_LONGEST = 32
"""Instructions of the longest spin loop that is recognised."""

_HARMLESS = (
    "mov", "selp", "setp", "and", "or", "xor", "not", "add", "sub", "shl", "shr", "cvt",
    "nanosleep",
)  # fmt: skip
_COMPARE = {"eq": int.__eq__, "ne": int.__ne__}


def spins(program: Program, test: Instruction) -> bool:
    """Whether a false answer of `test` leads straight back to it."""
    start = next(i for i, x in enumerate(program.instructions) if x is test)
    answer = test.operands[0]
    known: dict[str, int] = {}
    if isinstance(answer, Register):
        known[answer.name] = 0
    position = start + 1
    for _ in range(_LONGEST):
        if position == start:
            return True
        if position >= len(program.instructions):
            return False
        each = program.instructions[position]
        base = base_name(each.opcode)
        executed: int | None = 1
        if each.guard is not None:
            guard = known.get(each.guard[0].name)
            executed = guard ^ each.guard[1] if guard is not None else None
        position += 1
        if base == "bra":
            if executed is None:
                return False
            if executed:
                position = program.target(each)
        elif executed == 0:
            continue
        elif base in EXITS or base not in _HARMLESS:
            return False
        elif each.operands and base != "nanosleep":
            _follow(each, base, known, certain=executed == 1)
    return False


def _follow(
    each: Instruction, base: str, known: dict[str, int], *, certain: bool
) -> None:
    """Update the known registers by one instruction."""
    value = _value(each, base, known) if certain else None
    for name in _targets(each.operands[0]):
        known.pop(name, None)
    target = each.operands[0]
    if value is not None and isinstance(target, Register):
        known[target.name] = value


def _targets(operand: Operand | None) -> list[str]:
    match operand:
        case Register(name):
            return [name]
        case Pair(first, second):
            return _targets(first) + _targets(second)
        case Vector(items):
            return [name for item in items for name in _targets(item)]
        case _:
            return []


def _value(each: Instruction, base: str, known: dict[str, int]) -> int | None:
    sources = [_constant(o, known) for o in each.operands[1:]]
    match base, sources:
        case "mov", [int() as a]:
            return a
        case "not", [int() as a] if each.opcode == "not.pred":
            return a ^ 1
        case "selp", [a, b, int() as p]:
            return a if p else b
        case "setp", [int() as a, int() as b]:
            compare = _COMPARE.get(each.opcode.split(".")[1])
            return None if compare is None else int(compare(a, b))
        case "and", [int() as a, int() as b]:
            return a & b
        case "cvt", [int() as a] if a in (0, 1):
            return a
        case _:
            return None


def _constant(operand: Operand | None, known: dict[str, int]) -> int | None:
    match operand:
        case Immediate(value, 0):
            return value
        case Register(name):
            return known.get(name)
        case Negated(register):
            held = known.get(register.name)
            return None if held is None else held ^ 1
        case _:
            return None
