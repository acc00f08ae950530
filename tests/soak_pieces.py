"""soak_pieces: the long tests in pieces, each a task, here or on a Dask cluster.

``python tests/soak_pieces.py --scheduler tcp://host:8786 [-k EXPRESSION] [TESTS]``, or
``--workers 4``. Every worker needs this folder at the same path, with its tools. A line
is printed as each piece ends; the exit status is 1 if one failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from fp4ref.errors import Fp4refError
from fp4ref.fan_out import fan_out

ROOT = Path(__file__).parents[1]


class Piece(NamedTuple):
    """Some tests of one file, by their ids."""

    ids: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.ids) - 1} more" if len(self.ids) > 1 else ""
        return f"{self.ids[0]}{more}"


class Outcome(NamedTuple):
    """How a piece ended, and the end of what it printed."""

    status: int
    seconds: float
    said: str


def pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "soak", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def collected(tests: list[str], expression: str, size: int) -> list[Piece]:
    """Return the long tests, at most `size` of one file together."""
    found = pytest(
        "--collect-only", *tests, *(["-k", expression] if expression else [])
    )
    ids = [line for line in found.stdout.splitlines() if "::" in line]
    files = groupby(ids, lambda each: each.partition("::")[0])
    return [
        Piece(tuple(together[start : start + size]))
        for together in (list(of_file) for _, of_file in files)
        for start in range(0, len(together), size)
    ]


def run_piece(piece: Piece) -> Outcome:
    began = time.monotonic()
    ended = pytest(*piece.ids)
    return Outcome(ended.returncode, time.monotonic() - began, ended.stdout[-2000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", help="files, folders or ids; all if none")
    parser.add_argument("-k", default="", help="as pytest's")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--scheduler")
    parser.add_argument("--size", type=int, default=4, help="tests of a piece")
    options = parser.parse_args()
    pieces = collected(options.tests, options.k, options.size)
    if not pieces:
        parser.error("no long test is called so")

    def told(index: int, outcome: Outcome) -> None:
        word = "passed" if outcome.status == 0 else f"FAILED\n{outcome.said}"
        print(f"{outcome.seconds:7.1f} s  {pieces[index]}  {word}", flush=True)

    where = {"workers": options.workers, "scheduler": options.scheduler}
    try:
        outcomes = fan_out(run_piece, pieces, done=told, **where)
    except Fp4refError as error:
        parser.error(str(error))
    failed = sum(outcome.status != 0 for outcome in outcomes)
    tests = sum(len(piece.ids) for piece in pieces)
    print(f"{tests} tests in {len(pieces)} pieces, {failed} pieces failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
