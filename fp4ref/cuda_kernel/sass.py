"""sass: what the assembler made of the kernel: registers, spills, the MMA warp's loop.

Source of the listing: ``nvdisasm`` from the compiler wheels, on the cubin that NVRTC
made with the PTX.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from fp4ref.device.compile import INSTALL, CompileError
from fp4ref.gemm.plan import Plan

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;.*")
_LABEL = re.compile(r"(\.L_x_\d+):")
_BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")


MMAS = {
    "mxf4nvf4": "UTCOMMA",
    "mxf8f6f4": "UTCQMMA",
    "f8f6f4": "UTCQMMA",
    "f16": "UTCHMMA",
}
"""What ptxas makes of the MMA, by kind."""
COMMIT = "UTCBAR"


def mandatory(p: Plan) -> dict[str, int]:
    """Count what a k-tile cannot do without: scale copies, MMAs and a commit."""
    copies = {"UTCCP": p.scale_copies} if p.scale_copies else {}
    return copies | {MMAS[p.kind]: p.k_blocks, COMMIT: 1}


@dataclass(frozen=True, slots=True)
class SassFigures:
    """Figures of one kernel.

    Attributes
    ----------
    instructions
        Of the whole kernel.
    k_group
        k-tiles that share a commit.
    loop
        Instructions that the MMA warp executes in one round of its k-tile loop when no
        wait has to spin, in order.
    """

    registers: int
    spill_instructions: int
    instructions: int
    loop: tuple[str, ...]
    k_group: int = 1

    @property
    def loop_counts(self) -> dict[str, int]:
        """Instructions of a round by their first word."""
        return dict(Counter(opcode(each) for each in self.loop).most_common())

    @property
    def k_tiles(self) -> int:
        """K-tiles in a round: each group of them ends with one commit."""
        return self.loop_counts[COMMIT] * self.k_group

    @property
    def per_k_tile(self) -> float:
        """Instructions for one k-tile."""
        return len(self.loop) / self.k_tiles


def bare(instruction: str) -> str:
    """Return an instruction without its predicate."""
    return re.sub(r"^@!?U?P[\dT]\s+", "", instruction)


def opcode(instruction: str) -> str:
    """First word of an instruction, without predicate and modifiers."""
    return bare(instruction).split()[0].split(".")[0]


def disassemble(cubin: bytes) -> str:
    """Return nvdisasm's listing, with line information left out.

    Raises
    ------
    CompileError
        nvdisasm is not installed.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [_nvdisasm(), "-c", file.name], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise CompileError(f"nvdisasm: {done.stderr.strip()}")
    return done.stdout


def _nvdisasm() -> str:
    if found := shutil.which("nvdisasm"):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).glob("*/bin/nvdisasm*")):
            return str(path)
    raise CompileError(f"nvdisasm is not installed; run: {INSTALL}")


def figures(
    cubin: bytes, listing: str | None = None, *, k_group: int = 1
) -> SassFigures:
    """Return the figures of the kernel in `cubin`.

    Parameters
    ----------
    listing
        What `disassemble` made of it, if that is at hand.
    k_group
        k-tiles of a stage, as its configuration has them.
    """
    found = Listing(disassemble(cubin) if listing is None else listing)
    return SassFigures(
        _registers(cubin),
        sum(opcode(each) in ("STL", "LDL") for each in found.instructions),
        len(found.instructions),
        tuple(found.loop_around(*MMAS.values(), group=k_group)),
        k_group,
    )


_REGCOUNT = 0x2F
"""``EIATTR_REGCOUNT``: symbol and registers of a function, in section ``.nv.info``."""


def _registers(cubin: bytes) -> int:
    """Registers of a thread, from the ELF file; the most, if there are functions."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names_index = struct.unpack_from("<HH", cubin, 0x3C)
    sections = [
        struct.unpack_from("<IIQQQQ", cubin, table + 64 * i) for i in range(count)
    ]
    names = sections[names_index][4]
    most = 0
    for name, _, _, _, start, size in sections:
        if not cubin.startswith(b".nv.info\0", names + name):
            continue
        at, end = start, start + size
        while at < end:
            form, attribute, nbytes = struct.unpack_from("<BBH", cubin, at)
            at += 4
            if attribute == _REGCOUNT:
                most = max(most, struct.unpack_from("<II", cubin, at)[1])
            at += nbytes if form == 4 else 0
    return most


class Listing:
    """Instructions and labels of a listing."""

    def __init__(self, text: str) -> None:
        self.instructions: list[str] = []
        self.labels: dict[str, int] = {}
        for line in text.splitlines():
            if label := _LABEL.match(line.strip()):
                self.labels[label[1]] = len(self.instructions)
            elif found := _INSTRUCTION.fullmatch(line):
                self.instructions.append(found[2])

    def target(self, at: int) -> int | None:
        """Return where a branch goes; None for what is none."""
        branch = _BRANCH.search(self.instructions[at])
        return self.labels[branch[1]] if branch else None

    def loop_around(self, *wanted: str, group: int = 1) -> Iterator[str]:
        """Instructions of one round of the innermost loop of `wanted` with a commit."""
        for at in self.round_of(wanted, COMMIT, group=group):
            yield self.instructions[at]

    def round_of(
        self, wanted: Collection[str], ends: str, start: int = 0, *, group: int = 1
    ) -> Iterator[int]:
        """Instructions of one round of the innermost loop of `wanted`, by number.

        The round of a warp that never waits: of the branches inside the loop it takes
        those that skip a wait which a peek has answered, and none that leave it or skip
        what is wanted. A loop inside has `group` rounds.

        Parameters
        ----------
        ends
            What else a round must have.
        start
            Number of the instruction from which the loop is looked for.
        """
        inside = next(
            i
            for i, each in enumerate(self.instructions)
            if i >= start and opcode(each) in wanted
        )
        first, last = next(
            (to, i)
            for i in range(inside, len(self.instructions))
            if (to := self.target(i)) is not None and to <= inside
            if ends in map(opcode, self.instructions[to:i])
        )
        rounds = Counter[int]()
        at = first
        while at <= last:
            yield at
            to = self.target(at)
            if to is None or not first < to <= last:
                at += 1
            elif to <= at:
                rounds[at] += 1
                at = at + 1 if rounds[at] % group == 0 else to
            else:
                skipped = map(opcode, self.instructions[at:to])
                at = to if set(wanted).isdisjoint(skipped) else at + 1
