"""statements: one instruction with its guard and operands, names resolved by scope."""

from __future__ import annotations

from fp4ref.ptx.syntax import (
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
from fp4ref.ptx.tokens import Cursor, Token


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
        operands: list[Operand | None] = []
        if token.text.split(".")[0] == "call":
            operands = self._call()
        else:
            while self.peek() != ";":
                operands.append(self._pair())
                if self.peek() != ";":
                    self.expect(",")
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
        name = Symbol(self.name())
        arguments: list[Operand | None] = []
        while self.accept(","):
            if self.peek() == "(":
                arguments = self._list()
            else:
                self.next()
        return [Vector(tuple(results)), name, Vector(tuple(arguments))]

    def _list(self) -> list[Operand | None]:
        self.expect("(")
        found: list[Operand | None] = []
        while not self.accept(")"):
            found.append(self._scalar(self.next()))
            if self.peek() != ")":
                self.expect(",")
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
                return Negated(Register(self.resolve(self.name())))
            case _:
                return self._scalar(token)

    def _vector(self) -> Vector:
        items: list[Operand | None] = []
        while not self.accept("}"):
            items.append(self._scalar(self.next()))
            if self.peek() != "}":
                self.expect(",")
        return Vector(tuple(items))

    def _scalar(self, token: Token) -> Register | Symbol | Immediate | None:
        if token.text == "_":
            return None
        if token.kind in ("number", "float") or token.text == "-":
            return self.literal(token)
        if token.kind != "name":
            raise self.error(f"expected an operand, found {token.text!r}")
        name = self.resolve(token.text)
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
            else:
                literal = self.literal(self.next())
                if literal.float_bits:
                    raise self.error("an address offset is a whole number")
                offset += -literal.value if mark == "-" else literal.value
        self.expect("]")
        return Address(base, offset, coords)
