"""parser: PTX text to statements, one entry at a time.

PTX statements end at ``;``. Braces nest and open a scope: inline assembly declares its
own registers and labels, and the same names come back in every block. The parser gives
each such name a scope suffix, so that what follows sees unique names. Source: PTX,
Syntax.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from fp4ref.errors import InputError


class PtxError(InputError):
    """The text is not PTX that can be read; the message has the line."""


@dataclass(frozen=True, slots=True)
class Register:
    """A register by its unique name; `lowest` is the second of a pair ``d|p``."""

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


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter.

    Attributes
    ----------
    space
        ``global``, ``const``, ``shared``, ``local`` or ``param``.
    nbytes
        0 for an unsized ``extern .shared`` array.
    """

    name: str
    space: str
    nbytes: int
    alignment: int
    data: bytes | None = None


@dataclass(slots=True)
class Entry:
    """One ``.entry``.

    Attributes
    ----------
    registers
        Unique name to type without the dot, for example ``"b32"``.
    """

    name: str
    params: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] = field(default_factory=list)
    directives: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Module:
    """A PTX file: version, target, variables and entries."""

    version: str = ""
    target: str = ""
    variables: list[Variable] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    externs: set[str] = field(default_factory=set)
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

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<name>[.%$A-Za-z_][\w$.]*(?:::[\w$.]+)*)
    |(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})
    |(?P<number>0[xX][0-9a-fA-F]+U?|\d+\.\d+|\d+U?)
    |(?P<mark>[-+{}\[\]();:,@!|<>=*~?&^/%])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    """Split into tokens; comments vanish."""
    in_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        if in_comment:
            _, end, line = line.partition("*/")
            if not end:
                continue
            in_comment = False
        while "/*" in line:
            before, _, rest = line.partition("/*")
            _, end, after = rest.partition("*/")
            if not end:
                line, in_comment = before, True
                break
            line = f"{before} {after}"
        line = line.partition("//")[0] if '"' not in line else line
        position = 0
        while position < len(line):
            if line[position].isspace():
                position += 1
                continue
            match = _TOKEN.match(line, position)
            if match is None:
                if line.startswith("//", position):
                    break
                raise PtxError(f"PTX line {number}: unexpected {line[position]!r}")
            kind = match.lastgroup or ""
            yield _Token(match.group(), kind, number)
            position = match.end()


