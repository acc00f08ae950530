"""ptx: compiled code. Parse PTX and run it, instruction by instruction, on `hardware`.

It knows nothing of `gemm`: any kernel that uses modelled instructions can run.

- Text: `syntax`, `tokens`, `statements`, `parser`; `program` adds control flow.
- Running: `state` (a warp's registers), `taint` (which of their bytes are defined),
  `operands`, `special_registers`, `spaces` (memory), `loader` (addresses), `registry`
  (which function translates which instruction), `executor`.
- Instructions: `integer`, `floating`, `approximate`, `conversion`, `moves`, `memory`,
  `atomics`, `matrices`, `lanes`, `control`; hardware units: `mbarriers` (with
  `spin_loops`), `barriers`, `tma`, `cp_async`, `tcgen05`, `mma_unscaled`, `clc`.
"""

from fp4ref.ptx.control import KernelTrap
from fp4ref.ptx.executor import launch
from fp4ref.ptx.parser import parse
from fp4ref.ptx.program import Program
from fp4ref.ptx.state import IssueFault, PartialWarp, UndefinedRegister
from fp4ref.ptx.syntax import PtxError

__all__ = [
    "IssueFault",
    "KernelTrap",
    "PartialWarp",
    "Program",
    "PtxError",
    "UndefinedRegister",
    "launch",
    "parse",
]
