"""program: one entry, laid out to be executed.

Labels become positions, parameters and shared variables get addresses, and every branch
gets the position where its lanes meet again: the immediate post-dominator of its block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fp4ref.errors import InputError
from fp4ref.ptx.parser import Entry, Instruction, Label, Module, PtxError, Symbol

EXITS = ("ret", "exit", "trap", "brkpt")


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
    """

    module: Module
    entry: Entry
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    param_offsets: dict[str, int]
    param_nbytes: int

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
        if name not in module.entries:
            known = ", ".join(module.entries) or "none"
            raise InputError(f"entry {name!r}: this module has {known}")
        entry = module.entries[name]
        instructions: list[Instruction] = []
        labels: dict[str, int] = {}
        for item in entry.body:
            if isinstance(item, Label):
                labels[item.name] = len(instructions)
            else:
                instructions.append(item)
        offset = 0
        offsets: dict[str, int] = {}
        for parameter in entry.params:
            offset = -(-offset // parameter.alignment) * parameter.alignment
            offsets[parameter.name] = offset
            offset += parameter.nbytes
        program = cls(module, entry, tuple(instructions), labels, offsets, offset)
        for instruction in instructions:
            if instruction.opcode.startswith("bra"):
                program.target(instruction)
        return program

    def target(self, branch: Instruction) -> int:
        """Position that a branch goes to."""
        label = branch.operands[0] if branch.operands else None
        if not isinstance(label, Symbol) or label.name not in self.labels:
            raise PtxError(
                f"PTX line {branch.line}: branch to an unknown label {label}"
            )
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
        """Position where the lanes of each guarded branch or exit meet again.

        The value is ``len(instructions)`` where they only meet at the end.
        """
        end = len(self.instructions)
        starts = {0, end, *self.labels.values()}
        for i, instruction in enumerate(self.instructions):
            if instruction.opcode.split(".")[0] in ("bra", *EXITS):
                starts.add(i + 1)
        blocks = sorted(s for s in starts if s <= end)
        number = {start: b for b, start in enumerate(blocks)}
        last = len(blocks) - 1
        successors: list[list[int]] = []
        for b, start in enumerate(blocks[:-1]):
            stop = blocks[b + 1]
            successors.append(self._successors(start, stop, number, b, last))
        successors.append([])
        post = _post_dominators(successors)
        found: dict[int, int] = {}
        for b, start in enumerate(blocks[:-1]):
            branch = blocks[b + 1] - 1
            if branch >= start and self.instructions[branch].guard is not None:
                found[branch] = blocks[_immediate(post, b)]
        return found

    def _successors(
        self, start: int, stop: int, number: dict[int, int], block: int, last: int
    ) -> list[int]:
        if stop == start:
            return [min(block + 1, last)]
        branch = self.instructions[stop - 1]
        base = branch.opcode.split(".")[0]
        following = [min(block + 1, last)]
        if base == "bra":
            taken = [number[self.target(branch)]]
            return taken if branch.guard is None else taken + following
        if base in EXITS:
            return [last] if branch.guard is None else [last, *following]
        return following


def _post_dominators(successors: list[list[int]]) -> list[int]:
    """Blocks on every path from each block to the end, as bit sets."""
    count = len(successors)
    everything = (1 << count) - 1
    post = [everything] * count
    post[-1] = 1 << (count - 1)
    changed = True
    while changed:
        changed = False
        for b in range(count - 2, -1, -1):
            common = everything
            for s in successors[b]:
                common &= post[s]
            new = common | 1 << b
            if new != post[b]:
                post[b], changed = new, True
    return post


def _immediate(post: list[int], block: int) -> int:
    """Return the nearest block that post-dominates `block`, itself excluded."""
    candidates = post[block] & ~(1 << block)
    best, most = len(post) - 1, -1
    while candidates:
        low = candidates & -candidates
        b = low.bit_length() - 1
        candidates ^= low
        size = post[b].bit_count()
        if size > most:
            best, most = b, size
    return best
