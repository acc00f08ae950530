"""What an H200's barriers, copies and the kernel without MMAs took, as recorded."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from probes.timing import latency, skeleton
from probes.timing.record import RECORD

RECORDED = json.loads(RECORD.read_text())
CYCLES = RECORDED["cycles"]
CALLS = RECORDED["skeleton"]
NAMES = [name for name, _ in latency.measurements()]


def test_every_measurement_is_recorded_with_its_card() -> None:
    assert list(CYCLES) == NAMES
    assert all(set(call) == {*skeleton.CASES, "copy"} for call in CALLS)
    assert len(CALLS) >= 5
    assert {"card", "driver", "date", "compiler", "sms", "clock_mhz"} <= set(RECORDED)
    assert "H200" in RECORDED["card"]


@pytest.mark.parametrize("name", NAMES)
def test_a_spread_is_in_order(name: str) -> None:
    values = list(CYCLES[name].values())
    assert all(a <= b for a, b in pairwise(values))
    assert values[0] > 0


def test_what_is_farther_takes_longer() -> None:
    median = {name: each["median"] for name, each in CYCLES.items()}
    assert median[latency.OWN] < median[f"{latency.OWN}, scope of the cluster"]
    there = [latency.THERE.format(each) for each in ("warp", "CTA")]
    assert median[there[0]] < median[f"{there[0]}, scope of the cluster"]
    assert median[there[0]] < median[there[1]]
    assert median["ld.shared"] < median["ld.shared::cluster of another CTA"]
    for rows in latency.ROWS:
        what = f"TMA load, {128 * rows} bytes, "
        assert median[what + "near"] < median[what + "far"]


def test_the_kernel_without_mmas_is_below_the_memorys_rate() -> None:
    for call in CALLS:
        copy = call["copy"]["tb_per_s"]
        assert copy > 3
        assert all(call[name]["tb_per_s"] < 1.2 * copy for name in skeleton.CASES)


def test_the_skeleton_changes_lines_that_are_there() -> None:
    assert len(skeleton.changed()) == 1
