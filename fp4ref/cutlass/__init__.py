"""cutlass: other people's programs, unmodified, with the emulated machine as their GPU.

Reading order: `toolchain` builds a program and its PTX from installed packages and
keeps them in `cache`, `entries` reads the kernels' parameters, `cudart` answers the
CUDA calls that the library of ``stand_in`` hands on, `process` runs the program,
`example_table` knows the programs and their verdicts, `examples` builds and runs one,
and `execute` runs one with its kernels' PTX.
"""

from fp4ref.cutlass.cudart import Copy as Copy
from fp4ref.cutlass.cudart import Launch as Launch
from fp4ref.cutlass.example_table import EXAMPLES as EXAMPLES
from fp4ref.cutlass.examples import ExampleResult as ExampleResult
from fp4ref.cutlass.examples import build_example as build_example
from fp4ref.cutlass.examples import run_example as run_example
