"""fp4ref: how a Blackwell NVFP4 block-scaled GEMM works, frame by frame and bit by bit.

::

    import fp4ref
    qa, qb = fp4ref.quantize(x), fp4ref.quantize(w)
    run = fp4ref.run(qa, qb)            # the kernel, on the emulated SM
    run.d == fp4ref.oracle.expected(qa, qb).d   # every bit, by another road

Importing the package imports no CUDA and compiles nothing.
"""

from fp4ref.device.diagnosis import doctor
from fp4ref.evidence import oracle
from fp4ref.evidence.check import check
from fp4ref.evidence.comparison import Comparison, compare
from fp4ref.evidence.protocol import certify, explore
from fp4ref.evidence.triage import triage
from fp4ref.execution.runs import Run, run
from fp4ref.gemm.choose import choose
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import Plan, plan
from fp4ref.numerics import ScaleFormat
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.product import matmul
from fp4ref.tensors.quantize import quantize
from fp4ref.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "BlockScaled",
    "Comparison",
    "GemmConfig",
    "Plan",
    "Run",
    "ScaleFormat",
    "Trace",
    "certify",
    "check",
    "choose",
    "compare",
    "doctor",
    "explore",
    "matmul",
    "oracle",
    "plan",
    "quantize",
    "run",
    "triage",
]
