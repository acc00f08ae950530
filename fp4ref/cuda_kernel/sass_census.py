"""sass_census: every instruction of a kernel by warp role, loop and kind.

A role is found by what only its warps execute: MMAs, tensor map loads, requests for
work, reads of TMEM. The largest part of the control flow that leads to one of these and
to none of the others is that role's; what remains is shared. So one rule reads this
kernel and CUTLASS's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

from fp4ref.cuda_kernel.sass import COMMIT, MMAS, Listing, opcode
from fp4ref.cuda_kernel.sass_flow import Flow, Loop
from fp4ref.cuda_kernel.sass_kinds import KINDS, kinds

MMA: Final = "MMA"
LOAD: Final = "load"
LOAD_C: Final = "load C"
SCHEDULER: Final = "scheduler"
EPILOGUE: Final = "epilogue"
SHARED: Final = "start and end"
UNREACHED: Final = "never reached"
ROLES: Final = (MMA, LOAD, LOAD_C, SCHEDULER, EPILOGUE, SHARED, UNREACHED)

ONCE: Final = "once"
TILE: Final = "tile loop"
K_TILE: Final = "k-tile loop"
INNER: Final = "inner loop"
WAIT: Final = "wait loop"
LOOPS: Final = (K_TILE, INNER, TILE, WAIT, ONCE)

_MARKS: Final = {
    **dict.fromkeys(MMAS.values(), MMA),
    "UTMALDG": LOAD,
    "UGETNEXTWORKID": SCHEDULER,
    "LDTM": EPILOGUE,
}
_OF_K_TILE: Final = {MMA: COMMIT, LOAD: "UTMALDG"}
"""What a round of the role's k-tile loop has."""
_WAITS: Final = {"SYNCS", "BRA", "NANOSLEEP", "NOP", "YIELD", "UCGABAR_WAIT"}
_LOADS_OF_A_K_TILE: Final = 2
"""At least, side by side: A and B. C comes one by one."""


class Instruction(NamedTuple):
    """One line of the listing, and where it belongs."""

    text: str
    role: str
    loop: str
    kind: str


@dataclass(frozen=True)
class Census:
    """The instructions of one kernel, in the listing's order."""

    instructions: tuple[Instruction, ...]

    @cached_property
    def cells(self) -> dict[tuple[str, str, str], int]:
        """Instructions by role, loop and kind, in the order of `ROLES` and so on."""
        counts = Counter((i.role, i.loop, i.kind) for i in self.instructions)
        return {
            cell: counts[cell]
            for cell in product(ROLES, LOOPS, KINDS)
            if cell in counts
        }

    @property
    def total(self) -> int:
        """Sum of all cells."""
        return sum(self.cells.values())

    def by(self, *names: str) -> dict[tuple[str, ...], int]:
        """Sum the cells by some of ``role``, ``loop`` and ``kind``."""
        place = [("role", "loop", "kind").index(name) for name in names]
        found: Counter[tuple[str, ...]] = Counter()
        for cell, count in self.cells.items():
            found[tuple(cell[each] for each in place)] += count
        return dict(found)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        rows = [
            {"role": role, "loop": loop, "kind": kind, "instructions": count}
            for (role, loop, kind), count in self.cells.items()
        ]
        return {"instructions": self.total, "cells": rows}


def census(listing: Listing) -> Census:
    """Count every instruction of a listing."""
    flow = Flow(listing)
    roles, found = _roles(flow), kinds(listing.instructions)
    loops = _loops(flow, roles)
    return Census(
        tuple(
            Instruction(listing.instructions[at], roles[number], loops[number], kind)
            for number, block in enumerate(flow.blocks)
            for at, kind in zip(block, found[block.start : block.stop], strict=True)
        )
    )


@dataclass(frozen=True, slots=True)
class Round:
    """What one role executes in a round of its k-tile loop when no wait has to spin.

    Attributes
    ----------
    k_tiles
        K-tiles of the round.
    """

    role: str
    instructions: tuple[Instruction, ...]
    k_tiles: int

    @property
    def per_k_tile(self) -> float:
        """Instructions for one k-tile."""
        return len(self.instructions) / self.k_tiles

    @property
    def by_kind(self) -> dict[str, float]:
        """Instructions for one k-tile by kind, in the order of `KINDS`."""
        counts = Counter(each.kind for each in self.instructions)
        return {kind: counts[kind] / self.k_tiles for kind in KINDS if kind in counts}


