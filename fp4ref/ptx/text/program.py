"""program: one entry with the functions that it calls, laid out to be executed.

Labels become positions, parameters get offsets, and every branch gets the position
where its lanes meet again: the immediate post-dominator of its block, in its function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from fp4ref.errors import InputError
from fp4ref.ptx.text.linking import link
from fp4ref.ptx.text.syntax import (
    Entry,
    Function,
    Instruction,
    Module,
    PtxError,
    Symbol,
)

_RETURNS = ("ret", "exit")
BRANCHES = ("bra", "brx")
EXITS = (*_RETURNS, "trap", "brkpt")


def base_name(opcode: str) -> str:
    """First word of an opcode."""
    return opcode.split(".", 1)[0]


@dataclass(frozen=True)
class Program:
    """An entry ready to run.

    Attributes
    ----------
    instructions
        In order; positions are indices into this list.
    labels
        Label to position.
    param_offsets
        Byte offset of each kernel parameter in the parameter block.
    functions, starts
        What the entry calls, and the position of each.
    recursive
        Names of the functions that can be called while they run.
    """

    module: Module
    entry: Entry
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    param_offsets: dict[str, int]
    param_nbytes: int
    functions: dict[str, Function] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    recursive: frozenset[str] = frozenset()

    @classmethod
    def of(cls, module: Module, name: str | None = None) -> Program:
        """Lay out the entry called `name`; without a name, the only one.

        Raises
        ------
        InputError
            No such entry, or several and none named.
        PtxError
            A branch to a label that does not exist.
        """
        if name is None and len(module.entries) == 1:
            name = next(iter(module.entries))
        if name is None or name not in module.entries:
            known = ", ".join(module.entries) or "none"
            raise InputError(f"entry {name!r}: this module has {known}")
        linked = link(module, module.entries[name])
        entry = linked.entry
        offset = 0
        offsets: dict[str, int] = {}
        for parameter in entry.params:
            offset = -(-offset // parameter.alignment) * parameter.alignment
            offsets[parameter.name] = offset
            offset += parameter.nbytes
        program = cls(
            module,
            entry,
            linked.instructions,
            linked.labels,
            offsets,
            offset,
            linked.functions,
            linked.starts,
            linked.recursive,
        )
        for instruction in program.instructions:
            if base_name(instruction.opcode) in BRANCHES:
                program.targets(instruction)
        return program

    def targets(self, branch: Instruction) -> tuple[int, ...]:
        """Positions that a branch may go to: one, or those of a table in order."""
        if base_name(branch.opcode) == "bra":
            return (self.target(branch),)
        name = branch.operands[-1] if branch.operands else None
        table = name.name if isinstance(name, Symbol) else ""
        if table not in self.entry.branch_targets:
            raise PtxError(
                f"PTX line {branch.line}: {branch.opcode} without a .branchtargets of "
                f"the name {table or name}"
            )
        labels = (Symbol(each) for each in self.entry.branch_targets[table])
        return tuple(self.target(replace(branch, operands=(x,))) for x in labels)

    def target(self, branch: Instruction) -> int:
        """Position that a branch to one label goes to."""
        label = branch.operands[0] if branch.operands else None
        if not isinstance(label, Symbol) or label.name not in self.labels:
            what = label.name if isinstance(label, Symbol) else label
            raise PtxError(f"PTX line {branch.line}: branch to an unknown label {what}")
        return self.labels[label.name]

    def source(self, position: int) -> str:
        """``file:line`` of the CUDA statement, from ``.loc``; '' without one."""
        location = self.instructions[position].location
        if location is None:
            return ""
        path = self.module.files.get(location.file, "")
        return f"{path.rsplit('/', 1)[-1]}:{location.line}" if path else ""

    @cached_property
    def reconvergence(self) -> dict[int, int]:
        """Position where the lanes of each branch that may split them meet again.

        Lanes that exit need not be met: an early exit does not count as a way to the
        end, except for code that has no other. A trap counts only where no exit does.
        The value is ``len(instructions)`` where lanes never meet.
        """
        bounds = [0, *self.starts.values(), len(self.instructions)]
        found: dict[int, int] = {}
        for first, stop in pairwise(bounds):
            found |= self._meetings(first, stop)
        return found

    def _meetings(self, first: int, stop: int) -> dict[int, int]:
        """Return `reconvergence` of the entry or of one function."""
        end = len(self.instructions)
        starts = {first, stop}
        starts |= {at for at in self.labels.values() if first <= at < stop}
        for i in range(first, stop):
            if base_name(self.instructions[i].opcode) in (*BRANCHES, *EXITS):
                starts.add(i + 1)
        blocks = sorted(starts)
        ways = ((), _RETURNS, EXITS)
        meets = [immediate_post_dominators(self._edges(blocks, w)) for w in ways]
        found: dict[int, int] = {}
        for b, start in enumerate(blocks[:-1]):
            branch = blocks[b + 1] - 1
            if branch >= start and self._splits(self.instructions[branch]):
                meet = next((m[b] for m in meets if m[b] is not None), None)
                at = stop if meet is None else blocks[meet]
                found[branch] = end if at == stop else at
        return found

    def _splits(self, each: Instruction) -> bool:
        """Whether the lanes may go different ways."""
        return each.guard is not None or base_name(each.opcode) == "brx"

    def _edges(self, blocks: Sequence[int], ways: Sequence[str]) -> list[list[int]]:
        """Return the blocks that may follow each block; the last one is the end.

        Early exits lead to the end only if they are among `ways`.
        """
        number = {start: b for b, start in enumerate(blocks)}
        last = len(blocks) - 1
        edges: list[list[int]] = []
        for b, start in enumerate(blocks[:-1]):
            stop = blocks[b + 1]
            each = self.instructions[stop - 1] if stop > start else None
            base = base_name(each.opcode) if each else ""
            following = [b + 1]
            if each is None or base not in (*BRANCHES, *EXITS):
                edges.append(following)
                continue
            if base == "brx":
                to_all = [number[target] for target in self.targets(each)]
                edges.append(to_all + (following if each.guard is not None else []))
                continue
            guarded = each.guard is not None
            if base == "bra":
                to = number[self.target(each)]
                exit_by = self._exit_at(self.target(each)) if guarded else ""
            else:
                to = last
                exit_by = base if guarded or stop < blocks[-1] else ""
            leaves = [] if exit_by and exit_by not in ways else [to]
            edges.append(leaves + following if guarded else leaves)
        return [*edges, []]

    def _exit_at(self, position: int) -> str:
        """Return by what code at `position` exits at once; '' if it does not."""
        if position >= len(self.instructions):
            return _RETURNS[0]
        each = self.instructions[position]
        base = base_name(each.opcode)
        return base if base in EXITS and each.guard is None else ""


def immediate_post_dominators(
    successors: Sequence[Sequence[int]],
) -> list[int | None]:
    """Nearest block that every path from each block to the last block goes through.

    The last block is the end. A block that cannot reach it gets None. Source: Cooper,
    Harvey and Kennedy, A simple, fast dominance algorithm, on the reversed graph.
    """
    end = len(successors) - 1
    predecessors: list[list[int]] = [[] for _ in successors]
    for b, following in enumerate(successors):
        for s in following:
            predecessors[s].append(b)
    order = _postorder(predecessors, end)
    rank = {b: i for i, b in enumerate(order)}
    meet: dict[int, int] = {end: end}

    def intersect(a: int, b: int) -> int:
        while a != b:
            if rank[a] < rank[b]:
                a = meet[a]
            else:
                b = meet[b]
        return a

    changed = True
    while changed:
        changed = False
        for b in reversed(order[:-1]):
            known = [s for s in successors[b] if s in meet]
            new = known[0]
            for s in known[1:]:
                new = intersect(new, s)
            if meet.get(b) != new:
                meet[b], changed = new, True
    return [meet.get(b) for b in range(len(successors))]


def _postorder(edges: Sequence[Sequence[int]], root: int) -> list[int]:
    """Blocks reachable from `root`, each after those it leads to first."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        block, following = stack[-1]
        step = next((s for s in following if s not in seen), None)
        if step is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(step)
            stack.append((step, iter(edges[step])))
    return order
