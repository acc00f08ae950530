"""triton_case: one of Triton's block-scaled kernels, compiled, and its arguments."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp4ref

pytest.importorskip("triton", reason="needs triton 3.9: pip install triton")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
sys.path.append(str(Path(__file__).parents[1] / "ptx"))

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_kernels import scaled_gemm

M, N, K = 128, 64, 256


@cache
def compiled() -> Any:
    """What `triton.compile` returns."""
    pointers = {"a_ptr": "*u8", "b_ptr": "*u8", "d_ptr": "*fp32"}
    scales = {"sfa_ptr": "*fp8e4nv", "sfb_ptr": "*fp8e4nv"}
    constants = {"BLOCK_M": M, "BLOCK_N": N, "BLOCK_K": 128, "SF_VEC_SIZE": 16}
    signature = {
        **pointers,
        **scales,
        **dict.fromkeys("MNK", "i32"),
        **dict.fromkeys(constants, "constexpr"),
    }
    source = ASTSource(scaled_gemm, signature, constexprs=constants)
    return triton.compile(source, target=GPUTarget("cuda", 100, 32))


@cache
def arguments() -> tuple[list[Any], np.ndarray]:
    """Arguments of the signature, and D."""
    rng = np.random.default_rng(0)
    a, b = (fp4ref.quantize(rng.standard_normal((n, K), np.float32)) for n in (M, N))
    want = fp4ref.numerics.matmul_block_scaled(
        a.codes, b.codes, a.scales, b.scales,
        scale_format=fp4ref.ScaleFormat.UE4M3, vec_size=16,
    )  # fmt: skip
    d = np.zeros((M, N), np.float32)
    return [a.packed(), b.packed(), d, a.scales, b.scales, M, N, K], want
