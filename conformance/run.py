"""run: other people's kernels on the emulated SM, and the table of what they said.

Each row is a kernel that knows nothing of this machine, executed from its compiled PTX.
`make conformance` runs all rows and rewrites results.json and docs/conformance.md, and
the list of what the order of accesses says of these kernels. With `--only NAME ...`
those run whose name has one of these words in it; the others stay as recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
sys.path[:0] = [
    str(Path(__file__).parent),
    str(TESTS),
    str(TESTS / "ptx"),
    str(TESTS / "evidence"),
]

import cute_dsl_kernels  # noqa: E402
import findings  # noqa: E402
import notes  # noqa: E402
import trees  # noqa: E402
from wide_operands import wide_pair  # noqa: E402

from fp4ref import GemmConfig, compare, oracle  # noqa: E402
from fp4ref import run as emulate  # noqa: E402
from fp4ref.cutlass.execute import execute_example  # noqa: E402
from fp4ref.errors import Fp4refError  # noqa: E402

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "conformance.md"
SCHEDULES: tuple[str | int, ...] = ("eager", "late", 1)

SHAPES_72B = [
    (128, 128, 256),
    (256, 384, 512),
    (128, 96, 768),
    (256, 32, 2048),
    (100, 160, 64),
    (384, 256, 1056),
]


@dataclass(frozen=True)
class Row:
    """One kernel and its outcome."""

    kernel: str
    source: str
    exercises: str
    cases: str
    result: str
    seconds: float
    date: str


@dataclass(frozen=True)
class Entry:
    """A kernel to run: `check` raises AssertionError or a named fault."""

    kernel: str
    source: str
    exercises: str
    cases: str
    check: Callable[[], None]


def cutlass(
    name: str,
    shapes: list[tuple[int, int, int]],
    schedules: tuple[str | int, ...] = SCHEDULES,
    more: Sequence[str] = (),
) -> Callable[[], None]:
    """Let an example decide for itself, for every shape and schedule."""

    def check() -> None:
        for shape in shapes:
            for schedule in schedules:
                found = execute_example(
                    name, *shape, more=more, schedule=schedule, trace=False
                )
                if found.result.fault:
                    raise found.result.fault
                where = f"{shape}, {schedule}: {found.result.problems}"
                assert found.result.passed, where

    return check


def wide_72b() -> None:
    """D, SFD and every hardware event equal ours, on wide-range operands."""
    config = GemmConfig.example_72b()
    for seed, shape in enumerate(SHAPES_72B[:4]):
        m, n, k = shape
        a, b = wide_pair(seed, m, n, k)
        want = oracle.expected(a, b, config=config)
        ours = emulate(a, b, config=config)
        for schedule in SCHEDULES:
            theirs = execute_example("72b", m, n, k, operands=(a, b), schedule=schedule)
            codes, scales = theirs.output(m, n)
            assert np.array_equal(codes, want.d), f"{shape}, {schedule}: D differs"
            assert np.array_equal(scales, want.sfd), f"{shape}, {schedule}: SFD"
            assert theirs.trace is not None
            found = compare(ours, theirs.trace)
            assert found.ok, found.report()


def triton(name: str, block: tuple[int, int, int]) -> Callable[[], None]:
    """Bits of D equal the integer model, on wide-range operands with specials."""

    def check() -> None:
        from test_triton import run as run_triton

        m, n, k = block
        for shape in ((m, n, k), (2 * m, n, 2 * k), (m, 2 * n, 4 * k)):
            for schedule in SCHEDULES:
                d, want = run_triton(
                    name, block, shape, schedule=schedule, ordering="shipped"
                )
                assert np.array_equal(d, want), f"{shape}, {schedule}: D differs"

    return check


def entries() -> Iterator[Entry]:
    """Every row, in the order of the table."""
    package = "PyPI nvidia-cutlass 4.2.0.0"
    yield from one_product(package)
    for name in ("nvfp4", "mxfp4"):
        for block in ((128, 128, 256), (128, 64, 256)):
            yield Entry(
                f"Triton dot_scaled {name.upper()}, tile {'x'.join(map(str, block))}",
                "PyPI triton 3.9",
                "tcgen05.st of scales and accumulator, no TMA, no UTCCP",
                f"3 shapes, {len(SCHEDULES)} schedules, against the integer model",
                triton(name, block),
            )
    yield from checked()
    yield from tutorials(package)
    yield from grouped_and_scaled(package)
    yield from (Entry(*row) for row in cute_dsl_kernels.rows(SCHEDULES))


def checked() -> Iterator[Entry]:
    """`fp4ref check` on a text of Triton's, as compiled and with mistakes put in."""

    def check() -> None:
        import test_check_triton as edited

        edited.test_as_compiled_it_is_clean_and_relies_on_known_things_only()
        for name in edited.EDITS:
            edited.test_an_edit_is_named_at_its_line(name)

    yield Entry(
        "Triton dot_scaled NVFP4, as fp4ref check sees it",
        "PyPI triton 3.9",
        "clean as compiled; ten mistakes, one at a time, each named at its line",
        "1 shape, 4 schedules and both orderings; of a mistake 2 schedules",
        check,
    )


