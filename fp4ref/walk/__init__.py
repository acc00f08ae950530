"""walk: the main job. Real tensors, quantised, through the kernel, every bit checked.

`inputs` has the matrices, `numbers` the run, `outcome` and `counts` what it gave, and
`report` and `picture` draw it.
"""

from fp4ref.walk.checkpoint_input import checkpoint_problem, read_activations
from fp4ref.walk.inputs import NonFinite, Problem, load_problem, random_problem
from fp4ref.walk.numbers import (
    DEFAULT_SCHEDULE,
    Walk,
    make_config,
    walk,
)
from fp4ref.walk.outcome import KernelReport, WalkReport

__all__ = [
    "DEFAULT_SCHEDULE",
    "KernelReport",
    "NonFinite",
    "Problem",
    "Walk",
    "WalkReport",
    "checkpoint_problem",
    "load_problem",
    "make_config",
    "random_problem",
    "read_activations",
    "walk",
]
