"""fp4ref: how a Blackwell NVFP4 block-scaled GEMM works, frame by frame and bit by bit.

::

    import fp4ref
    qa, qb = fp4ref.quantize(x), fp4ref.quantize(w)
    run = fp4ref.run(qa, qb)            # the kernel, on the emulated SM
    run.d == fp4ref.oracle.expected(qa, qb).d   # every bit, by another road

Importing the package imports no CUDA and compiles nothing; each name, and each room of
the package, is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fp4ref.device.diagnosis import doctor
    from fp4ref.evidence import oracle
    from fp4ref.evidence.check.check import check
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

_HOME = {
    "BlockScaled": "tensors.block_scaled",
    "Comparison": "evidence.comparison",
    "GemmConfig": "gemm.config",
    "Plan": "gemm.plan",
    "Run": "execution.runs",
    "ScaleFormat": "numerics",
    "Trace": "trace",
    "certify": "evidence.protocol",
    "check": "evidence.check",
    "choose": "gemm.choose",
    "compare": "evidence.comparison",
    "doctor": "device.diagnosis",
    "explore": "evidence.protocol",
    "matmul": "tensors.product",
    "oracle": "evidence",
    "plan": "gemm.plan",
    "quantize": "tensors.quantize",
    "run": "execution.runs",
    "triage": "evidence.triage",
}
"""Where each name is; `oracle` is a module itself."""

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


def __getattr__(name: str) -> Any:
    """Import what is asked for: one of the names above, or a room."""
    if home := _HOME.get(name):
        module = import_module(f"fp4ref.{home}")
        if name == "oracle":
            found: Any = import_module(f"fp4ref.{home}.{name}")
        else:
            found = getattr(module, name)
        globals()[name] = found
        return found
    if not name.startswith("_") and find_spec(f"fp4ref.{name}"):
        return import_module(f"fp4ref.{name}")
    raise AttributeError(f"module 'fp4ref' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that are there, asked for or not."""
    return sorted({*globals(), *__all__})
