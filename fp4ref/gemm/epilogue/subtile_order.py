"""Part 7. subtile_order: which subtile of an accumulator is finished when.

Overlapped accumulators share the last columns of the first and the first columns of
the second. These are finished first, so that the MMA warp can go on with the other one:
in the first accumulator subtiles run backwards.
"""

from __future__ import annotations

from fp4ref.gemm.plan import Plan


def subtile_order(plan: Plan, accumulator: int) -> range:
    """Return the subtiles of an accumulator of this number, in their order."""
    forward = range(plan.subtiles)
    return forward[::-1] if plan.overlapped and accumulator == 0 else forward
