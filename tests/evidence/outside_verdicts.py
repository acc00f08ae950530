"""outside_verdicts: the programs of other people, by the name of their witness."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / each) for each in ("evidence", "hardware", "ptx")]

from outside_programs import Told  # noqa: E402

MODULES = ("copies", "tensor", "mma", "pairs", "maps", "clusters", "lanes", "reports")


def _all() -> Mapping[str, Told]:
    found: dict[str, Told] = {}
    for module in MODULES:
        programs = import_module(f"outside_{module}").PROGRAMS
        for name, program in programs.items():
            who = program.source.partition(":")[0].partition(", ")[0]
            found[f"{who}, {name}"] = program
    return found


PROGRAMS = _all()
