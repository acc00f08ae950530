"""fp4ref: how a Blackwell NVFP4 block-scaled GEMM works, frame by frame and bit by bit.

::

    import fp4ref
    qa, qb = fp4ref.quantize(x), fp4ref.quantize(w)
    run = fp4ref.run(qa, qb)            # the kernel, on the emulated SM
    run.d == fp4ref.oracle.expected(qa, qb).d   # every bit, by another road

Importing the package imports no CUDA and compiles nothing.
"""

from fp4ref import oracle
from fp4ref.block_scaled import BlockScaled, quantize
from fp4ref.compare import Comparison, compare
from fp4ref.doctor import doctor
from fp4ref.gemm.config import GemmConfig
from fp4ref.matmul import matmul
from fp4ref.numerics import ScaleFormat
from fp4ref.run import Run, run
from fp4ref.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "BlockScaled",
    "Comparison",
    "GemmConfig",
    "Run",
    "ScaleFormat",
    "Trace",
    "compare",
    "doctor",
    "matmul",
    "oracle",
    "quantize",
    "run",
]
