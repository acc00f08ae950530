"""ptx: compiled code. Parse PTX and run it, instruction by instruction, on `hardware`.

It knows nothing of `gemm`: any kernel that uses modelled instructions can run.

- `text`: `syntax`, `tokens`, `statements`, `parser`; `program` adds control flow.
- `run`: `state` (a warp's registers), `taint` (which of their bytes are defined),
  `operands`, `special_registers`, `spaces` (memory), `observed` (which lane touches
  what), `loader` (addresses), `registry` (which function translates which
  instruction).
- `instructions`: each group of them in a file of its own.
- `executor`: the warps of a compiled kernel on the machine.
"""

from fp4ref.ptx.executor import launch
from fp4ref.ptx.instructions.control import KernelTrap
from fp4ref.ptx.run.state import IssueFault, PartialWarp, UndefinedRegister
from fp4ref.ptx.text.parser import parse
from fp4ref.ptx.text.program import Program
from fp4ref.ptx.text.syntax import PtxError

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