class _Parser:
    """Recursive descent over the token list."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.at = 0
        self.module = Module()
        self.entry: Entry | None = None
        self.scopes: list[dict[str, str]] = []
        self.scope_number = 0
        self.location: Location | None = None

    # -- tokens ---------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i].text if i < len(self.tokens) else ""

    def next(self) -> _Token:
        if self.at >= len(self.tokens):
            last = self.tokens[-1].line if self.tokens else 1
            raise PtxError(
                f"PTX line {last}: the text ends in the middle of a statement"
            )
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, text: str) -> _Token:
        token = self.next()
        if token.text != text:
            raise PtxError(
                f"PTX line {token.line}: expected {text!r}, found {token.text!r}"
            )
        return token

    def skip_to(self, *ends: str) -> str:
        while True:
            token = self.next()
            if token.text in ends:
                return token.text

    def skip_braces(self) -> None:
        """Skip a braced block that has just been opened."""
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == "{") - (text == "}")

    # -- module level ---------------------------------------------------------------

    def parse(self) -> Module:
        while self.at < len(self.tokens):
            token = self.next()
            match token.text:
                case ".version":
                    self.module.version = self.next().text
                case ".target":
                    self.module.target = self.next().text
                    while self.peek() == ",":
                        self.next()
                        self.next()
                case ".address_size":
                    self.next()
                case ".file":
                    index = int(self.next().text)
                    self.module.files[index] = self.next().text.strip('"')
                    while self.peek() == ",":
                        self.next()
                        self.next()
                case ".section":
                    self.skip_to("{")
                    self.skip_braces()
                case ".visible" | ".weak" | ".extern" | ".common":
                    pass
                case ".entry":
                    self._entry()
                case ".func":
                    self._function()
                case ".global" | ".const" | ".shared":
                    self.module.variables.append(self._variable(token.text[1:]))
                case ".pragma" | ".alias":
                    self.skip_to(";")
                case _:
                    raise PtxError(
                        f"PTX line {token.line}: unknown directive {token.text!r}"
                    )
        return self.module

    def _function(self) -> None:
        """Keep the name of an extern function; refuse bodies by name at a call."""
        if self.peek() == "(":
            self.skip_to(")")
        self.module.externs.add(self.next().text)
        if self.skip_to(";", "{") == "{":
            self.skip_braces()

    def _variable(self, space: str) -> Variable:
        """``.align 16 .b8 name[n] = {...};`` after the space."""
        alignment, kind = 1, "b8"
        while self.peek().startswith("."):
            text = self.next().text
            if text == ".align":
                alignment = int(self.next().text)
            elif text[1:] in TYPE_NBYTES:
                kind = text[1:]
            elif text == ".ptr":
                continue
        token = self.next()
        count, sized = 1, True
        while self.peek() == "[":
            self.next()
            if self.peek() == "]":
                sized = False
            else:
                count *= int(self.next().text, 0)
            self.expect("]")
        size = TYPE_NBYTES[kind]
        data = None
        if self.peek() == "=":
            self.next()
            data = self._initialiser(size).ljust(count * size, b"\0")
        if self.peek() == ";":
            self.next()
        return Variable(
            token.text, space, count * size if sized else 0, max(alignment, size), data
        )

    def _initialiser(self, size: int) -> bytes:
        if self.peek() != "{":
            return self._literal(self.next()).value.to_bytes(size, "little")
        self.expect("{")
        data = bytearray()
        while True:
            token = self.next()
            if token.text == "}":
                return bytes(data)
            if token.text != ",":
                negative = token.text == "-"
                value = self._literal(self.next() if negative else token).value
                bits = 8 * size
                data += ((-value if negative else value) % (1 << bits)).to_bytes(
                    size, "little"
                )

    # -- entries --------------------------------------------------------------------

    def _entry(self) -> None:
        entry = Entry(self.next().text)
        self.entry = entry
        if self.peek() == "(":
            self.next()
            while self.peek() != ")":
                if self.peek() == ",":
                    self.next()
                    continue
                self.expect(".param")
                entry.params.append(self._parameter())
            self.next()
        while self.peek() != "{":
            directive = self.next()
            if not directive.text.startswith("."):
                raise PtxError(
                    f"PTX line {directive.line}: unexpected {directive.text!r} before "
                    "the entry's body"
                )
            values = []
            while not self.peek().startswith(".") and self.peek() != "{":
                values.append(self.next().text)
            entry.directives[directive.text[1:]] = " ".join(values)
        self.expect("{")
        self.scopes = [{}]
        self._body(entry)
        self.module.entries[entry.name] = entry

    def _parameter(self) -> Variable:
        """``.param .u64 .ptr .global .align 1 name``."""
        alignment, kind = 1, ""
        while self.peek().startswith("."):
            text = self.next().text
            if text == ".align":
                alignment = int(self.next().text)
            elif text[1:] in TYPE_NBYTES and not kind:
                kind = text[1:]
        name = self.next().text
        size = TYPE_NBYTES.get(kind, 1)
        count = 1
        if self.peek() == "[":
            self.next()
            count = int(self.next().text, 0)
            self.expect("]")
            alignment = max(alignment, size)
        else:
            alignment = size
        return Variable(name, "param", count * size, alignment)

    def _body(self, entry: Entry) -> None:
        while self.scopes:
            token = self.next()
            text = token.text
            if text == "{":
                self.scope_number += 1
                self.scopes.append({"": str(self.scope_number)})
                self._declare_labels()
            elif text == "}":
                self.scopes.pop()
            elif text == ";":
                continue
            elif text == ".reg":
                self._registers(entry)
            elif text in (".local", ".shared", ".param"):
                variable = self._variable(text[1:])
                entry.variables.append(variable)
                self._declare(variable.name, variable.name)
            elif text == ".loc":
                self._loc()
            elif text in (
                ".pragma",
                ".branchtargets",
                ".callprototype",
                ".calltargets",
            ):
                self.skip_to(";")
            elif self.peek() == ":" and token.kind == "name":
                self.next()
                entry.body.append(Label(self._resolve(text)))
            else:
                self.at -= 1
                entry.body.append(self._instruction())

    def _declare(self, name: str, unique: str) -> None:
        self.scopes[-1][name] = unique

    def _resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def _declare_labels(self) -> None:
        """Give the labels of a new inner scope unique names, before they are used."""
        depth, i = 0, self.at
        number = self.scopes[-1][""]
        while i + 1 < len(self.tokens):
            token = self.tokens[i]
            if token.text == "{":
                depth += 1
            elif token.text == "}":
                if depth == 0:
                    return
                depth -= 1
            elif (
                depth == 0
                and token.kind == "name"
                and self.tokens[i + 1].text == ":"
                and self.tokens[i - 1].text in (";", "{", "}", ":")
            ):
                self._declare(token.text, f"{token.text}@{number}")
            i += 1

    def _registers(self, entry: Entry) -> None:
        """``.reg .b32 %r<10>;`` or ``.reg .pred p, q;``."""
        token = self.next()
        kind = token.text[1:]
        if kind == "v2" or kind == "v4" or kind not in TYPE_NBYTES:
            raise PtxError(f"PTX line {token.line}: registers of type {token.text}")
        suffix = f"@{self.scopes[-1]['']}" if len(self.scopes) > 1 else ""
        while True:
            name = self.next().text
            if self.peek() == "<":
                self.next()
                count = int(self.next().text)
                self.expect(">")
                names = [f"{name}{i}" for i in range(count)]
            else:
                names = [name]
            for each in names:
                entry.registers[each + suffix] = kind
                if suffix:
                    self._declare(each, each + suffix)
            if self.next().text == ";":
                return

    def _loc(self) -> None:
        """``.loc 1 118 0`` with optional ``, function_name ..., inlined_at 1 2 3``."""
        file, line = int(self.next().text), int(self.next().text)
        self.next()
        self.location = Location(file, line)
        while self.peek() == ",":
            self.next()
            word = self.next().text
            if word == "function_name":
                self.next()
                if self.peek() == "+":
                    self.next()
                    self.next()
            elif word == "inlined_at":
                for _ in range(3):
                    self.next()

    # -- instructions ---------------------------------------------------------------

    def _instruction(self) -> Instruction:
        guard = None
        if self.peek() == "@":
            self.next()
            negated = self.peek() == "!"
            if negated:
                self.next()
            guard = (Register(self._resolve(self.next().text)), negated)
        token = self.next()
        if token.kind != "name":
            raise PtxError(
                f"PTX line {token.line}: expected an instruction, found {token.text!r}"
            )
        operands: list[Operand | None] = []
        if token.text.startswith("call"):
            operands = self._call()
        else:
            while self.peek() != ";":
                operands.append(self._pair())
                if self.peek() == ",":
                    self.next()
                elif self.peek() != ";":
                    bad = self.next()
                    raise PtxError(
                        f"PTX line {bad.line}: expected ',' or ';' after an operand of "
                        f"{token.text}, found {bad.text!r}"
                    )
        self.expect(";")
        return Instruction(
            token.text, tuple(operands), guard, token.line, self.location
        )

    def _call(self) -> list[Operand | None]:
        """``call.uni (retval), name, (a, b);``: results, name, arguments."""
        results: list[Operand | None] = []
        if self.peek() == "(":
            results = self._list()
            self.expect(",")
        name = Symbol(self.next().text)
        arguments: list[Operand | None] = []
        while self.peek() == ",":
            self.next()
            if self.peek() == "(":
                arguments = self._list()
            else:
                self.next()
        return [Vector(tuple(results)), name, Vector(tuple(arguments))]

    def _list(self) -> list[Operand | None]:
        self.expect("(")
        found: list[Operand | None] = []
        while self.peek() != ")":
            found.append(self._operand())
            if self.peek() == ",":
                self.next()
        self.expect(")")
        return found

    def _pair(self) -> Operand | None:
        first = self._operand()
        if self.peek() != "|":
            return first
        self.next()
        return Pair(first, self._operand())

    def _operand(self) -> Operand | None:
        token = self.next()
        match token.text:
            case "_":
                return None
            case "{":
                items: list[Operand | None] = []
                while self.peek() != "}":
                    items.append(self._operand())
                    if self.peek() == ",":
                        self.next()
                self.next()
                return Vector(tuple(items))
            case "[":
                return self._address()
            case "!":
                return Negated(Register(self._resolve(self.next().text)))
            case "-":
                literal = self._literal(self.next())
                return Immediate(-literal.value)
            case _:
                return self._atom(token)

    def _atom(self, token: _Token) -> Register | Symbol | Immediate:
        assert self.entry is not None
        if token.kind in ("number", "float"):
            return self._literal(token)
        if token.kind != "name":
            raise PtxError(f"PTX line {token.line}: unexpected {token.text!r}")
        name = self._resolve(token.text)
        if name in self.entry.registers or name.startswith("%"):
            return Register(name)
        return Symbol(name)

    def _address(self) -> Address:
        base = self._atom(self.next())
        offset = 0
        coords = None
        while self.peek() in ("+", "-", ","):
            mark = self.next().text
            if mark == ",":
                vector = self._operand()
                if not isinstance(vector, Vector):
                    line = self.tokens[self.at - 1].line
                    raise PtxError(f"PTX line {line}: expected coordinates in braces")
                coords = vector
            else:
                sign = -1 if mark == "-" else 1
                if self.peek() == "-":
                    self.next()
                    sign = -sign
                offset += sign * self._literal(self.next()).value
        self.expect("]")
        return Address(base, offset, coords)

    def _literal(self, token: _Token) -> Immediate:
        text = token.text
        if token.kind == "float":
            return Immediate(int(text[2:], 16), 4 * len(text[2:]))
        if token.kind != "number":
            raise PtxError(f"PTX line {token.line}: expected a number, found {text!r}")
        if "." in text:
            bits = int.from_bytes(struct.pack("<d", float(text)), "little")
            return Immediate(bits, 64)
        return Immediate(int(text.rstrip("U"), 0))


def parse(text: str) -> Module:
    """Read a PTX file.

    Raises
    ------
    PtxError
        With the line and what was expected.
    """
    return _Parser(text).parse()
