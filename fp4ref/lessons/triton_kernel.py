"""triton_kernel: the kernel of lesson 22, in Triton. Importing it needs Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scaled_gemm(
    a_ptr,
    sfa_ptr,
    b_ptr,
    sfb_ptr,
    d_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D = A B.T of NVFP4: rows of K / 2 bytes, and of K / 16 scales."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_bytes = tl.arange(0, BLOCK_K // 2)
    in_blocks = tl.arange(0, BLOCK_K // 16)
    d = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k // 2 + in_bytes[None, :]
        a = tl.load(a_ptr + m * (K // 2) + at)
        b = tl.load(b_ptr + n[:, None] * (K // 2) + at)
        at = k // 16 + in_blocks[None, :]
        sfa = tl.load(sfa_ptr + m * (K // 16) + at)
        sfb = tl.load(sfb_ptr + n[:, None] * (K // 16) + at)
        d = tl.dot_scaled(a, sfa, "e2m1", b.T, sfb, "e2m1", d)
    tl.store(d_ptr + m * N + n[None, :], d)
