"""walk: the main job. Real tensors, quantised, through the kernel, every bit checked.

`inputs` has the matrices, `numbers` the run, `beside` the compiled kernel,
`outcome` and `counts` what they gave, and `report` and `picture` draw it.
"""

from fp4ref.walk.beside import Beside
from fp4ref.walk.checkpoint_input import checkpoint_problem
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
    "Beside",
    "KernelReport",
    "NonFinite",
    "Problem",
    "Walk",
    "WalkReport",
    "checkpoint_problem",
    "load_problem",
    "make_config",
    "random_problem",
    "walk",
]
