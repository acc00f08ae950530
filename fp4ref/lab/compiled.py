"""compiled: what compilers made of our kernel and of CUTLASS's, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from fp4ref.cuda_kernel.build import ARCH, packaged
from fp4ref.cuda_kernel.choices import one_changed_file
from fp4ref.cuda_kernel.sass import Listing, figures, mandatory
from fp4ref.cuda_kernel.sass_census import (
    LOAD,
    LOOPS,
    MMA,
    ROLES,
    Census,
    Round,
    census,
    steady_state,
)
from fp4ref.cuda_kernel.sass_kinds import DESCRIPTOR, KINDS
from fp4ref.cuda_kernel.sources import MAIN, kernel_root
from fp4ref.device.compile import CompileError, compile_cuda
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.lab.cutlass_72b import LOADS, recorded
from fp4ref.lab.mma_loop_steps import steps
from fp4ref.lab.table import COMPILED, Table

OURS: Final = "ours"
CUTLASS: Final = "CUTLASS 72b"
_KERNEL: Final = "f32"
_MMA_WARP: Final = "kernel/gemm/mma_warp.cuh"
_UNROLL: Final = "#pragma unroll(ROUND_STAGES ? 1 : 2) "
_TEXT_COLUMNS: Final = 48

STEPS: Final = (
    ("1", "wait for the stage", "3 to 5", ("wait", "branch")),
    ("2", "its phase and place", "2", ("select", "predicate", "integer", "move")),
    ("3", "fence after the wait", "1", ("fence",)),
    ("4, 5", "descriptors of A and B", "10 to 16", (DESCRIPTOR, "R2UR", "constant")),
    ("6 to 9", "the MMAs", "20 to 22", ("MMA",)),
    ("10", "commit", "1", ("commit",)),
    ("none", "scale copies", "none", ("scale copy",)),
)
"""Document 003's ten steps of a k-tile, what it counts for each, and our kinds."""


@cache
def compiled_tables() -> tuple[Table, ...]:
    """Return every table, in the order of reading."""
    listing = Listing(packaged(f"{_KERNEL}.sass"))
    counted = census(listing)
    rounds = steady_state(listing, counted, loads=LOADS)
    return (
        _roles(counted),
        _kinds(counted, rounds),
        _ten_steps(rounds[0]),
        _loop(rounds[0]),
        _unroll(),
        _steps(),
    )


def _sums(cells: list[dict[str, Any]], *names: str) -> Counter[tuple[str, ...]]:
    """Add the cells of a census by some of their names."""
    found: Counter[tuple[str, ...]] = Counter()
    for cell in cells:
        found[tuple(cell[name] for name in names)] += cell["instructions"]
    return found


def _both(counted: Census) -> dict[str, dict[str, Any]]:
    return {OURS: counted.to_dict(), CUTLASS: recorded()}


def _roles(counted: Census) -> Table:
    rows, cells = [], []
    for kernel, found in _both(counted).items():
        sums = _sums(found["cells"], "role", "loop")
        for role in ROLES:
            counts = {loop: sums[role, loop] for loop in LOOPS}
            if not any(counts.values()):
                continue
            total = sum(counts.values())
            rows.append({"kernel": kernel, "role": role, "all": total, **counts})
            cells.append((kernel, role, *map(str, counts.values()), str(total)))
        total = found["instructions"]
        cells.append((kernel, "all", *("" for _ in LOOPS), str(total)))
    short = tuple(loop.removesuffix(" loop") for loop in LOOPS)
    note = (
        "By warp role and innermost loop. Each instruction of the listing is in one "
        "place, so that the roles add up to all."
    )
    headings = ("kernel", "warp", *short, "all")
    title = "Instructions in the listing"
    return Table(
        "sass_roles", title, COMPILED, note, headings, tuple(cells), tuple(rows)
    )


def _kinds(counted: Census, rounds: tuple[Round, ...]) -> Table:
    ours = {each.role: each.by_kind for each in rounds}
    theirs: dict[str, dict[str, float]] = recorded()["per_k_tile"]
    listed = {
        kernel: {kind: n for (kind,), n in _sums(found["cells"], "kind").items()}
        for kernel, found in _both(counted).items()
    }
    columns: dict[str, Mapping[str, float]] = {
        "mma_ours": ours[MMA],
        "mma_cutlass": theirs[MMA],
        "load_ours": ours[LOAD],
        "load_cutlass": theirs[LOAD],
        "listing_ours": listed[OURS],
        "listing_cutlass": listed[CUTLASS],
    }
    counts = {
        kind: {name: column.get(kind, 0) for name, column in columns.items()}
        for kind in KINDS
        if any(kind in column for column in columns.values())
    }
    counts["all"] = {name: sum(column.values()) for name, column in columns.items()}
    rows = [{"kind": kind} | row for kind, row in counts.items()]
    cells = [(kind, *(f"{n:g}" for n in row.values())) for kind, row in counts.items()]
    note = (
        "For one k-tile in steady state, when no wait spins, and in the whole listing. "
        f"Mandatory in the MMA warp: {_mandatory()}."
    )
    headings = (
        *("kind", "MMA warp: ours", "CUTLASS", "load warp: ours", "CUTLASS"),
        *("listing: ours", "CUTLASS"),
    )
    title = "Instructions by kind"
    return Table(
        "sass_kinds", title, COMPILED, note, headings, tuple(cells), tuple(rows)
    )


