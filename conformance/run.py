"""run: other people's kernels on the emulated SM, and the table of what they said.

Each row is a kernel that knows nothing of this machine, executed from its compiled PTX.
`make conformance` runs all rows and rewrites results.json and docs/conformance.md, and
the list of what the order of accesses says of these kernels. With `--only NAME ...`
those run whose name has one of these words in it; the others stay as recorded.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [
    str(Path(__file__).parent),
    str(TESTS),
    str(TESTS / "ptx"),
    str(TESTS / "evidence"),
]

import conformance_page  # noqa: E402
import cute_dsl_kernels  # noqa: E402
import cutlass_entries  # noqa: E402
import findings  # noqa: E402
import triton_entries  # noqa: E402
from entry import SCHEDULES, Entry, run_entry  # noqa: E402


def entries() -> Iterator[Entry]:
    """Every row, in the order of the table."""
    package = "PyPI nvidia-cutlass 4.2.0.0"
    yield from cutlass_entries.eight_bits_and_wider(package)
    yield from cutlass_entries.block_scaled(package)
    yield from triton_entries.dot_scaled()
    yield from triton_entries.checked()
    yield from cutlass_entries.tutorials(package)
    yield from cutlass_entries.grouped_and_scaled(package)
    yield from (Entry(*row) for row in cute_dsl_kernels.rows(SCHEDULES))


def main(words: Sequence[str]) -> int:
    """Run rows and write all files; 1 if a row did not pass or a finding is new.

    Parameters
    ----------
    words
        A row or kernel runs if its name has one of them in it; all do without any.
    """
    asked = list(entries())
    rows = {
        row["kernel"]: conformance_page.Row(**row)
        for row in conformance_page.recorded_rows()
    }
    for entry in asked:
        if not findings.is_named(entry.kernel, words):
            continue
        print(f"{entry.kernel} ...", flush=True)
        row = rows[entry.kernel] = run_entry(entry)
        print(f"  {row.result} ({row.seconds} s)", flush=True)
        conformance_page.write(
            [rows[each.kernel] for each in asked if each.kernel in rows]
        )
    failed = any(row.result != "passed" for row in rows.values())
    return int(not findings.update(words) or failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    sys.exit(main(parser.parse_args().only))
