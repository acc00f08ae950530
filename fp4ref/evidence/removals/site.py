"""site: one synchronisation operation of the kernel, by the calls that lead to it.

A function that two roles call has its operations twice, as the compiler puts them in
line. The emulator's site and the compiled kernel's have one name, since both languages
have the same functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple


class Call(NamedTuple):
    """A statement of the kernel that executes; `line` counts from 1."""

    file: str
    function: str
    line: int


class Chain(NamedTuple):
    """An operation, and the statements that lead to it from the role inwards."""

    calls: tuple[Call, ...]
    opcode: str

    @property
    def place(self) -> str:
        """``file:line`` of the statement."""
        return f"{self.calls[-1].file}:{self.calls[-1].line}"


def names(chains: Iterable[Chain]) -> dict[Chain, str]:
    """Name each chain: ``producer_warp > load#2 > load_k_tile: mbarrier.try_wait``.

    ``#2`` is the second call, in the order of lines, of a function or an instruction in
    the same function. Of functions of one name, which the parts for one job have, the
    file is named too: ``mma_warp > mma_tail > allocator_2sm.free``. Functions whose
    name starts with an underscore are left out, as the other language need not have
    them.
    """
    every = set(chains)
    found = dict.fromkeys(every, "")
    depth = max((len(chain.calls) for chain in every), default=0)
    for i in range(depth + 1):
        lines: dict[tuple[str, str], set[int]] = defaultdict(set)
        files: dict[tuple[str, str], set[str]] = defaultdict(set)
        here = [chain for chain in every if i <= len(chain.calls)]
        for chain in here:
            files[found[chain], _callee(chain, i)].add(_file(chain, i))
        callees = {
            chain: _callee(chain, i)
            if len(files[found[chain], _callee(chain, i)]) == 1
            else f"{PurePosixPath(_file(chain, i)).stem}.{_callee(chain, i)}"
            for chain in here
        }
        for chain in here:
            lines[found[chain], callees[chain]].add(_line(chain, i))
        step = {}
        for chain in here:
            callee = callees[chain]
            places = sorted(lines[found[chain], callee])
            number = places.index(_line(chain, i)) + 1
            step[chain] = callee if number == 1 else f"{callee}#{number}"
        for chain, name in step.items():
            if i == len(chain.calls):
                found[chain] = f"{found[chain]}: {name}"
            elif not name.startswith("_"):
                found[chain] += f" > {name}" if found[chain] else name
    return found


def _callee(chain: Chain, i: int) -> str:
    """Return what the call before number `i` calls: a function, or the instruction."""
    return chain.calls[i].function if i < len(chain.calls) else chain.opcode


def _file(chain: Chain, i: int) -> str:
    """Return the file of that function; an instruction has none."""
    return chain.calls[i].file if i < len(chain.calls) else ""


def _line(chain: Chain, i: int) -> int:
    """Return the line of the call before number `i`; a role has none."""
    return chain.calls[i - 1].line if i else 0
