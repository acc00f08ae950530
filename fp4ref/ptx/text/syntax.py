"""syntax: what a PTX file is made of: operands, instructions, variables, entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from fp4ref.errors import InputError


class PtxError(InputError):
    """The text is not PTX that can be read; the message has the line."""


@dataclass(frozen=True, slots=True)
class Register:
    """A register by its unique name."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: its bits, and whether it was written as a float of 32 or 64 bits."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter, function or label."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``, or ``[base, {coordinates}]`` for tensor operands."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coords: Vector | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, ...}``; None stands for the sink ``_``."""

    items: tuple[Operand | None, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``a|b``: two destinations."""

    first: Operand | None
    second: Operand | None


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p``."""

    register: Register


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated


@dataclass(frozen=True, slots=True)
class Location:
    """A ``.loc``: index in the file table, and line."""

    file: int
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes
    ----------
    opcode
        With all modifiers, as written.
    guard
        (register, negated) of ``@p`` or ``@!p``.
    line
        Line of the PTX text, from 1.
    """

    opcode: str
    operands: tuple[Operand | None, ...]
    guard: tuple[Register, bool] | None
    line: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class Label:
    """A label, by its unique name."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter.

    Attributes
    ----------
    space
        ``global``, ``const``, ``shared``, ``local`` or ``param``.
    nbytes
        0 for an unsized ``extern .shared`` array.
    kind, pointer
        Of a parameter: type of its elements, and whether ``.ptr`` declares a pointer.
    """

    name: str
    space: str
    nbytes: int
    alignment: int
    data: bytes | None = None
    kind: str = ""
    pointer: bool = False


@dataclass(slots=True)
class Entry:
    """One ``.entry``.

    Attributes
    ----------
    registers
        Unique name to type without the dot, for example ``"b32"``.
    directives
        Name to values, for example ``"reqntid"`` to ``(128, 1, 1)``.
    branch_targets
        Labels that ``brx.idx`` may go to, by the label of their ``.branchtargets``.
    """

    name: str
    params: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] = field(default_factory=list)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Function(Entry):
    """One ``.func`` with a body.

    Its registers, labels, parameters and variables have names of their own in the
    module, so that it can be laid out behind an entry.
    """

    results: list[Variable] = field(default_factory=list)


@dataclass(slots=True)
class Module:
    """A PTX file: version, target, variables, entries and what they call.

    Attributes
    ----------
    externs
        Names of all functions.
    functions
        Those with a body that an entry calls, by way of others too.
    """

    version: str = ""
    target: str = ""
    variables: list[Variable] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    externs: set[str] = field(default_factory=set)
    functions: dict[str, Function] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)


TYPE_NBYTES = {
    "pred": 1,
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "f32": 4,
    "f64": 8,
    "f16x2": 4,
    "bf16": 2,
    "bf16x2": 4,
}
