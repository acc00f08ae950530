"""equilibrium: two models that a better one must beat.

*Nothing changes* has the baseline's cycles for every kernel. *Wait by deficit* is the
document's: the MMA warp is busy for the wait for the first stage and the K-loop, the
epilogue for its wait and phase 1; what the epilogue takes longer is the deficit, and
the MMA warp waits 4.1 times the deficit. It is given what stood to reason before each
experiment, and says nothing about the parts of a tile but that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fp4ref.lab.records import RUN_TIME, TILES, Records, records

Predictor = Callable[[tuple[str, ...]], Mapping[str, float] | None]
"""From the switches of a kernel, on top of the baseline, to its cycles by name, and a
run time in any unit; None if it has nothing to say."""

BUSY: Final = ("TMA0 wait", "K-loop")
EPILOGUE: Final = ("ml wait", "phase 1")


def amplification(found: Records | None = None) -> float:
    """Return the wait for each cycle of deficit, from the baseline."""
    cycles = (found or records()).cycles
    return cycles["epi wait"] / deficit(cycles)


def deficit(cycles: Mapping[str, float]) -> float:
    """Return the cycles that the epilogue takes longer than the MMA warp; 0 or more."""
    behind = sum(cycles[n] for n in EPILOGUE) - sum(cycles[n] for n in BUSY)
    return max(0.0, behind)


def nothing_changes(switches: tuple[str, ...]) -> dict[str, float]:
    """Return the baseline, whatever the kernel."""
    found = records()
    return found.cycles | {RUN_TIME: found.run_time}


def wait_by_deficit(switches: tuple[str, ...]) -> dict[str, float]:
    """Return what the document's own model gives."""
    found = records()
    expected = {row.switch: row.expected for row in found.rows}
    cycles, tiles = dict(found.cycles), 1.0
    for name in switches:
        for part, change in expected.get(name, {}).items():
            if part == TILES:
                tiles *= change
            else:
                cycles[part] += change
    cycles["epi wait"] = amplification(found) * deficit(cycles)
    cycles["tile"] = sum(cycles[name] for name in BUSY) + cycles["epi wait"]
    return cycles | {RUN_TIME: cycles["tile"] * tiles}
