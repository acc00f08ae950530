"""Part 6. accumulator_stage: which accumulator a stage of the ring stands for.

CUTLASS's ``acc_stage``. Overlapped accumulators have one pair of barriers, and take
turns with its phase: a consumer's phase is the number, a producer's the opposite,
because it starts with the other one.
"""

from __future__ import annotations

from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.plan import Plan


def produced_accumulator(plan: Plan, stage: Stage) -> int:
    """Return the number of the accumulator that the MMA warp fills."""
    return stage.phase ^ 1 if plan.overlapped else stage.index


def consumed_accumulator(plan: Plan, stage: Stage) -> int:
    """Return the number of the accumulator that the epilogue reads."""
    return stage.phase if plan.overlapped else stage.index
