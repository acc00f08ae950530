"""cuda_kernels: compile a small CUDA kernel and run it on the machine."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fp4ref.device.compile import compile_cuda, nvrtc_version
from fp4ref.errors import Fp4refError
from fp4ref.hardware.machine import Machine, Races
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch, parse

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
PRELUDE = """
typedef unsigned int u32; typedef unsigned long long u64;
typedef unsigned short u16; typedef unsigned char u8;
#define SHARED(p) ((u32)__cvta_generic_to_shared(p))
__device__ __forceinline__ bool elect() {
  u32 p = 0;
  asm volatile("{.reg.pred q; elect.sync _|q, -1; @q mov.b32 %0, 1;}" : "+r"(p));
  return p;
}
__device__ __forceinline__ void init(u64& bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               "fence.mbarrier_init.release.cluster;"
               :: "r"(SHARED(&bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(u64& bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :: "r"(SHARED(&bar)) : "memory");
}
__device__ __forceinline__ void wait(u64& bar, u32 parity) {
  asm volatile("{.reg.pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               "@p bra D; bra W; D:}" :: "r"(SHARED(&bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void alloc(u32& slot, u32 columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
               :: "r"(SHARED(&slot)), "r"(columns) : "memory");
}
__device__ __forceinline__ void dealloc(u32 taddr, u32 columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
               :: "r"(taddr), "r"(columns));
}
#define WAIT_LD asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define WAIT_ST asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define LD1(v, taddr) \\
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" \\
               : "=r"(v) : "r"(taddr) : "memory")
#define ST1(taddr, v) \\
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" \\
               :: "r"(taddr), "r"(v) : "memory")
"""

Argument = int | bytes | NDArray[Any] | Callable[[Machine], bytes]


@cache
def ptx_of(source: str) -> str:
    """PTX of a kernel called `k`, with the prelude."""
    headers = "#include" in source
    return compile_cuda(PRELUDE + source, "sm_100a", cuda_headers=headers).ptx


def run(
    source: str,
    *arguments: Argument,
    out_nbytes: int = 512,
    block: int = 32,
    smem_nbytes: int = 0,
    schedule: str | int = "eager",
    ordering: Ordering = "ptx",
    races: Races = "off",
) -> tuple[NDArray[np.uint8], Machine]:
    """Run ``k(out, *arguments)``; return the bytes of `out`, and the machine.

    Arrays are put into global memory; an int is a ``u32``.
    """
    program = Program.of(parse(ptx_of(source)))
    on = Machine(2, make_schedule(schedule), ordering, races=races)
    out = on.gmem.allocate("out", out_nbytes)
    params = bytearray(program.param_nbytes)
    values: list[Any] = [struct.pack("<Q", out)]
    for i, argument in enumerate(arguments):
        if callable(argument):
            values.append(argument(on))
        elif isinstance(argument, np.ndarray):
            values.append(struct.pack("<Q", on.gmem.upload(f"in{i}", argument)))
        elif isinstance(argument, int):
            values.append(struct.pack("<I", argument))
        else:
            values.append(argument)
    for at, value in zip(program.param_offsets.values(), values, strict=True):
        params[at : at + len(value)] = value
    launch(
        on,
        program,
        (1, 1, 1),
        (block, 1, 1),
        bytes(params),
        smem_nbytes=smem_nbytes,
    )
    return on.gmem.contents(out, out_nbytes), on


def fault(source: str, *arguments: Argument, **options: Any) -> Fp4refError | None:
    """The error of a run; None if it ran."""
    try:
        run(source, *arguments, **options)
    except Fp4refError as error:
        return error
    return None
