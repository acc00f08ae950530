"""72a: clusters of eight CTAs, four pairs, from CUTLASS's own text."""

from __future__ import annotations

from collections import Counter

import pytest

from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.cutlass.toolchain import Toolchain
from fp4ref.errors import InputError

STAGE_NBYTES = 77_824
"""Of both CTAs: A and B 32,768 each, SFA 4,096, and SFB 4,096 for each of the two."""


@pytest.fixture(scope="module")
def traced(tools: Toolchain) -> CutlassRun:
    """Two clusters of work on eight SMs: the second one comes by CLC."""
    found = execute_example("72a", 512, 1024, 512)
    assert found.result.passed, found.result.problems
    return found


@pytest.mark.parametrize("schedule", ["late", 7])
def test_72a_passes_its_own_check(tools: Toolchain, schedule: str | int):
    found = execute_example("72a", 256, 1024, 256, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems


def events(run: CutlassRun, operation: str):
    assert run.trace is not None
    return [e for e in run.trace.events if e.operation == operation]


def test_leaders_alone_expect_the_bytes_of_a_stage(traced: CutlassRun):
    expecting = [
        e
        for e in events(traced, "mbarrier.arrive.expect_tx")
        if e.operands["tx_bytes"] == STAGE_NBYTES
    ]
    # Four pairs, two tiles of two k-tiles each; ranks run along x first.
    assert Counter(e.cta for e in expecting) == {(0, y, 0): 4 for y in range(4)}
    assert len({b.address for e in expecting for b in e.barrier}) == 3


def test_boxes_land_where_they_are_used(traced: CutlassRun):
    """A in the four CTAs of its row of the cluster, B in one."""
    loads = [e for e in traced.trace.events if e.operation.endswith(".load")]
    issues = {e.step: e for e in loads if e.kind == "issue"}
    landings = Counter(e.issued for e in loads if e.kind == "land")
    spread = Counter(
        (tuple(issues[step].operands["box"]), count) for step, count in landings.items()
    )
    # 8 CTAs, 2 tiles, 2 k-tiles: A by quarters, B whole, SFA by one of 4, SFB by 2.
    assert spread == {
        ((256, 32, 1), 4): 32,
        ((256, 128, 1), 1): 32,
        ((256, 1, 1, 1), 4): 32,
        ((256, 2, 2, 1), 2): 32,
    }


def test_every_byte_of_a_pair_is_counted_by_its_leader(traced: CutlassRun):
    landed = [
        e
        for e in traced.trace.events
        if e.operation.endswith(".load") and e.kind == "land"
    ]
    receivers = {b.space for e in landed for b in e.barrier}
    assert receivers == {f"smem{rank}" for rank in (0, 2, 4, 6)}
    tiles = {w.space for e in landed for w in e.writes if w.nbytes > 8}
    assert tiles == {f"smem{rank}" for rank in range(8)}


def test_one_request_answers_eight_ctas(traced: CutlassRun):
    requests = events(traced, "clusterlaunchcontrol.try_cancel")
    assert Counter(e.kind for e in requests) == {"issue": 2, "land": 16}
    spaces = Counter(b.space for e in requests for b in e.barrier)
    assert spaces == {f"smem{sm}": 2 for sm in range(8)}
    machine = traced.result.machine
    assert machine.stats["clc.canceled"] == 1
    assert machine.stats["cta"] == 8


def test_a_machine_smaller_than_the_cluster_is_refused(tools: Toolchain):
    with pytest.raises(InputError, match="72a on 4 SMs; its clusters need 8"):
        execute_example("72a", 256, 1024, 256, sms=4, trace=False)
