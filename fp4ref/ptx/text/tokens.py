"""tokens: PTX text cut into words, numbers and marks, and a cursor over them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fp4ref.errors import NotModelled
from fp4ref.ptx.text.syntax import Immediate, PtxError

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<name>[%$]?[A-Za-z_$][\w$]*|%\d[\w$]*)
    |(?P<float>0[fF][0-9a-fA-F]{8}(?!\w)|0[dD][0-9a-fA-F]{16}(?!\w))
    |(?P<number>(?:\d+\.\d+|\d*\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?(?!\w)
        |\d+\.(?![\w.])|0[xX][0-9a-fA-F]+U?(?!\w)|0[bB][01]+U?(?!\w)|\d++U?(?!\.))
    |(?P<dotted>\.[\w$]+(?:::[\w$]+)*)
    |(?P<mark><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%~^&?{}\[\]();:,@!|<>=])""",
    re.VERBOSE | re.ASCII,
)
_BLANK = " \t\r"
_OPERATORS = {
    *("*", "/", "%", "<<", ">>", "<", "<=", ">=", "==", "!=", "&&", "||", "&", "^", "?")
}
"""Behind a number they make a constant expression; ``+`` and ``-`` may be offsets."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes
    ----------
    kind
        ``string``, ``name``, ``dotted`` (``.reg``, ``.b32``, ``.x``), ``float``,
        ``number`` or ``mark``.
    spaced
        Whether a blank, a comment or a line end stands before it.
    """

    text: str
    kind: str
    line: int
    spaced: bool = True


def tokens(text: str) -> Iterator[Token]:
    """Cut text into tokens; comments vanish.

    Raises
    ------
    PtxError
        A character that no token starts with.
    """
    for number, line in enumerate(_without_comments(text).split("\n"), 1):
        position, spaced = 0, True
        while position < len(line):
            if line[position] in _BLANK:
                position, spaced = position + 1, True
                continue
            match = _TOKEN.match(line, position)
            if match is None:
                word = re.match(r"[\w.$]*", line[position:])
                what = word.group()[:40] if word and word.group() else line[position]
                raise PtxError(f"PTX line {number}: unexpected {what!r}")
            yield Token(match.group(), match.lastgroup or "", number, spaced)
            position, spaced = match.end(), False


_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def _without_comments(text: str) -> str:
    """Blank comments out; strings and line ends stay."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found[0] == '"' else " " + "\n" * found.count("\n")

    return _COMMENT.sub(blank, text)


class Cursor:
    """A place in the token list."""

    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        self.at = 0

    @property
    def line(self) -> int:
        """Line of the token that was taken last."""
        return self.tokens[max(self.at, 1) - 1].line if self.tokens else 1

    def peek(self, ahead: int = 0) -> str:
        """Text of a token to come; '' at the end."""
        i = self.at + ahead
        return self.tokens[i].text if i < len(self.tokens) else ""

    def next(self) -> Token:
        """Take one token."""
        if self.at >= len(self.tokens):
            raise self.error("the text ends in the middle of a statement")
        self.at += 1
        return self.tokens[self.at - 1]

    def error(self, what: str) -> PtxError:
        """Return an error at the current line."""
        return PtxError(f"PTX line {self.line}: {what}")

    def expect(self, text: str) -> None:
        """Take the token `text`."""
        token = self.next()
        if token.text != text:
            raise self.error(f"expected {text!r}, found {token.text!r}")

    def accept(self, text: str) -> bool:
        """Take the token `text` if it comes next."""
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def refuse(self, what: str, gap: str) -> NotModelled:
        """Return a refusal of PTX that is valid and not read here."""
        return NotModelled(f"{what} (line {self.line})", gap=gap)

    def name(self) -> str:
        """Take a name."""
        token = self.next()
        if token.kind != "name":
            raise self.error(f"expected a name, found {token.text!r}")
        return token.text

    def dotted(self) -> list[Token]:
        """Take the words with a dot that come next, as ``.lo .u32``."""
        first = self.at
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "dotted":
            self.at += 1
        return self.tokens[first : self.at]

    def more(self, end: str) -> bool:
        """Take a comma, after which the list goes on, or `end`."""
        if self.accept(end):
            return False
        if self.next().text != ",":
            raise self.error(
                f"expected ',' or {end!r}, found {self.tokens[self.at - 1].text!r}"
            )
        return True

    def integer(self, limit: int = 1 << 28) -> int:
        """Take a whole number from 0 to `limit`."""
        token = self.next()
        literal = self.literal(token)
        if literal.float_bits or not 0 <= literal.value <= limit:
            raise self.error(f"expected a whole number up to {limit}, not {token.text}")
        return literal.value

    def literal(self, token: Token) -> Immediate:
        """Read a literal, which may have a sign."""
        if token.text == "-":
            found = self.literal(self.next())
            if found.float_bits:
                return Immediate(found.value ^ 1 << found.float_bits - 1, 64)
            return Immediate(-found.value)
        if token.text == "+":
            return self.literal(self.next())
        if token.text in ("~", "("):
            raise self.refuse("a constant expression", "ptx-constant-expression")
        if token.kind == "float":
            found = Immediate(int(token.text[2:], 16), 4 * len(token.text[2:]))
        elif token.kind == "number":
            found = self._number(token.text)
        else:
            raise self.error(f"expected a number, found {token.text!r}")
        if self.peek() in _OPERATORS:
            raise self.refuse("a constant expression", "ptx-constant-expression")
        return found

    def _number(self, text: str) -> Immediate:
        """Read decimals, hexadecimals, octals and bits; decimals may be floats."""
        if "." in text or ("e" in text.lower() and text[:2] not in ("0x", "0X")):
            bits = int.from_bytes(struct.pack("<d", float(text)), "little")
            return Immediate(bits, 64)
        digits = text.rstrip("U")
        if len(digits) > 70:
            raise self.error(f"a number of {len(digits)} digits")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        try:
            value = int(digits, 8 if octal else 0)
        except ValueError:
            raise self.error(f"{text!r} is not a number") from None
        if value >= 1 << 64:
            raise self.error(f"{text} does not fit 64 bits")
        return Immediate(value)

    def skip_to(self, *ends: str) -> str:
        """Skip tokens to one of `ends`, which is taken and returned."""
        while True:
            if (text := self.next().text) in ends:
                return text

    def skip_braces(self) -> None:
        """Skip a braced block that has just been opened."""
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == "{") - (text == "}")
