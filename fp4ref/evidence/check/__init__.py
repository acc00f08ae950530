"""check: somebody's kernel, run on the machine under several schedules.

- `kernel_text`: the PTX, from a file or from what a compiler returns;
- `launch`: what it is launched with; `launch_file` reads one, `launch_template` writes
  one from the entry, `launch_made` makes one from arrays and from compiled kernels;
- `one_run`: one schedule and one ordering; `budget` ends what has no end;
- `finding`, `evidence_row`, `nearest`: what was found, and in which words;
- `buffer_contents`: the buffers, beside what they should hold and beside each other;
- `result`: the `Check`; `check`: all of it.
"""

from fp4ref.evidence.check.check import ORDERINGS, SCHEDULES, check
from fp4ref.evidence.check.launch import Launch, MapOf, Struct
from fp4ref.evidence.check.launch_file import read_launch
from fp4ref.evidence.check.launch_made import (
    launch_arrays,
    launch_cute_dsl,
    launch_triton,
    tensor_map,
)
from fp4ref.evidence.check.launch_template import launch_template
from fp4ref.evidence.check.result import EXIT_STATUS, Check

__all__ = [
    "EXIT_STATUS",
    "ORDERINGS",
    "SCHEDULES",
    "Check",
    "Launch",
    "MapOf",
    "Struct",
    "check",
    "launch_arrays",
    "launch_cute_dsl",
    "launch_template",
    "launch_triton",
    "read_launch",
    "tensor_map",
]