def _mandatory() -> str:
    needed = mandatory(plan(GemmConfig()))
    return ", ".join(f"{count} {name}" for name, count in needed.items())


def _ten_steps(found: Round) -> Table:
    rows, cells = [], []
    for number, what, document, kinds in STEPS:
        count = sum(found.by_kind.get(kind, 0) for kind in kinds)
        rows.append({"step": number, "what": what, "document": document, "ours": count})
        cells.append((number, what, document, f"{count:g}", ", ".join(kinds)))
    note = (
        "Of one k-tile. The document's counts are its own; its MMAs are those of two "
        "SMs without scales. A fence after a wait is no instruction here."
    )
    headings = ("step", "what", "document 003", "ours", "kinds")
    title = "Document 003's ten steps in our MMA loop"
    return Table(
        "mma_ten_steps", title, COMPILED, note, headings, tuple(cells), tuple(rows)
    )


def _loop(found: Round) -> Table:
    """Return every line of a round of the MMA loop, with its step and its kind."""
    step_of = {kind: number for number, _, _, kinds in STEPS for kind in kinds}
    rows, cells = [], []
    mmas = 0
    for number, each in enumerate(found.instructions, 1):
        step = step_of.get(each.kind, "")
        if each.kind == "MMA":
            step = str(6 + mmas % 4)
            mmas += 1
        rows.append({"line": number, "step": step} | each._asdict())
        cells.append((str(number), step, each.kind, _shortened(each.text)))
    note = (
        f"In the order of execution, {found.k_tiles} k-tiles; a wait that passes at "
        "once. Steps are document 003's."
    )
    headings = ("line", "step", "kind", "instruction")
    title = "Our MMA loop, line by line"
    return Table("mma_loop", title, COMPILED, note, headings, tuple(cells), tuple(rows))


def _shortened(text: str) -> str:
    """Cut what is too long for a page; JSON has the whole of it."""
    if len(text) <= _TEXT_COLUMNS:
        return text
    return f"{text[: _TEXT_COLUMNS - 3]}..."


def _unroll() -> Table:
    """Compile the loop unrolled otherwise, if a compiler is here."""
    ring = plan(GemmConfig()).mainloop_stages
    rolled = GemmConfig.nvfp4(mma_loop="rolled")
    text = (kernel_root() / _MMA_WARP).read_text(encoding="utf-8")
    rows, cells = [], []
    note = (
        f"Full: two rounds of the ring's {ring} stages, after which all repeats: the "
        "default. 1 and 2: mma_loop='rolled', which is unrolled twice."
    )
    for times in (1, 2, 2 * ring):
        config = GemmConfig() if times == 2 * ring else rolled
        changed = {_MMA_WARP: text.replace(_UNROLL, f"#pragma unroll {times} ")}
        try:
            source = one_changed_file(config, {} if config == GemmConfig() else changed)
            found = figures(compile_cuda(source, ARCH, name=MAIN).cubin)
        except CompileError as error:
            said = str(error).partition("; run:")[0]
            note = f"Not compiled: {said}."
            break
        row = {
            "unroll": times,
            "registers": found.registers,
            "spill_instructions": found.spill_instructions,
            "instructions": found.instructions,
            "per_k_tile": found.per_k_tile,
        }
        rows.append(row)
        name = "full" if times == 2 * ring else str(times)
        cells.append((name, *(f"{row[key]:g}" for key in row if key != "unroll")))
    headings = ("unroll", "registers", "spills", "instructions", "MMA warp a k-tile")
    title = "Registers against unrolling"
    return Table(
        "sass_unroll", title, COMPILED, note, headings, tuple(cells), tuple(rows)
    )


def _steps() -> Table:
    cells = [
        (each.title, f"{each.before:g}", f"{each.after:g}", each.verdict)
        for each in steps()
    ]
    note = (
        "Instructions of the MMA warp for a k-tile, each beside the loop as it is. "
        "Aim: 33; at most 40. What was expected, and why it came out so, is in JSON."
    )
    headings = ("step", "before", "after", "verdict")
    title = "Steps to a leaner MMA loop"
    rows = tuple(asdict(each) for each in steps())
    return Table("mma_steps", title, COMPILED, note, headings, tuple(cells), rows)
