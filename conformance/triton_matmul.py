"""triton_matmul: Triton kernels around ``tl.dot``, by plain loads and by TMA."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    d_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """D = A B^T, K contiguous in both, tiles that may end outside."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_at = a_ptr + (rows % M)[:, None] * K + steps[None, :]
    b_at = b_ptr + (columns % N)[:, None] * K + steps[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = k + steps[None, :] < K
        a = tl.load(a_at, mask=inside, other=0.0)
        b = tl.load(b_at, mask=inside, other=0.0)
        acc = tl.dot(a, b.T, acc, input_precision=PRECISION)
        a_at += BLOCK_K
        b_at += BLOCK_K
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    d = acc.to(d_ptr.dtype.element_ty)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], d, mask=inside)


@triton.jit
def matmul_n_major(
    a_ptr,
    b_ptr,
    bias_ptr,
    d_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D = max(A B + bias, 0), N contiguous in B; whole tiles."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + steps)[None, :])
        b = tl.load(b_ptr + (k + steps)[:, None] * N + columns[None, :])
        acc = tl.dot(a, b, acc)
    acc = tl.maximum(acc + tl.load(bias_ptr + columns)[None, :], 0.0)
    d = acc.to(d_ptr.dtype.element_ty)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], d)


@triton.jit
def split_k(
    a_ptr,
    b_ptr,
    d_ptr,
    M,
    N,
    K,
    PARTS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D += A B^T of one part of K in each program, by atomics."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K * PARTS):
        a = tl.load(a_ptr + rows[:, None] * K + (k + steps)[None, :])
        b = tl.load(b_ptr + columns[:, None] * K + (k + steps)[None, :])
        acc = tl.dot(a, b.T, acc)
    tl.atomic_add(d_ptr + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def batched(
    a_ptr,
    b_ptr,
    d_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D[l] = A[l] B[l]^T, one tile of M in each batch."""
    batch = tl.program_id(1)
    rows = batch * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + steps)[None, :])
        b = tl.load(b_ptr + (batch * N + columns)[:, None] * K + (k + steps)[None, :])
        acc = tl.dot(a, b.T, acc)
    d = acc.to(d_ptr.dtype.element_ty)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], d)


@triton.jit
def grouped(
    pointers_ptr,
    sizes_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D[g] = A[g] B[g]^T with addresses and rows of M from memory."""
    group = tl.program_id(1)
    a_ptr = tl.load(pointers_ptr + 3 * group).to(tl.pointer_type(tl.float16))
    b_ptr = tl.load(pointers_ptr + 3 * group + 1).to(tl.pointer_type(tl.float16))
    d_ptr = tl.load(pointers_ptr + 3 * group + 2).to(tl.pointer_type(tl.float16))
    M = tl.load(sizes_ptr + group)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    for first in range(0, M, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a_at = a_ptr + rows[:, None] * K + (k + steps)[None, :]
            a = tl.load(a_at, mask=rows[:, None] < M, other=0.0)
            b = tl.load(b_ptr + columns[:, None] * K + (k + steps)[None, :])
            acc = tl.dot(a, b.T, acc)
        d_at = d_ptr + rows[:, None] * N + columns[None, :]
        tl.store(d_at, acc.to(tl.float16), mask=rows[:, None] < M)


@triton.jit
def host_tma(
    a_desc,
    b_desc,
    d_desc,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D = A B^T by tensor maps that the host made."""
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([m, k])
        b = b_desc.load([n, k])
        acc = tl.dot(a, b.T, acc)
    d_desc.store([m, n], acc.to(d_desc.dtype))


@triton.jit
def host_tma_persistent(
    a_desc,
    b_desc,
    d_desc,
    M,
    N,
    K,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLATTEN: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    """The same by programs that take one tile after the other."""
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    for tile in tl.range(
        tl.program_id(0),
        tiles,
        PROGRAMS,
        flatten=FLATTEN,
        warp_specialize=SPECIALIZE,
    ):
        m = tile // columns * BLOCK_M
        n = tile % columns * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([m, k])
            b = b_desc.load([n, k])
            acc = tl.dot(a, b.T, acc)
        d_desc.store([m, n], acc.to(d_desc.dtype))


@triton.jit
def device_tma(
    a_ptr,
    b_ptr,
    d_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """D = A B^T by tensor maps that each program makes."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    d_desc = tl.make_tensor_descriptor(d_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([m, k])
        b = b_desc.load([n, k])
        acc = tl.dot(a, b.T, acc)
    d_desc.store([m, n], acc.to(d_ptr.dtype.element_ty))
