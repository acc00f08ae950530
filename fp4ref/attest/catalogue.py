"""catalogue: the question of each rung, by name.

`fp4ref.evidence.attested` has what each proves, in the order of the ladder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from fp4ref.attest import gemm_rungs, mma_rungs, seeded_rungs, unit_rungs, value_rungs
from fp4ref.attest.question import Question

QUESTIONS: Mapping[str, Callable[[], Question]] = {
    "alloc": unit_rungs.alloc,
    "ld-st": unit_rungs.ld_st,
    "cp": unit_rungs.cp,
    "commit": unit_rungs.commit,
    "mma-nvfp4": mma_rungs.nvfp4,
    "mma-mxf4": mma_rungs.mxf4,
    "mma-f16": mma_rungs.f16,
    "mma-f8": mma_rungs.f8,
    "mma-narrow": mma_rungs.narrow,
    "order": unit_rungs.order,
    "clc": unit_rungs.clc,
    "convert": value_rungs.convert,
    "ue8m0": value_rungs.ue8m0,
    "approximate": value_rungs.approximate,
    "pair": unit_rungs.pair,
    "gemm": gemm_rungs.default,
    "gemm-nvfp4": gemm_rungs.nvfp4,
    "gemm-pair": gemm_rungs.pair,
    "stochastic": value_rungs.stochastic,
    "cp-shapes": unit_rungs.cp_shapes,
    "seeded-stuck": seeded_rungs.stuck,
    "seeded-fault": seeded_rungs.fault,
    "seeded-hang": seeded_rungs.hang,
}


@cache
def question(name: str) -> Question:
    """Return the question of a rung, made once."""
    return QUESTIONS[name]()
