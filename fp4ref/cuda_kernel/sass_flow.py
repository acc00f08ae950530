"""sass_flow: blocks of a listing, which block comes before which, and its loops.

A block dominates another if every way from the entry leads through it. A loop is what
can come back to a block that dominates it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from fp4ref.cuda_kernel.sass import Listing, bare

_TARGETS = re.compile(r"BRANCH_TARGETS ([^\"]*)")
_LABEL = re.compile(r"`\((\.L_x_\d+)\)")
_JUMPS = ("BRA", "BRX", "BRXU", "CALL")
_ENDS = ("EXIT", "RET", "BPT")
_ANY = ("BRA.DIV", "BRA.ANY", "BRA.U.ANY")
"""Branches that some lanes may take: what follows is reached too."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop.

    Attributes
    ----------
    header
        The block to which it comes back.
    blocks
        All of its blocks.
    """

    header: int
    blocks: frozenset[int]


class Flow:
    """The control flow of a listing.

    Attributes
    ----------
    blocks
        Numbers of the instructions of each block.
    follows
        Blocks that may come after each block.
    """

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        code = listing.instructions
        ends = [_ends_block(each) for each in code]
        starts = {0, *listing.labels.values()}
        starts |= {at + 1 for at, end in enumerate(ends) if end}
        marks = [*sorted(at for at in starts if at < len(code)), len(code)]
        self.blocks = [range(first, end) for first, end in pairwise(marks)]
        first_of = {block[0]: number for number, block in enumerate(self.blocks)}
        self.follows = [
            sorted({first_of[at] for at in self._after(block[-1]) if at in first_of})
            for block in self.blocks
        ]

    def _after(self, at: int) -> list[int]:
        """Return the instructions that may come after one."""
        text = self.listing.instructions[at]
        word = bare(text).split()[0]
        labels = self.listing.labels
        found = [labels[name] for name in _LABEL.findall(text) if name in labels]
        if listed := _TARGETS.search(text):
            found = [labels[name] for name in listed[1].split(",") if name in labels]
        base = word.split(".")[0]
        if base in _JUMPS and not _is_conditional(text, word) and base != "CALL":
            return found
        if base in _ENDS and not text.startswith("@"):
            return []
        return [at + 1, *found] if base in _JUMPS else [at + 1]

    @cached_property
    def reached(self) -> list[int]:
        """Blocks that the entry leads to, each after one that leads to it."""
        order: list[int] = []
        seen = {0}
        stack = [(0, iter(self.follows[0]))]
        while stack:
            block, rest = stack[-1]
            for each in rest:
                if each not in seen:
                    seen.add(each)
                    stack.append((each, iter(self.follows[each])))
                    break
            else:
                order.append(block)
                stack.pop()
        return order[::-1]

    @cached_property
    def before(self) -> list[list[int]]:
        """Blocks that may come before each block."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for block in self.reached:
            for each in self.follows[block]:
                found[each].append(block)
        return found

    @cached_property
    def parent(self) -> Mapping[int, int]:
        """The nearest other block that dominates each reached one; the entry's own."""
        place = {block: number for number, block in enumerate(self.reached)}
        parent = {0: 0}
        changed = True
        while changed:
            changed = False
            for block in self.reached[1:]:
                ways = [each for each in self.before[block] if each in parent]
                nearest = ways[0]
                for other in ways[1:]:
                    a, b = nearest, other
                    while a != b:
                        if place[a] < place[b]:
                            b = parent[b]
                        else:
                            a = parent[a]
                    nearest = a
                if parent.get(block) != nearest:
                    parent[block] = nearest
                    changed = True
        return parent

    def dominates(self, first: int, block: int) -> bool:
        """Whether every way to `block` leads through `first`."""
        while block != first and block:
            block = self.parent[block]
        return block == first

    @cached_property
    def loops(self) -> list[Loop]:
        """Every loop, the smallest first."""
        bodies: dict[int, set[int]] = {}
        for block in self.reached:
            for header in self.follows[block]:
                if self.dominates(header, block):
                    bodies.setdefault(header, {header}).update(
                        self._back_to(header, block)
                    )
        found = [Loop(header, frozenset(body)) for header, body in bodies.items()]
        return sorted(found, key=lambda loop: (len(loop.blocks), loop.header))

    def _back_to(self, header: int, block: int) -> set[int]:
        """Return the blocks from which `block` can be reached without `header`."""
        found, waiting = {header}, [block]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.before[each]
        return found


def _is_conditional(text: str, word: str) -> bool:
    """Whether a branch may be left untaken."""
    if text.startswith("@") or word.startswith(_ANY):
        return not text.startswith(("@PT ", "@UPT "))
    operand = bare(text).split(maxsplit=1)[1] if " " in bare(text) else ""
    return word == "BRA.U" and operand.startswith(("UP", "!UP"))


def _ends_block(text: str) -> bool:
    """Whether a new block begins after an instruction."""
    return bare(text).split()[0].split(".")[0] in (*_JUMPS, *_ENDS)