def steady_state(
    listing: Listing, counted: Census, *, loads: int, group: int = 1
) -> tuple[Round, ...]:
    """Return a round of the k-tile loop of the MMA warp, and of the load warp's.

    Parameters
    ----------
    loads
        Tensor map loads of a k-tile: operands, and their scales.
    group
        k-tiles of a stage.
    """
    found = []
    for role, wanted in ((MMA, tuple(MMAS.values())), (LOAD, ("UTMALDG",))):
        start = next(
            (
                at
                for at, each in enumerate(counted.instructions)
                if (each.role, each.loop) == (role, K_TILE)
            ),
            None,
        )
        if start is None:
            continue
        ends = _OF_K_TILE[role]
        places = listing.round_of(wanted, ends, start, group=group)
        executed = tuple(counted.instructions[at] for at in places)
        ended = sum(opcode(each.text) == ends for each in executed)
        k_tiles = ended * group if role == MMA else ended // loads
        found.append(Round(role, executed, max(k_tiles, 1)))
    return tuple(found)


def _roles(flow: Flow) -> list[str]:
    """Return the role of each block."""
    under = _under(flow)
    found = [UNREACHED] * len(flow.blocks)
    loads: dict[int, int] = {}
    head: dict[int, int] = {}
    for block in flow.reached:
        above = head.get(flow.parent[block], block)
        head[block] = above if len(under[above]) == 1 else block
        marks = under[head[block]]
        found[block] = next(iter(marks)) if len(marks) == 1 else SHARED
        if found[block] == LOAD:
            count = _count(flow, block, _OF_K_TILE[LOAD])
            loads[head[block]] = max(loads.get(head[block], 0), count)
    for block in flow.reached:
        if found[block] == LOAD and loads[head[block]] < _LOADS_OF_A_K_TILE:
            found[block] = LOAD_C
    return found


def _under(flow: Flow) -> dict[int, frozenset[str]]:
    """Return the roles whose marks each block leads to, with all that it dominates."""
    found: dict[int, frozenset[str]] = {}
    for block in flow.reached[::-1]:
        code = flow.listing.instructions
        words = {opcode(code[at]) for at in flow.blocks[block]}
        own = {_MARKS[word] for word in words if word in _MARKS}
        found[block] = found.get(block, frozenset()) | own
        parent = flow.parent[block]
        if parent != block:
            found[parent] = found.get(parent, frozenset()) | found[block]
    return found


def _count(flow: Flow, block: int, name: str) -> int:
    code = flow.listing.instructions
    return sum(opcode(code[at]) == name for at in flow.blocks[block])


def _loops(flow: Flow, roles: Sequence[str]) -> list[str]:
    """Return the kind of the innermost loop of each block."""
    found = [ONCE] * len(flow.blocks)
    named = [False] * len(flow.blocks)
    for loop in flow.loops:
        name = _loop(flow, roles, loop)
        for block in loop.blocks:
            if not named[block]:
                found[block], named[block] = name, True
    return found


def _loop(flow: Flow, roles: Sequence[str], loop: Loop) -> str:
    words = Counter(_words(flow, loop.blocks))
    if set(words) <= _WAITS and words["SYNCS"]:
        return WAIT
    role = roles[loop.header]
    inside = [each for each in flow.loops if each.blocks < loop.blocks]
    if _has(flow, loop, role) and not any(_has(flow, each, role) for each in inside):
        return K_TILE
    around = [each for each in flow.loops if loop.blocks < each.blocks]
    return INNER if around or role == SHARED else TILE


def _has(flow: Flow, loop: Loop, role: str) -> bool:
    """Whether a loop has what a round of the k-tile loop has."""
    return _OF_K_TILE.get(role) in set(_words(flow, loop.blocks))


def _words(flow: Flow, blocks: frozenset[int]) -> Iterator[str]:
    code = flow.listing.instructions
    for block in blocks:
        yield from (opcode(code[at]) for at in flow.blocks[block])
