"""which_tests: the tests for a mutant, the likeliest and cheapest first."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from drawn import Mutant

FIRST = 2
"""Files of tests that are read first; most mutants need no more."""


class Touching:
    """What one folder's tests touch.

    Parameters
    ----------
    measured
        As ``touching.py`` writes it.
    """

    def __init__(self, measured: dict[str, Any]) -> None:
        self.cost: dict[str, float] = measured["cost"]
        self._touched: dict[str, list[str]] = measured["touched"]

    def knows(self, mutant: Mutant) -> bool:
        """Whether a test is known to execute the changed statement."""
        return bool(self._touched.get(mutant.id))

    def tests(self, mutant: Mutant) -> list[list[str]]:
        """Return the tests of two files, then of the others.

        Those that execute the changed statement; all, if none is known to do so.
        """
        by_file: dict[str, list[str]] = defaultdict(list)
        found = self._touched.get(mutant.id) or self.cost
        for test in sorted(found, key=lambda t: self.cost[t]):
            by_file[test.partition("::")[0]].append(test)
        stem = Path(mutant.file).stem.removesuffix("_jit")

        def likely(file: str) -> tuple[bool, float]:
            spent = sum(self.cost[test] for test in by_file[file])
            return stem not in file, spent / len(by_file[file])

        files = sorted(by_file, key=likely)
        parts = [files[:FIRST], files[FIRST:]]
        return [[t for f in part for t in by_file[f]] for part in parts if part]
