"""cuda_kernel: the CUDA kernel of ``kernel/``, from its text to a launch.

`plan_header` writes the plan of a configuration as CUDA constants, `sources` puts the
text together; `build` makes PTX of it or takes the packaged one; `parameters` lays out
what a launch passes; `on_sm` runs the PTX on the emulated machine; `sass` counts
instructions.
"""

from fp4ref.cuda_kernel.build import KernelCode, kernel_code, packaged_configs
from fp4ref.cuda_kernel.on_sm import launch_ptx
from fp4ref.cuda_kernel.parameters import parameter_block
from fp4ref.cuda_kernel.plan_header import plan_header
from fp4ref.cuda_kernel.sources import ENTRY, one_file

__all__ = [
    "ENTRY",
    "KernelCode",
    "kernel_code",
    "launch_ptx",
    "one_file",
    "packaged_configs",
    "parameter_block",
    "plan_header",
]
