"""statements: one instruction with its guard and operands, names resolved by scope."""

from __future__ import annotations

import re

from fp4ref.ptx.text.syntax import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Location,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from fp4ref.ptx.text.tokens import Cursor, Token


def called(entry: Entry) -> list[str]:
    """Return the names of what the calls of a body call, in order."""
    found = []
    for each in entry.body:
        if isinstance(each, Instruction) and each.opcode.split(".")[0] == "call":
            name = each.operands[1]
            if isinstance(name, Symbol) and name.name not in found:
                found.append(name.name)
    return found


_EXPRESSION = "ptx-constant-expression"
_UNDIVIDED = re.compile(
    r"(mul|mad)\.(wide|lo|hi)|cvta\.to|fence\.proxy|shf\.[lr]|setmaxnreg\.(inc|dec)"
    r"|bar\.(warp|arrive|red)|barrier\.cta(\.(arrive|red))?|barrier\.(arrive|red)"
    r"|barrier\.cluster\.\w+|tcgen05\.\w+(::\w+)?"
    r"|cp\.async\.bulk(\.prefetch)?(\.tensor|\.commit_group|\.wait_group)?"
    r"|cp\.async(\.mbarrier\.arrive|\.commit_group|\.wait_group|\.wait_all)?"
    r"|mbarrier\.(arrive\.expect_tx|(test|try)_wait\.parity|\w+)"
    r"|clusterlaunchcontrol\.(try_cancel\.async|query_cancel)"
)
"""Opcodes that ptxas reads as one word, so without spaces. Source: ptxas 13.0."""


def undivided(opcode: str) -> str:
    """Return the words at the start of an opcode that ptxas reads as one."""
    found = _UNDIVIDED.match(opcode)
    if found and opcode[found.end() : found.end() + 1] in ("", "."):
        return found[0]
    return opcode.partition(".")[0]


class StatementParser(Cursor):
    """Reads instructions; `parser` reads what stands around them.

    Attributes
    ----------
    scopes
        Names declared in each open pair of braces, innermost last, with the name that
        is unique in the entry. The key ``""`` holds the number of the scope.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.module = Module()
        self.entry = Entry("")
        self.scopes: list[dict[str, str]] = []
        self.scope_number = 0
        self.location: Location | None = None

    def resolve(self, name: str) -> str:
        """Return the unique name."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def instruction(self) -> Instruction:
        """``@!p opcode a, b, c;``."""
        guard = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = (Register(self.resolve(self.name())), negated)
        token = self.next()
        if token.kind != "name" or not token.text[0].isalpha():
            raise self.error(f"expected an instruction, found {token.text!r}")
        opcode = self._opcode(token.text)
        operands: list[Operand | None] = []
        if token.text == "call":
            operands = self._call()
            self.expect(";")
        elif not self.accept(";"):
            operands.append(self._pair())
            while self.more(";"):
                operands.append(self._pair())
        return Instruction(opcode, tuple(operands), guard, token.line, self.location)

    def _opcode(self, name: str) -> str:
        """Join a name and its modifiers, which may stand apart."""
        words = self.dotted()
        opcode = name + "".join(word.text for word in words)
        if any(word.spaced for word in words):
            whole = _UNDIVIDED.match(opcode)
            end = whole.end() if whole else 0
            at = len(name)
            for word in words:
                if word.spaced and at < end:
                    raise self.error(f"a space inside {opcode[:end]!r}")
                at += len(word.text)
        return opcode

    def _call(self) -> list[Operand | None]:
        """``call.uni (retval), name, (a, b);``: results, name, arguments."""
        results: list[Operand | None] = []
        if self.peek() == "(":
            results = self._list()
            self.expect(",")
        name = self._scalar(self.next())
        arguments: list[Operand | None] = []
        while self.accept(","):
            if self.peek() == "(":
                arguments = self._list()
            else:
                self.next()
        return [Vector(tuple(results)), name, Vector(tuple(arguments))]

    def _list(self) -> list[Operand | None]:
        self.expect("(")
        if self.accept(")"):
            return []
        found: list[Operand | None] = [self._scalar(self.next())]
        while self.more(")"):
            found.append(self._scalar(self.next()))
        return found

    def _pair(self) -> Operand | None:
        first = self._operand()
        if not self.accept("|"):
            return first
        return Pair(first, self._operand())

    def _operand(self) -> Operand | None:
        token = self.next()
        match token.text:
            case "{":
                return self._vector()
            case "[":
                return self._address()
            case "!":
                if self.tokens[min(self.at, len(self.tokens) - 1)].kind == "number":
                    raise self.refuse("a constant expression", _EXPRESSION)
                return Negated(Register(self.resolve(self.name())))
            case _:
                found = self._scalar(token)
                if self.peek() in ("+", "-", "["):
                    raise self.refuse("an operand that is an expression", _EXPRESSION)
                return found

    def _vector(self) -> Vector:
        items: list[Operand | None] = [self._scalar(self.next())]
        while self.more("}"):
            items.append(self._scalar(self.next()))
        return Vector(tuple(items))

    def _scalar(self, token: Token) -> Register | Symbol | Immediate | None:
        if token.text == "_":
            return None
        if token.kind in ("number", "float") or token.text in ("-", "+", "~", "("):
            return self.literal(token)
        if token.kind != "name":
            raise self.error(f"expected an operand, found {token.text!r}")
        # A selector belongs to the name: %tid .x
        name = self.resolve(token.text) + "".join(w.text for w in self.dotted())
        if name in self.entry.registers or name.startswith("%"):
            return Register(name)
        return Symbol(name)

    def _address(self) -> Address:
        base = self._scalar(self.next())
        if base is None:
            raise self.error("an address has no base")
        offset = 0
        coords = None
        while (mark := self.peek()) in ("+", "-", ","):
            self.next()
            if mark == ",":
                self.expect("{")
                coords = self._vector()
                continue
            if mark == "-" and not isinstance(base, Immediate):
                raise self.error("an address has no '-'; write [base + -offset]")
            literal = self.literal(self.next())
            if literal.float_bits:
                raise self.error("an address offset is a whole number")
            offset += -literal.value if mark == "-" else literal.value
        self.expect("]")
        return Address(base, offset, coords)
