"""triton_scaled: Triton kernels around ``tl.dot_scaled``."""

import triton
import triton.language as tl


@triton.jit
def matmul_scaled(
    a_ptr,
    b_ptr,
    d_ptr,
    sfa_ptr,
    sfb_ptr,
    M,
    N,
    K,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
    A_PACK: tl.constexpr,
    B_PACK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SF_VEC_SIZE: tl.constexpr,
):
    """D = (A * SFA) (B * SFB)^T; PACK elements in a byte, scales in rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_steps = tl.arange(0, BLOCK_K // A_PACK)
    b_steps = tl.arange(0, BLOCK_K // B_PACK)
    blocks = tl.arange(0, BLOCK_K // SF_VEC_SIZE)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        at = (k // A_PACK + a_steps)[None, :]
        a = tl.load(a_ptr + rows[:, None] * (K // A_PACK) + at)
        at = (k // B_PACK + b_steps)[None, :]
        b = tl.load(b_ptr + columns[:, None] * (K // B_PACK) + at)
        at = (k // SF_VEC_SIZE + blocks)[None, :]
        sfa = tl.load(sfa_ptr + rows[:, None] * (K // SF_VEC_SIZE) + at)
        sfb = tl.load(sfb_ptr + columns[:, None] * (K // SF_VEC_SIZE) + at)
        acc = tl.dot_scaled(a, sfa, A_FORMAT, b.T, sfb, B_FORMAT, acc)
    d = acc.to(d_ptr.dtype.element_ty)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], d)


@triton.jit
def weights_scaled(
    a_ptr,
    b_ptr,
    d_ptr,
    sfb_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D = A (B * SFB)^T with A in bf16 and B in MXFP4, which Triton widens itself."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_steps = tl.arange(0, BLOCK_K)
    b_steps = tl.arange(0, BLOCK_K // 2)
    blocks = tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + a_steps)[None, :])
        at = (k // 2 + b_steps)[None, :]
        b = tl.load(b_ptr + columns[:, None] * (K // 2) + at)
        at = (k // 32 + blocks)[None, :]
        sfb = tl.load(sfb_ptr + columns[:, None] * (K // 32) + at)
        acc = tl.dot_scaled(a, None, "bf16", b.T, sfb, "e2m1", acc)
    d = acc.to(d_ptr.dtype.element_ty)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], d)
