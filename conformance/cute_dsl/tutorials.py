"""Compile a CuTe DSL tutorial of a CUTLASS checkout for sm_100a, without a GPU.

    CUTLASS_CHECKOUT=FOLDER python tutorials.py NAME M N K FILE.ptx

The tutorials import torch to fill and to check tensors. Nothing of that runs here: a
module that has every name stands in for it where it is missing.
"""

import importlib
import os
import sys
import types
from pathlib import Path

os.environ["CUTE_DSL_ARCH"] = "sm_100a"
os.environ["CUTE_DSL_KEEP_PTX"] = "1"

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream, make_ptr


class Anything:
    """Has every attribute, and can be called."""

    def __getattr__(self, name):
        return Anything()

    def __call__(self, *arguments, **more):
        """Return another one."""
        return Anything()


def stand_in(name):
    """Put a module with every name in place of one that is not there."""
    module = types.ModuleType(name)
    module.__getattr__ = lambda attribute: Anything()
    sys.modules[name] = module
    return module


def compile_tutorial(name: str, m: int, n: int, k: int) -> str:
    """Return the PTX of a tutorial for one product."""
    checkout = Path(os.environ["CUTLASS_CHECKOUT"]) / "examples/python/CuTeDSL"
    sys.path.insert(0, str(checkout))
    for missing in ("torch", "cutlass.torch"):
        stand_in(missing)
    cutlass.torch = sys.modules["cutlass.torch"]
    stand_in("cute.blackwell.tutorial.tutorial_gemm.utils")
    module = importlib.import_module(f"cute.blackwell.tutorial.tutorial_gemm.{name}")
    if name.startswith("fp16"):
        tensors = [
            make_fake_compact_tensor(
                cutlass.Float16, shape, stride_order=(1, 0), assumed_align=32
            )
            for shape in ((cute.sym_int(), k), (cute.sym_int(), k), (cute.sym_int(), n))
        ]
        return cute.compile(module.host_function, *tensors).__ptx__

    def pointer(kind):
        return make_ptr(kind, 0x10000, cute.AddressSpace.gmem, assumed_align=32)

    operand, scales = pointer(module.ab_dtype), pointer(module.sf_dtype)
    compiled = cute.compile(
        module.Sm100BlockScaledDenseGemmKernel(),
        operand,
        operand,
        scales,
        scales,
        pointer(module.c_dtype),
        (m, n, k, 1),
        make_fake_stream(),
    )
    return compiled.__ptx__


if __name__ == "__main__":
    name, *size, path = sys.argv[1:]
    Path(path).write_text(compile_tutorial(name, *map(int, size)))
