"""ptx: compiled code. Parse PTX and run it, instruction by instruction, on `hardware`.

`parser` reads text, `program` lays one entry out as a list of instructions with its
control flow, `registry` lists which instruction is translated by what (`alu`, `memory`,
`units`), `state` holds a warp's registers, and `executor` runs. It knows nothing of
`gemm`: any kernel that uses modelled instructions can run.
"""

from fp4ref.ptx.executor import launch
from fp4ref.ptx.parser import parse
from fp4ref.ptx.program import Program

__all__ = ["Program", "launch", "parse"]
