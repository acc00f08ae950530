"""cuda_kernel: the CUDA kernel of ``kernel/``, from its text to a launch.

`choices` writes the headers of a configuration from its plan, `sources` puts the
text together; `build` makes PTX of it or takes the packaged one; `parameters` lays out
what a launch passes; `on_sm` runs the PTX on the emulated machine; `sass` counts
instructions.
"""

from fp4ref.cuda_kernel.build import KernelCode, kernel_code, packaged_configs
from fp4ref.cuda_kernel.choices import headers, one_file
from fp4ref.cuda_kernel.on_sm import launch_ptx
from fp4ref.cuda_kernel.parameters import parameter_block
from fp4ref.cuda_kernel.sources import ENTRY

__all__ = [
    "ENTRY",
    "KernelCode",
    "headers",
    "kernel_code",
    "launch_ptx",
    "one_file",
    "packaged_configs",
    "parameter_block",
]
