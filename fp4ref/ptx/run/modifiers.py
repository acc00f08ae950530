"""modifiers: an opcode's modifiers in any order that ptxas takes.

A registry entry has the modifiers in the order of the PTX manual. ptxas does not ask
for it: after the words that it reads as one (``mul.lo``, ``cp.async.bulk.tensor``) the
modifiers may stand in any order, but for types among each other and state spaces among
each other, whose order says which is the target's. Source: ptxas 13.5, tried out.

The patterns use a small part of regular expressions: literals, classes, groups,
alternatives and ``?``. Anything else is refused, so that no spelling is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from fp4ref.ptx.text.statements import undivided
from fp4ref.ptx.text.syntax import TYPE_NBYTES


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


_TYPE = re.compile(r"[bsuf]\d+(x\d)?|t?bf?\d+(x\d)?|pred|tf32|u?e\d+m\d+(x\d)?")
_SPACES = ("global", "shared", "local", "param", "const")


def _ordered(word: str) -> str:
    """Return what a word keeps its order among; '' if it may stand anywhere."""
    if word in TYPE_NBYTES or _TYPE.fullmatch(word):
        return "type"
    return "space" if word.partition("::")[0] in _SPACES else ""


@cache
def _slots(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Return the places of a pattern, each with the words of its spellings."""
    slots: list[list[str]] = []
    for part in parts(pattern):
        begins = all(text[:1] in ("", ".") for text in part.spellings)
        if begins or not slots:
            slots.append(list(part.spellings))
        else:
            slots[-1] = [a + b for a in slots[-1] for b in part.spellings]
    return tuple(tuple(dict.fromkeys(slot)) for slot in slots)


@cache
def in_order(pattern: str, opcode: str) -> str | None:
    """Return `opcode` in the order of `pattern`; None if it has other modifiers."""
    head = undivided(opcode)
    first, *slots = _slots(pattern)
    for name in first:
        # An entry may name more words than ptxas reads as one, or fewer.
        start: str = name if len(name) < len(head) else head
        if not all(f"{each}.".startswith(f"{start}.") for each in (name, head)):
            continue
        words = opcode[len(start) :].split(".")[1:]
        for text in _arrange(((name[len(start) :],), *slots), Counter(words)):
            if undivided(start + text) == head and _kept(words, text):
                return start + text
    return None


def _arrange(
    slots: Sequence[Sequence[str]], words: Counter[str], at: int = 0
) -> Iterator[str]:
    """Yield the ways to spell all `words` in the places from `at` on."""
    if at == len(slots):
        if not words:
            yield ""
        return
    for text in slots[at]:
        needed = Counter(text.split(".")[1:])
        if all(words[word] >= count for word, count in needed.items()):
            for rest in _arrange(slots, words - needed, at + 1):
                yield text + rest


def _kept(before: Sequence[str], text: str) -> bool:
    """Whether types and spaces have their order in `text`."""
    after = text.split(".")[1:]
    return all(
        [w for w in before if _ordered(w) == kind]
        == [w for w in after if _ordered(w) == kind]
        for kind in ("type", "space")
    )
