"""DERIVED frames: closed formulas."""

from __future__ import annotations

from typing import Any

import pytest
from frame_kinds import KINDS, ids

from fp4ref.frames import FrameKind, derive
from fp4ref.trace import Trace

K_TILES, STAGES = 8, 4
MACS = 128 * 128 * 64 * 4 * K_TILES
READ = K_TILES * 36864
WRITTEN = 128 * 128 // 2 + 128 * 128 // 16

DERIVED: dict[str, dict[str, Any]] = {
    "5.8": {
        "k_tiles": K_TILES,
        "bytes": {"A": 131072, "B": 131072, "SFA": 16384, "SFB": 16384},
        "total_bytes": READ,
        "expected_bytes": READ,
        "stages": STAGES,
    },
    "5.9": {"loads": 4 * K_TILES, "in_flight_at_end": 0},
    "6.11": {
        "mmas": 4 * K_TILES,
        "scale_copies": 8 * K_TILES,
        "scale_bytes": 8 * K_TILES * 512,
        "commits": K_TILES + 1,
        "accumulators": 1,
        "accumulator_bytes": 65536,
    },
    "6.12": {
        "macs": MACS,
        "operations": 2 * MACS,
        "read_bytes": READ,
        "written_bytes": WRITTEN,
        "operations_per_byte": 2 * MACS / (READ + WRITTEN),
    },
    "7.12": {
        "warps": 4,
        "tmem_loads": 16,
        "tmem_bytes": 65536,
        "stores": 4,
        "d_bytes": 8192,
        "sfd_bytes": 1024,
        "arrivals": 128,
    },
    "7.13": {
        "tmem_read_bytes": 65536,
        "written_bytes": 9216,
        "ratio": 65536 / 9216,
    },
    "8.8": {
        "ctas": 1,
        "tmem_columns": 512,
        "tmem_bytes": 262144,
        "mbarriers": 2 * STAGES + 2 * 2 + 2 * 2 + 2 * 2,
        "smem_bytes_used": 1024 + 4 * 16384 + 4 * 36864,
        "mainloop_stages_awaited": STAGES,
        "accumulators_awaited": 2,
        "store_tails": 1,
    },
    "8.9": {},
    "8.10": {
        "mmas": 32,
        "macs": MACS,
        "operations": 2 * MACS,
        "read_bytes": READ,
        "written_bytes": WRITTEN,
        "total_bytes": READ + WRITTEN,
        "operations_per_byte": 2 * MACS / (READ + WRITTEN),
        "accumulator_bytes": 65536,
        "tmem_bytes": 262144,
    },
}

SCHEDULED = {"5.8": {"waits"}, "5.9": {"most_in_flight", "most_bytes_in_flight"}}
SCHEDULED |= {"8.9": {"steps", "milestones", "agents"}}
"""Values that depend on when work lands; tested below."""


def test_every_derived_frame_is_tested() -> None:
    assert sorted(DERIVED) == sorted(ids(KINDS[FrameKind.DERIVED]))


@pytest.mark.parametrize("schedule", ["trace", "late_trace"])
@pytest.mark.parametrize("id", DERIVED)
def test_a_derived_frame_equals_its_formula(
    id: str, schedule: str, request: pytest.FixtureRequest
) -> None:
    found = derive(id, request.getfixturevalue(schedule))
    free = SCHEDULED.get(id, set())
    assert set(found) == set(DERIVED[id]) | free
    assert {key: found[key] for key in found if key not in free} == DERIVED[id]


def test_the_loads_of_a_whole_ring_are_in_flight_at_once(
    trace: Trace, late_trace: Trace
) -> None:
    eager, late = derive("5.9", trace), derive("5.9", late_trace)
    assert (eager["most_in_flight"], eager["most_bytes_in_flight"]) == (1, 16384)
    assert late["most_in_flight"] == 4 * STAGES
    assert late["most_bytes_in_flight"] == STAGES * 36864


def test_the_producer_waits_when_the_ring_wraps(
    trace: Trace, late_trace: Trace
) -> None:
    assert derive("5.8", trace)["waits"] == 1
    assert 1 <= derive("5.8", late_trace)["waits"] <= K_TILES - STAGES


def test_the_timeline_is_in_order(trace: Trace, late_trace: Trace) -> None:
    for found in (derive("8.9", trace), derive("8.9", late_trace)):
        steps = list(found["milestones"].values())
        assert -1 not in steps
        assert steps == sorted(set(steps))
        assert all(0 <= a <= b < found["steps"] for a, b in found["agents"].values())
        assert len(found["agents"]) == 8 + 5
    assert derive("8.9", trace)["steps"] == len(trace)
