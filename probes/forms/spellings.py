"""spellings: every text that the pattern of a registry entry matches.

The pieces of a pattern are those of `fp4ref.ptx.run.modifiers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from fp4ref.ptx.run.modifiers import Part, parts
from fp4ref.ptx.run.registry import Entry

HINTED = (
    "memory.load",
    "memory.store",
    "atomics.atomic",
    "atomics.vector",
    "barriers.reduce",
    "cp_async.copy",
    "mbarriers.arrive",
    "mbarriers.transaction",
    "mbarriers.wait",
)
"""Makers whose unread modifiers are orders, scopes and cache hints."""

PREFERRED = ("global", "u32", "add")
"""What a hint is tried on: a form of these where the instruction has them."""


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
