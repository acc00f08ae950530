"""The soft conversions, their own PTX on the executor, against powers of two."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from fp4ref.cuda_kernel.sources import expand
from fp4ref.device.compile import CompileError, compile_cuda
from fp4ref.device.launch import Call, Pointer

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from probes.probe import Case, blank, run_on_ptx  # noqa: E402

MAIN = "probes/both_signs.cu"
KERNEL = """
#include "../kernel/hardware/cvt.cuh"
extern "C" __global__ void both_signs(const float* in, u32* out) {
    const u32 i = threadIdx.x;
    out[i] = cvt_ue8m0x2(in[2 * i], in[2 * i + 1]);
}
"""
SIZES = np.array(
    [0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000]
    + [0x3F800001, 0x40400000, 0x7F000000, 0x7F000001, 0x7F7FFFFF, 0x7F800000]
    + [0x7FC00000],
    np.uint32,
)
"""Floats without sign: subnormals, powers of two and their neighbours, Inf, NaN."""


def power_at_or_above(x: float) -> int:
    """UE8M0 of a float's size, rounded up; ``cuda_fp8.hpp`` clears the sign first."""
    if math.isnan(x):
        return 0xFF
    if math.isinf(x):
        return 0xFE
    mantissa, exponent = math.frexp(abs(x))
    return min(max(exponent - (mantissa == 0.5) + 127, 0), 0xFE) if x else 0


def test_a_negative_float_has_the_scale_of_its_size() -> None:
    bits = np.concatenate([SIZES, SIZES | np.uint32(0x80000000)])
    try:
        source = expand({MAIN: KERNEL}, ROOT, soft=True, main=MAIN)
        ptx = compile_cuda(source, "sm_90a", name=MAIN).ptx
    except CompileError as error:
        pytest.skip(str(error))
    threads = bits.size // 2
    call = Call(
        "both_signs",
        {"in": bits.view(np.uint8), "out": blank(4 * threads)},
        (Pointer("in"), Pointer("out")),
        block=(threads, 1, 1),
    )
    out = run_on_ptx(ptx, Case("both_signs", call, ("out",)))["out"]
    codes = out.view(np.uint8).reshape(-1, 4)[:, :2].reshape(-1)
    assert codes.tolist() == [power_at_or_above(x) for x in bits.view(np.float32)]
