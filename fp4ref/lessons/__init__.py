"""lessons: what the notebooks show, and the exercises that grade themselves.

A notebook imports this and the package, and defines nothing of the model::

    lessons.start("03_tma_and_swizzle")
    lessons.beside("fp4ref.gemm.mma_warp:multiply_k_tile")
    lessons.check("03.1", answer)
"""

from fp4ref.lessons.errata import ask
from fp4ref.lessons.first_cell import start
from fp4ref.lessons.riddle_run import riddle
from fp4ref.lessons.show import beside, cuda, frame, source
from fp4ref.lessons.verdict import check, hint

__all__ = [
    "ask",
    "beside",
    "check",
    "cuda",
    "frame",
    "hint",
    "riddle",
    "source",
    "start",
]
