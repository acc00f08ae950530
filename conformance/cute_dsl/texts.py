"""Four kernels in CuTe DSL: FP16 and NVFP4 products, by one CTA and by pairs of CTAs.

    python texts.py NAME M N K FILE.ptx

compiles one of `KERNELS` for sm_100a, which needs no GPU. Warp 0 loads, warp 1 of the
leader multiplies, all four store D in float32: the accumulator's own bits.
"""

import os
import sys
from pathlib import Path

os.environ["CUTE_DSL_ARCH"] = "sm_100a"
os.environ["CUTE_DSL_KEEP_PTX"] = "1"

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_stream, make_ptr
from gemm import Gemm

KERNELS = {
    "fp16": (False, False),
    "fp16-pair": (False, True),
    "nvfp4": (True, False),
    "nvfp4-pair": (True, True),
}


def compile_kernel(name: str, m: int, n: int, k: int) -> str:
    """Return the PTX of a kernel for a product of whole tiles."""
    gemm = Gemm(*KERNELS[name])

    def pointer(kind):
        return make_ptr(kind, 0x10000, cute.AddressSpace.gmem, assumed_align=32)

    of_scales = pointer(cutlass.Float8E4M3FN)
    operand = pointer(gemm.kind)
    compiled = cute.compile(
        gemm,
        operand,
        operand,
        of_scales,
        of_scales,
        pointer(cutlass.Float32),
        (m, n, k),
        make_fake_stream(),
    )
    return compiled.__ptx__


if __name__ == "__main__":
    name, *size, path = sys.argv[1:]
    Path(path).write_text(compile_kernel(name, *map(int, size)))
