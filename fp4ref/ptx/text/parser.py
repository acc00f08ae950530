"""parser: PTX text to a `Module`: variables, and entries with unique names.

Spaces mean nothing here: a directive, a type or a modifier ends where the next dot
begins, so ``.reg.b32 t;`` is ``.reg .b32 t;``. Statements end at ``;``. Braces nest
and open a scope: inline assembly declares its own registers and labels, and the same
names come back in every block. The parser gives each such name a scope suffix, so that
what follows sees unique names. Source: PTX, Syntax.
"""

from __future__ import annotations

from dataclasses import replace

from fp4ref.ptx.text.statements import StatementParser, called
from fp4ref.ptx.text.syntax import (
    TYPE_NBYTES,
    Entry,
    Function,
    Label,
    Location,
    Module,
    PtxError,
    Variable,
)

_MAX_NBYTES = 1 << 28
_MAX_REGISTERS = 1 << 18
_MAX_DEPTH = 64
"""Beyond any real file; they stop a garbled number from eating all memory."""

_SKIPPED = (".pragma", ".callprototype", ".calltargets")
_DIRECTIVES = {
    *("maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "noreturn"),
    *("explicitcluster", "reqnctapercluster", "maxclusterrank", "blocksareclusters"),
    *("abi_preserve", "abi_preserve_control"),
}
"""What may stand between the parameters of an entry and its body. Source: PTX,
Performance-Tuning Directives and Cluster Dimension Directives."""


class _Parser(StatementParser):
    """Recursive descent over the token list.

    Attributes
    ----------
    bodies
        Where the declaration of each function with a body begins.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bodies: dict[str, int] = {}

    def parse(self) -> Module:
        while self.at < len(self.tokens):
            text = self.next().text
            match text:
                case ".version":
                    self.module.version = self.next().text
                case ".target":
                    self.module.target = self.name()
                    while self.accept(","):
                        self.name()
                case ".address_size":
                    if (bits := self.integer()) != 64:
                        raise self.refuse(
                            f"addresses of {bits} bits", "ptx-address-size"
                        )
                case ".file":
                    index = self.integer()
                    self.module.files[index] = self.next().text.strip('"')
                    while self.accept(","):
                        self.integer(1 << 64)
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
                    self.module.variables += self._variables(text[1:])
                case ".pragma" | ".alias":
                    self.skip_to(";")
                case _:
                    raise self.error(f"unknown directive {text!r}")
        for entry in self.module.entries.values():
            self._called_from(entry)
        return self.module

    # -- functions ------------------------------------------------------------------

    def _function(self) -> None:
        """Keep the name, and where it stands: only what is called is read."""
        start = self.at
        self._parameters(".param", ".reg")
        name = self.name()
        self.module.externs.add(name)
        self._parameters(".param", ".reg")
        if self.skip_to(";", "{") == "{":
            self.bodies[name] = start
            self.skip_braces()

    def _called_from(self, entry: Entry) -> None:
        """Read the functions that an entry or a function calls."""
        ahead = [entry]
        while ahead:
            for name in called(ahead.pop()):
                if name in self.bodies and name not in self.module.functions:
                    self.module.functions[name] = self._read_function(name)
                    ahead.append(self.module.functions[name])

    def _read_function(self, name: str) -> Function:
        self.at, self.location = self.bodies[name], None
        self.entry = function = Function(name)
        self.scopes = [{}]
        results = self._parameters(".param", ".reg")
        self.name()
        params = self._parameters(".param", ".reg")
        self.skip_to("{")
        # The body is an inner scope: what it names is its own.
        self._open_scope()
        function.results, function.params = (
            [self._formal(function, each) for each in some]
            for some in (results, params)
        )
        seen: set[str] = set()
        while len(self.scopes) > 1:
            self._statement(function, seen)
        return function

    def _formal(self, function: Function, variable: Variable) -> Variable:
        """Give a parameter a name of its own; one in a register is declared."""
        own = self._own_name(variable.name)
        if variable.space == "reg":
            function.registers[own] = variable.kind
        return replace(variable, name=own)

    def _own_name(self, name: str) -> str:
        """Let a name of the innermost scope be unique, and return what it becomes."""
        own = f"{name}@{self.scopes[-1]['']}"
        self.scopes[-1][name] = own
        return own

    # -- variables ------------------------------------------------------------------

    def _type(self) -> tuple[str, int, int]:
        """``.align 16 .v4 .b32``: type, elements of a vector, alignment."""
        kind, count, alignment = "", 1, 1
        while self.peek().startswith("."):
            text = self.next().text
            if text in (".attribute", ".texref", ".samplerref", ".surfref"):
                raise self.refuse(f"a variable with {text}", "ptx-variable-attribute")
            if text == ".align":
                alignment = self.integer(1 << 20)
                if alignment.bit_count() != 1:
                    raise self.error(f"alignment {alignment} is not a power of two")
            elif text in (".v2", ".v4"):
                count = int(text[2:])
            elif text[1:] in TYPE_NBYTES and not kind and text != ".pred":
                kind = text[1:]
            elif text not in (".ptr", ".global", ".const", ".shared", ".local"):
                raise self.error(f"unknown attribute {text!r} of a variable")
        if not kind:
            raise self.error("a variable without a type")
        return kind, count, alignment

    def _variables(self, space: str) -> list[Variable]:
        """``.align 16 .b8 name[n] = {...}, other;`` after the space."""
        kind, count, alignment = self._type()
        found = [self._variable(space, kind, count, alignment)]
        while self.more(";"):
            found.append(self._variable(space, kind, count, alignment))
        return found

    def _variable(self, space: str, kind: str, count: int, alignment: int) -> Variable:
        name = self.name()
        size = TYPE_NBYTES[kind]
        sized = True
        while self.accept("["):
            if self.peek() == "]":
                sized = False
            else:
                count *= self.integer()
            self.expect("]")
        nbytes = count * size if sized else 0
        data = None
        if self.accept("="):
            data = self._initialiser(size)
            nbytes = nbytes if sized else len(data)
            if len(data) > nbytes:
                raise self.error(f"{name} has more values than elements")
            data = data.ljust(nbytes, b"\0")
        if nbytes > _MAX_NBYTES:
            raise self.error(f"{name} has {nbytes} bytes")
        return Variable(name, space, nbytes, max(alignment, size), data)

    def _initialiser(self, size: int) -> bytes:
        if not self.accept("{"):
            return self._value(size)
        data = bytearray(self._value(size))
        while self.more("}"):
            data += self._value(size)
        return bytes(data)

    def _value(self, size: int) -> bytes:
        token = self.next()
        if token.text == "{" or token.kind == "name":
            raise self.refuse(
                "an initialiser with rows or addresses", "ptx-initialiser"
            )
        value = self.literal(token).value
        return (value % (1 << 8 * size)).to_bytes(size, "little")

    # -- entries --------------------------------------------------------------------

    def _entry(self) -> None:
        self.entry = entry = Entry(self.name())
        if entry.name in self.module.entries:
            raise self.error(f"entry {entry.name} is defined twice")
        entry.params = self._parameters(".param")
        while not self.accept("{"):
            directive = self.next().text
            if directive == ".pragma":
                self.skip_to(";")
                continue
            if directive[1:] not in _DIRECTIVES:
                raise self.error(f"unexpected {directive!r} before the entry's body")
            values = []
            if self.peek() != "{" and not self.peek().startswith("."):
                values.append(self.integer())
                while self.accept(","):
                    values.append(self.integer())
            entry.directives[directive[1:]] = tuple(values)
        self.scopes = [{}]
        seen: set[str] = set()
        while self.scopes:
            self._statement(entry, seen)
        self.module.entries[entry.name] = entry

    def _parameters(self, *spaces: str) -> list[Variable]:
        """``(.param .u64 a, .param .u64 b)``, or nothing."""
        if not self.accept("(") or self.accept(")"):
            return []
        found = [self._parameter(spaces)]
        while self.more(")"):
            found.append(self._parameter(spaces))
        return found

    def _parameter(self, spaces: tuple[str, ...]) -> Variable:
        """``.param .u64 .ptr .global .align 1 name``."""
        if (space := self.next().text) not in spaces:
            raise self.error(f"expected {' or '.join(spaces)}, found {space!r}")
        pointer = ".ptr" in (self.peek(i) for i in range(4))
        kind, count, alignment = self._type()
        if pointer:
            # .align behind .ptr speaks of what is pointed to.
            alignment = 1
        name = self.name()
        if self.accept("["):
            count *= self.integer(1 << 16)
            self.expect("]")
        size = TYPE_NBYTES[kind]
        alignment = max(alignment, size)
        return Variable(
            name, space[1:], count * size, alignment, kind=kind, pointer=pointer
        )

    def _statement(self, entry: Entry, seen: set[str]) -> None:
        """Read one statement, or one brace, of a body; `seen` has its labels."""
        token = self.next()
        text = token.text
        if text == "{":
            self._open_scope()
        elif text == "}":
            self.scopes.pop()
        elif text == ".reg":
            self._registers(entry)
        elif text in (".local", ".shared", ".param"):
            self._declare(entry, text[1:])
        elif text == ".loc":
            self._loc()
        elif text in _SKIPPED:
            self.skip_to(";")
        elif text == ".branchtargets":
            self._branch_targets(entry)
        elif self.peek() == ":" and token.kind == "name":
            self.next()
            label = Label(self.resolve(text), token.line)
            if label.name in seen:
                raise self.error(f"label {text} is defined twice")
            seen.add(label.name)
            entry.body.append(label)
        else:
            self.at -= 1
            entry.body.append(self.instruction())

    def _branch_targets(self, entry: Entry) -> None:
        """``label: .branchtargets a, b;``."""
        label = entry.body[-1] if entry.body else None
        if not isinstance(label, Label):
            raise self.error(".branchtargets without a label")
        names = [self.resolve(self.name())]
        while self.more(";"):
            names.append(self.resolve(self.name()))
        entry.branch_targets[label.name] = tuple(names)

    def _declare(self, entry: Entry, space: str) -> None:
        for variable in self._variables(space):
            if isinstance(entry, Function):
                variable = replace(variable, name=self._own_name(variable.name))
            known = {v.name for v in entry.variables}
            # The same call arguments are declared again for every call.
            if space != "param" and variable.name in known:
                raise self.error(f"{variable.name} is declared twice")
            entry.variables.append(variable)

    def _open_scope(self) -> None:
        """Give the labels of an inner scope unique names, before they are used."""
        if len(self.scopes) > _MAX_DEPTH:
            raise self.error(f"braces nest deeper than {_MAX_DEPTH}")
        self.scope_number += 1
        scope = {"": str(self.scope_number)}
        self.scopes.append(scope)
        depth, i = 0, self.at
        while i + 1 < len(self.tokens) and depth >= 0:
            token = self.tokens[i]
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0 and token.kind == "name" and self.tokens[i + 1].text == ":":
                scope[token.text] = f"{token.text}@{self.scope_number}"
            i += 1

    def _registers(self, entry: Entry) -> None:
        """``.reg .b32 %r<10>;`` or ``.reg .pred p, q;``."""
        word = self.next().text
        kind = word[1:]
        if word in (".v2", ".v4"):
            raise self.refuse(f"registers of type {word}", "ptx-vector-registers")
        if not word.startswith(".") or kind not in TYPE_NBYTES:
            raise self.error(f"registers of type {word}")
        suffix = f"@{self.scopes[-1]['']}" if len(self.scopes) > 1 else ""
        while True:
            name = self.name()
            if name == "_":
                raise self.error("'_' is no name of a register")
            names = [name]
            if self.accept("<"):
                count = self.integer(_MAX_REGISTERS)
                self.expect(">")
                names = [f"{name}{i}" for i in range(count)]
            if len(entry.registers) + len(names) > _MAX_REGISTERS:
                raise self.error(f"more than {_MAX_REGISTERS} registers")
            for each in names:
                if each + suffix in entry.registers:
                    raise self.error(f"register {each} is declared twice")
                entry.registers[each + suffix] = kind
                self.scopes[-1][each] = each + suffix
            if not self.more(";"):
                return

    def _loc(self) -> None:
        """``.loc 1 118 0`` with optional ``, function_name ..., inlined_at 1 2 3``."""
        file, line = self.integer(), self.integer()
        self.integer()
        self.location = Location(file, line)
        while self.accept(","):
            word = self.name()
            if word == "function_name":
                self.next()
                if self.accept("+"):
                    self.integer()
            elif word == "inlined_at":
                for _ in range(3):
                    self.integer()


def parse(text: str) -> Module:
    """Read a PTX file.

    Raises
    ------
    PtxError
        With the line and what was expected.
    """
    return _Parser(text).parse()


__all__ = ["Module", "PtxError", "parse"]
