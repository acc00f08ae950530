"""75: a grouped GEMM whose kernels change their tensor maps, from CUTLASS's text."""

from __future__ import annotations

from collections import Counter

import pytest

from fp4ref.cutlass.execute import execute_example
from fp4ref.cutlass.toolchain import Toolchain

CASES = [((128, 256, 256), "eager"), ((160, 320, 288), "late"), ((160, 320, 288), 3)]


@pytest.mark.soak
@pytest.mark.parametrize(("shape", "schedule"), CASES)
def test_both_kernels_pass_their_own_check(tools: Toolchain, shape, schedule):
    """One CTA with N=256, whose accumulators overlap, then a pair with 256 x 256."""
    found = execute_example("75", *shape, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems
    assert [launch.cluster for launch in found.result.launches] == [(2, 1, 1)] * 2


@pytest.mark.rotating(1, among="the examples that take longest to compile")
def test_a_traced_run_has_no_race_and_each_copy_of_a_map_is_acquired(tools: Toolchain):
    found = execute_example("75", 160, 320, 288)
    assert found.result.passed, found.result.problems
    count = Counter(event.operation for event in found.trace.events)
    assert found.result.launches[-1].grid == (2, 2, 1)
    # Four CTAs take two groups each: maps of A, B, SFA, SFB, C and D.
    changes = 4 * 2 * 6
    assert count["tensormap.cp_fenceproxy"] == changes
    assert count["tensormap.replace.tile.global_address"] == changes
    assert count["tensormap.replace.tile.global_dim"] == 5 * changes
    acquires = [
        e.operands["address"]
        for e in found.trace.events
        if e.operation == "fence.proxy.tensormap::generic.acquire"
    ]
    copies = [
        e.operands["dst"]
        for e in found.trace.events
        if e.operation == "tensormap.cp_fenceproxy"
    ]
    assert set(acquires) == set(copies)
