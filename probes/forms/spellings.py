"""spellings: every text that the pattern of a registry entry matches.

The patterns use a small part of regular expressions: literals, classes, groups,
alternatives and ``?``. Anything else is refused, so that no spelling is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from fp4ref.ptx.run.registry import Entry

HINTED = (
    "memory.load",
    "memory.store",
    "atomics.atomic",
    "cp_async.copy",
    "mbarriers.arrive",
    "mbarriers.transaction",
    "mbarriers.wait",
)
"""Makers whose unread modifiers are orders, scopes and cache hints."""

PREFERRED = ("global", "u32", "add")
"""What a hint is tried on: a form of these where the instruction has them."""


@dataclass(frozen=True)
class Part:
    """A piece of a pattern: its spellings, and whether the maker reads which it is."""

    spellings: tuple[str, ...]
    read: bool


class _Pattern:
    """Recursive descent over the pattern of one entry."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def alternatives(self) -> list[Part]:
        """``x|y|z`` up to a closing parenthesis."""
        branches = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        spelled = tuple(text for branch in branches for text in _joined(branch))
        return [Part(spelled, any(part.read for b in branches for part in b))]

    def sequence(self) -> list[Part]:
        found = []
        while self.peek() not in ("", "|", ")"):
            part = self.atom()
            if self.take("?"):
                part = Part(("", *part.spellings), part.read)
            found.append(part)
        return found

    def atom(self) -> Part:
        if self.take("("):
            named = re.compile(r"\?P<\w+>").match(self.text, self.at)
            self.at = named.end() if named else self.at
            inner = self.alternatives()
            if not self.take(")"):
                raise ValueError(f"{self.text}: an open group")
            read = named is not None or any(part.read for part in inner)
            return Part(tuple(_joined(inner)), read)
        if self.take("["):
            end = self.text.index("]", self.at)
            letters, self.at = self.text[self.at : end], end + 1
            first, dash, last = letters.partition("-")
            if dash:
                letters = "".join(map(chr, range(ord(first), ord(last) + 1)))
            return Part(tuple(letters), False)
        self.take("\\")
        letter = self.peek()
        if letter in "*+{^$?":
            raise ValueError(f"{self.text}: {letter!r} at {self.at} has many spellings")
        self.at += 1
        return Part((letter,), False)


def _joined(parts: list[Part]) -> Iterator[str]:
    return ("".join(each) for each in product(*(part.spellings for part in parts)))


def parts(pattern: str) -> list[Part]:
    """Return the pieces of a pattern in order.

    Raises
    ------
    ValueError
        The pattern uses what is not known here.
    """
    reading = _Pattern(pattern)
    found = reading.alternatives()
    if reading.at != len(pattern):
        raise ValueError(f"{pattern}: a closing parenthesis at {reading.at}")
    return found


def _preferred(part: Part) -> tuple[str, ...]:
    for spelling in part.spellings:
        if spelling.lstrip(".") in PREFERRED:
            return (spelling,)
    return part.spellings[:1]


def maker_of(entry: Entry) -> str:
    """Module and function of the entry's maker, such as ``"memory.load"``."""
    return f"{entry.make.__module__.rsplit('.', 1)[-1]}.{entry.make.__name__}"


def spellings(entry: Entry) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield every form of an entry: opcode, and its modifiers by name.

    Of a `HINTED` maker all combinations of what it reads, and each hint once.
    """
    pieces = parts(entry.opcode.pattern)
    if maker_of(entry) not in HINTED:
        choices = [[part.spellings for part in pieces]]
    else:
        # The first spelling of a hint is its absence, or the common one.
        plain = [p.spellings if p.read else p.spellings[:1] for p in pieces]
        choices = [plain]
        for i, part in enumerate(pieces):
            if not part.read and len(part.spellings) > 1:
                fixed = [_preferred(p) if p.read else p.spellings[:1] for p in pieces]
                choices.append([*fixed[:i], part.spellings[1:], *fixed[i + 1 :]])
    for choice in choices:
        for words in product(*choice):
            opcode = "".join(words)
            match = entry.opcode.fullmatch(opcode)
            assert match is not None
            yield opcode, match.groupdict("")
