"""triton_attention: one head of attention with a running softmax, in Triton."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Store softmax(q k^T * scale) v; `scale` carries log2(e)."""
    head = tl.program_id(1) * length
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    columns = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + (head + rows)[:, None] * D + d[None, :])
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    last = length
    if CAUSAL:
        last = (tl.program_id(0) + 1) * BLOCK_M
    for first in range(0, last, BLOCK_N):
        at = (head + first + columns)[:, None] * D + d[None, :]
        s = tl.dot(q, tl.load(k_ptr + at).T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= (first + columns)[None, :], s, -1.0e30)
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        correction = tl.exp2(largest - new)
        total = total * correction + tl.sum(p, axis=1)
        acc = acc * correction[:, None]
        acc = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_ptr + at), acc)
        largest = new
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + (head + rows)[:, None] * D + d[None, :], out)
