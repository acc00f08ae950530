"""CUTLASS's FP8 kernels with CTA pairs: 70 with a fused epilogue, 81 with scales."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fp4ref.cutlass.execute import execute_example
from fp4ref.cutlass.toolchain import Toolchain

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance"))
import trees

SCHEDULES = ("eager", "late", 5)


@pytest.mark.soak
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_70_fp8_passes_its_own_check(tools: Toolchain, schedule: str | int):
    """D, the stored sums before ReLU, and the largest value of each are compared.

    Our tree of the same meaning has these bits too, and one of another has not.
    """
    shape = 256, 256, 128
    found = execute_example("70-fp8", *shape, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems
    assert [launch.cluster for launch in found.result.launches] == [(2, 2, 1)]
    assert not any(trees.differing_70(found, shape).values())
    wrong = trees.differing_70(found, shape, trees.PLAIN | {"scale_aux": 0.5})
    assert wrong["aux"] > 0 == wrong["D"] == wrong["largest aux"]


@pytest.mark.soak
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_81_groupwise_passes_its_own_check(tools: Toolchain, schedule: str | int):
    found = execute_example(
        "81-groupwise", 256, 144, 272, schedule=schedule, trace=False
    )
    assert found.result.passed, found.result.problems
    assert [launch.cluster for launch in found.result.launches] == [(2, 1, 1)]


@pytest.mark.rotating(1, among="the examples that take longest to compile")
def test_81_groupwise_reads_scales_of_rows_that_it_does_not_copy(tools: Toolchain):
    """Of its 256 rows 144 exist: no thread copies the others' scales."""
    found = execute_example("81-groupwise", 144, 128, 128, trace=False)
    assert not found.result.passed
    assert found.result.problems[0].startswith("UninitialisedRead")


@pytest.mark.rotating(1, among="the examples that take longest to compile")
@pytest.mark.parametrize(
    "check",
    [test_70_fp8_passes_its_own_check, test_81_groupwise_passes_its_own_check],
    ids=["70-fp8", "81-groupwise"],
)
def test_one_schedule_a_day(tools: Toolchain, check, rotating_seed: int):
    """One check and schedule a day; all are in the long run and in conformance."""
    check(tools, SCHEDULES[rotating_seed % len(SCHEDULES)])