def one_product(package: str) -> Iterator[Entry]:
    """Rows of CUTLASS's 70 and 72."""
    yield Entry(
        "CUTLASS 70 fp8, its own check",
        package,
        "kind::f8f6f4 of CTA pairs, CLC in clusters of 2 x 2, red.global.max",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("70-fp8", [(256, 256, 128), (288, 264, 208)]),
    )
    yield Entry(
        "CUTLASS 70 fp8 with scales and a bias, its own check and our tree",
        package,
        "C, D and aux in E4M3, bias, ReLU, two maxima; wide operands, D saturates",
        f"1 shape, 2 sets of operands, {len(SCHEDULES)} schedules",
        lambda: trees.cutlass_70(SCHEDULES, (256, 256, 128)),
    )
    yield Entry(
        "CUTLASS 71, the own checks of ten kernels and our tree",
        package,
        "kind::f16 MMAs of CTAs and of pairs, three epilogues without shared memory, "
        "four with a tree; fills and checks on the device",
        "1 shape, eager",
        lambda: trees.cutlass_71(("eager",), (144, 120, 72)),
    )
    yield Entry(
        "CUTLASS 72a, its own check",
        package,
        "mxf4nvf4 MMA of CTA pairs, multicast loads, CLC in clusters of 2 x 4",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("72a", [(256, 1024, 256), (264, 520, 352)]),
    )
    yield Entry(
        "CUTLASS 72b, its own check",
        package,
        "TMA, UTCCP, mxf4nvf4 MMA, CLC, epilogue with SFD",
        f"{len(SHAPES_72B)} shapes, {len(SCHEDULES)} schedules",
        cutlass("72b", SHAPES_72B),
    )
    yield Entry(
        "CUTLASS 72b, wide-range inputs",
        package,
        "the same, every accumulator bit, and 9 kinds of hardware event",
        f"4 shapes, {len(SCHEDULES)} schedules, against fp4ref's own kernel",
        wide_72b,
    )
    for swizzle in (2, 4, 8):
        yield Entry(
            f"CUTLASS 72b with --swizzle={swizzle}, its own check",
            package,
            "a branch on coordinates that a refused CLC query does not set",
            f"2 shapes, {len(SCHEDULES)} schedules",
            cutlass(
                "72b",
                [(256, 384, 512), (128, 96, 768)],
                more=[f"--swizzle={swizzle}"],
            ),
        )
    yield Entry(
        "CUTLASS 72c, its own check",
        package,
        "kind::mxf8f6f4 of CTA pairs, padded TMA loads, clusters of 2 x 4",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("72c", [(256, 256, 256), (512, 264, 384)]),
    )


def grouped_and_scaled(package: str) -> Iterator[Entry]:
    """Rows of CUTLASS's 75 and 81."""
    yield Entry(
        "CUTLASS 73, its own check",
        package,
        "preferred and other clusters of CTA pairs; fills and checks on the device",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("73", [(144, 136, 72), (288, 120, 40)]),
    )
    yield Entry(
        "CUTLASS 74 split-K, its own check",
        package,
        "sums of two clusters in a fixed order; fills and checks on the device",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("74", [(144, 120, 144), (272, 120, 72)]),
    )
    yield Entry(
        "CUTLASS 75 block-scaled, the own checks of both kernels",
        package,
        "tensor maps changed on the device; a kernel of CTAs and one of CTA pairs",
        f"2 shapes of 2 groups, {len(SCHEDULES)} schedules",
        cutlass("75", [(128, 256, 256), (160, 320, 288)]),
    )
    yield Entry(
        "CUTLASS 91 fp4_gemv, its own check",
        package,
        "f16x2 arithmetic, cp.async groups, scales rounded and stored by lanes",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("91", [(64, 1, 128), (32, 1, 2048)]),
    )
    yield Entry(
        "CUTLASS 92 fp4_regular, the own checks of both kernels",
        package,
        "one kernel loads B by TMA, one by cp.async with source sizes",
        "1 shape, eager (see below)",
        cutlass("92", [(128, 64, 256)], ("eager",)),
    )
    yield Entry(
        "CUTLASS 81 gemm_groupwise, its own check",
        package,
        "kind::f8f6f4 of CTA pairs, scales of rows by cp.async, two epilogues",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("81-groupwise", [(256, 128, 256), (512, 144, 272)]),
    )
    yield Entry(
        "CUTLASS 81 gemm_blockwise, its own check",
        package,
        "kind::f8f6f4 MMA, cp.async scales, two epilogues",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("81", [(128, 128, 256), (256, 128, 512)]),
    )


