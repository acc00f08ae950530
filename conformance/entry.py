"""entry: a kernel to run, and how its run is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from conformance_page import Row

from fp4ref.errors import Fp4refError

SCHEDULES: tuple[str | int, ...] = ("eager", "late", 1)


@dataclass(frozen=True)
class Entry:
    """A kernel to run: `check` raises AssertionError or a named fault."""

    kernel: str
    source: str
    exercises: str
    cases: str
    check: Callable[[], None]


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
