"""device: the GPU. Compile CUDA with NVRTC, encode tensor maps, launch.

Only this package imports cuda-python, and only inside functions: importing it, or
fp4ref, touches neither a compiler nor a driver.
"""

from fp4ref.device.compile import Compiled, CompileError, arch_of, compile_cuda
from fp4ref.device.driver import DeviceError, Gpu, find_gpu
from fp4ref.device.launch import Call, MapOf, Pointer, run

__all__ = [
    "Call",
    "CompileError",
    "Compiled",
    "DeviceError",
    "Gpu",
    "MapOf",
    "Pointer",
    "arch_of",
    "compile_cuda",
    "find_gpu",
    "run",
]