def tutorials(package: str) -> Iterator[Entry]:
    """Rows of CuTe's tutorials for Blackwell."""
    yield Entry(
        "CuTe Blackwell tutorial 01, its own check",
        package,
        "kind::f16 MMA, plain copies to shared memory",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("tutorial-01", [(128, 256, 64), (256, 256, 128)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 02, one k-tile, its own check",
        package,
        "kind::f16 MMA, TMA loads",
        f"2 shapes, {len(SCHEDULES)} schedules",
        cutlass("tutorial-02", [(128, 256, 64), (256, 512, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 02, its own check",
        package,
        "kind::f16 MMA, TMA loads",
        "2 shapes, late and 2 seeds (see below)",
        cutlass("tutorial-02", [(256, 256, 128), (128, 256, 192)], ("late", 1, 2)),
    )
    yield Entry(
        "CuTe Blackwell tutorial 03, one k-tile, its own check",
        package,
        "kind::f16 MMA, TMA loads and commits multicast in clusters of 16 CTAs",
        f"1 shape of 16 CTAs, {len(SCHEDULES)} schedules",
        cutlass("tutorial-03", [(512, 1024, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 03, its own check",
        package,
        "kind::f16 MMA, TMA loads and commits multicast in clusters of 16 CTAs",
        "1 shape, late",
        cutlass("tutorial-03", [(512, 1024, 128)], ("late",)),
    )
    yield Entry(
        "CuTe Blackwell tutorial 04, one k-tile, its own check",
        package,
        "MMAs of CTA pairs, multicast loads and commits of pairs",
        f"1 shape of 16 CTAs, {len(SCHEDULES)} schedules",
        cutlass("tutorial-04", [(512, 1024, 64)]),
    )
    yield Entry(
        "CuTe Blackwell tutorial 05, its own check",
        package,
        "MMAs of CTA pairs, TMA stores",
        "1 shape of 16 CTAs, late and 2 seeds (see below)",
        cutlass("tutorial-05", [(512, 1024, 64)], ("late", 1, 2)),
    )


def run_entry(entry: Entry) -> Row:
    """Run one row; a fault is its result, not the end of the run."""
    begin = time.perf_counter()
    try:
        entry.check()
        result = "passed"
    except AssertionError as error:
        result = f"wrong: {error}"
    except Fp4refError as error:
        result = f"refused: {str(error).splitlines()[0]}"
    except ModuleNotFoundError as error:
        result = f"not run: {error.name} is not installed"
    return Row(
        entry.kernel,
        entry.source,
        entry.exercises,
        entry.cases,
        result,
        round(time.perf_counter() - begin, 1),
        date.today().isoformat(),
    )


def render(rows: list[Row]) -> str:
    """Write the page."""
    lines = [
        "# Conformance",
        "",
        "Compiled kernels of other authors, executed on the emulated SM. They know",
        "nothing of it, so their right results are an outside witness of the hardware",
        "model. Schedules: eager, late and a seed. Made by `make conformance`.",
        "",
        "| kernel | source | exercises | cases | result | seconds | date |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [
            row.kernel,
            row.source,
            row.exercises,
            row.cases,
            row.result,
            f"{row.seconds:.1f}",
            row.date,
        ]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    lines += ["", "Notes:", "", *(f"- {note}" for note in notes.NOTES)]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Run rows and write all files; 1 if a row did not pass or a finding is new.

    Parameters
    ----------
    words
        A row or kernel runs if its name has one of them in it; all do without any.
    """
    asked = list(entries())
    rows = {row["kernel"]: Row(**row) for row in recorded_rows()}
    for entry in asked:
        if not findings.is_named(entry.kernel, words):
            continue
        print(f"{entry.kernel} ...", flush=True)
        row = rows[entry.kernel] = run_entry(entry)
        print(f"  {row.result} ({row.seconds} s)", flush=True)
        write([rows[each.kernel] for each in asked if each.kernel in rows])
    failed = any(row.result != "passed" for row in rows.values())
    return int(not findings.update(words) or failed)


def write(rows: list[Row]) -> None:
    """Write the record and the page, after each row: a run may take hours."""
    versions = {p: metadata.version(p) for p in ("numpy", "numba", "nvidia-cutlass")}
    record = {"versions": versions, "rows": [asdict(row) for row in rows]}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(render(rows))


def recorded_rows() -> list[dict[str, Any]]:
    """Read the rows of the last run."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text())["rows"]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    sys.exit(main(parser.parse_args().only))
