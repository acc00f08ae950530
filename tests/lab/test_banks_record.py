"""Passes as an H200 counted them, against the model, and against its cycles."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fp4ref.lab.banks import Access, access
from fp4ref.lab.staging import STAGINGS

sys.path.insert(0, str(Path(__file__).parents[2]))

from probes.banks import record
from probes.banks.patterns import (
    HELD_OUT_SEED,
    SEED,
    Pattern,
    digest,
    held_out,
    patterns,
)

RECORDED = json.loads(record.RECORD.read_text())
ROWS: list[dict[str, Any]] = RECORDED["patterns"]
EVERY = patterns()
OF_A_LAUNCH = 9
"""Wavefronts of every launch beside those of its accesses."""


def passes(row: dict[str, Any]) -> int:
    """Passes of an access, from the counter of a launch."""
    return (row["wavefronts"] - OF_A_LAUNCH) // record.ACCESSES


def model(pattern: Pattern) -> Access:
    return access(pattern.offsets, pattern.width, load=not pattern.stores)


def test_the_record_is_of_these_patterns_and_these_sources() -> None:
    assert "H200" in RECORDED["card"]
    assert {"driver", "date"} <= set(RECORDED)
    said = [RECORDED[name] for name in ("seed", "digest", "sources", "accesses")]
    assert said == [SEED, digest(EVERY), record.sources(), record.ACCESSES]
    assert RECORDED["counters"] == record.COUNTERS
    named = [(row["name"], row["access"]) for row in ROWS]
    assert named == [(pattern.name, pattern.entry) for pattern in EVERY]
    assert len(ROWS) >= 1000


def test_the_counter_is_a_whole_number_of_passes() -> None:
    left = {row["wavefronts"] % record.ACCESSES for row in ROWS}
    assert left == {OF_A_LAUNCH}


@pytest.mark.parametrize("entry", sorted({pattern.entry for pattern in EVERY}))
def test_the_model_counts_what_the_card_counts(entry: str) -> None:
    asked = [(p, row) for p, row in zip(EVERY, ROWS, strict=True) if p.entry == entry]
    assert len(asked) >= 100
    unlike = [
        (pattern.name, model(pattern).passes, passes(row))
        for pattern, row in asked
        if model(pattern).passes != passes(row)
    ]
    assert unlike == []


def test_every_write_and_read_of_each_staging_was_counted() -> None:
    found = {row["name"]: passes(row) for row in ROWS}
    for each in STAGINGS:
        writes = [found[f"{each.name}, write {i}"] for i in range(16)]
        reads = [found[f"{each.name}, read {i}"] for i in range(32)]
        assert writes == [write.passes for write in each.writes]
        assert reads == [read.passes for read in each.reads]


def test_pairs_make_a_difference_to_loads_alone() -> None:
    """The rule of pairs is asked for: without it these would be counted too high."""
    merged = Counter[str]()
    for pattern, row in zip(EVERY, ROWS, strict=True):
        apart = access(pattern.offsets, pattern.width).passes
        assert passes(row) <= apart
        merged[pattern.entry] += passes(row) < apart
    assert merged["load_8"] >= 20
    assert merged["load_16"] >= 20
    assert sum(n for entry, n in merged.items() if entry.startswith("store")) == 0
    assert merged["load_4"] == 0


def test_cycles_say_the_same_without_a_profiler() -> None:
    """From the passes that a lane's words take, a pass is a cycle."""
    for pattern, row in zip(EVERY, ROWS, strict=True):
        cycles = row["cycles"] / record.ACCESSES
        least = pattern.width // 4
        if pattern.stores:
            assert round(cycles) == max(passes(row), least), pattern
        elif passes(row) >= least:
            assert round(cycles) == passes(row), pattern
        else:
            assert passes(row) <= round(cycles) <= least, pattern


def test_the_model_counts_what_the_card_counts_of_patterns_held_out() -> None:
    """Of kinds, and a seed, that nobody had used when the model was written."""
    found = json.loads(record.HELD_OUT.read_text())
    every, rows = held_out(), found["patterns"]
    said = [found[name] for name in ("seed", "digest", "sources", "accesses")]
    assert said == [HELD_OUT_SEED, digest(every), record.sources(), record.ACCESSES]
    assert len(every) >= 600
    assert {row["wavefronts"] % record.ACCESSES for row in rows} == {OF_A_LAUNCH}
    unlike = [
        (pattern.name, model(pattern).passes, passes(row))
        for pattern, row in zip(every, rows, strict=True)
        if model(pattern).passes != passes(row)
    ]
    assert unlike == []
    assert len({passes(row) for row in rows}) >= 12
