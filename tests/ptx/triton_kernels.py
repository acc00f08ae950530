"""triton_kernels: `tl.dot_scaled` kernels, compiled for sm_100a on any CPU."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

# Unset, Triton 3.9 warns that the default will change.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def scaled_gemm(
    a_ptr,
    b_ptr,
    d_ptr,
    sfa_ptr,
    sfb_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SF_VEC_SIZE: tl.constexpr,
):
    """D = A B.T on packed E2M1, rows of K / 2 bytes and K / SF_VEC_SIZE scales."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k_bytes = tl.arange(0, BLOCK_K // 2)
    k_scales = tl.arange(0, BLOCK_K // SF_VEC_SIZE)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = (k // 2 + k_bytes)[None, :]
        a = tl.load(a_ptr + rows[:, None] * (K // 2) + at)
        b = tl.load(b_ptr + columns[:, None] * (K // 2) + at)
        at = (k // SF_VEC_SIZE + k_scales)[None, :]
        sfa = tl.load(sfa_ptr + rows[:, None] * (K // SF_VEC_SIZE) + at)
        sfb = tl.load(sfb_ptr + columns[:, None] * (K // SF_VEC_SIZE) + at)
        acc = tl.dot_scaled(a, sfa, "e2m1", b.T, sfb, "e2m1", acc)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], acc)


class Compiled(NamedTuple):
    """PTX, and what its launch needs."""

    ptx: str
    threads: int
    smem_nbytes: int


@cache
def compile_scaled_gemm(
    scale_type: str, vec_size: int, block: tuple[int, int, int]
) -> Compiled:
    """Compile for one tile shape; `scale_type` is Triton's name of a pointer."""
    pointers = {"a_ptr": "*u8", "b_ptr": "*u8", "d_ptr": "*fp32"}
    scales = {"sfa_ptr": scale_type, "sfb_ptr": scale_type}
    constants = dict(
        zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block, strict=True), SF_VEC_SIZE=vec_size
    )
    signature = {
        **pointers,
        **scales,
        **dict.fromkeys("MNK", "i32"),
        **dict.fromkeys(constants, "constexpr"),
    }
    source = ASTSource(scaled_gemm, signature, constexprs=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 100, 32))
    metadata = compiled.metadata
    return Compiled(compiled.asm["ptx"], 32 * metadata.num_warps, metadata.shared)
