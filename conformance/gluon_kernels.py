"""gluon_kernels: kernels in Gluon: layouts, memory and barriers are written out."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
    tcgen05_mma_scaled,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
)


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr):
    """Store x + y, four elements a thread."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + at, mask=at < n)
    y = gl.load(y_ptr + at, mask=at < n)
    gl.store(out_ptr + at, x + y, mask=at < n)


@gluon.jit
def transpose(x_ptr, out_ptr, rows, columns, BLOCK: gl.constexpr):
    """Store x transposed, through a swizzled tile of shared memory."""
    by_row: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 8, [1, 0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(1, by_row))
    j = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(0, by_row))
    x = gl.load(x_ptr + i[:, None] * columns + j[None, :])
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK, BLOCK], shared, x)
    turned = tile.permute((1, 0)).load(by_row)
    i = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(1, by_row))
    j = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(0, by_row))
    gl.store(out_ptr + i[:, None] * rows + j[None, :], turned)


@gluon.jit
def row_sums(x_ptr, out_ptr, columns, BLOCK: gl.constexpr, STAGES: gl.constexpr):
    """Store the sum of each of 32 rows, loaded by cp.async a stage ahead."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    i = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    at = x_ptr + i[:, None] * columns + j[None, :]
    tiles = gl.allocate_shared_memory(gl.float32, [STAGES, 32, BLOCK], shared)
    for stage in gl.static_range(STAGES - 1):
        async_copy.async_load(tiles.index(stage), at + stage * BLOCK)
        async_copy.commit_group()
    total = gl.zeros([32, BLOCK], gl.float32, layout)
    steps = columns // BLOCK
    for step in range(steps):
        ahead = step + STAGES - 1
        if ahead < steps:
            async_copy.async_load(tiles.index(ahead % STAGES), at + ahead * BLOCK)
        async_copy.commit_group()
        async_copy.wait_group(STAGES - 1)
        gl.barrier()
        total += tiles.index(step % STAGES).load(layout)
        gl.barrier()
    gl.store(out_ptr + i, gl.sum(total, axis=1))


@gluon.jit
def matmul(a_desc, b_desc, d_desc, K, STAGES: gl.constexpr):
    """D = A B^T: a ring of TMA loads, one accumulator, one commit for each stage."""
    M: gl.constexpr = a_desc.block_shape[0]
    N: gl.constexpr = b_desc.block_shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_shape[1]
    nbytes: gl.constexpr = (M + N) * BLOCK_K * 2
    m = gl.program_id(0) * M
    n = gl.program_id(1) * N
    a = gl.allocate_shared_memory(a_desc.dtype, [STAGES, M, BLOCK_K], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [STAGES, N, BLOCK_K], b_desc.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    for each in gl.static_range(STAGES):
        mbarrier.init(full.index(each), count=1)
        mbarrier.init(empty.index(each), count=1)
    fence_async_shared()
    tmem: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [M, N], tmem)
    steps = K // BLOCK_K
    for step in range(steps):
        stage = step % STAGES
        parity = step // STAGES & 1
        mbarrier.wait(empty.index(stage), parity ^ 1, pred=step >= STAGES)
        mbarrier.expect(full.index(stage), nbytes)
        k = step * BLOCK_K
        tma.async_load(a_desc, [m, k], full.index(stage), a.index(stage))
        tma.async_load(b_desc, [n, k], full.index(stage), b.index(stage))
        mbarrier.wait(full.index(stage), parity)
        tcgen05_mma(
            a.index(stage), b.index(stage).permute((1, 0)), acc, use_acc=step > 0
        )
        tcgen05_commit(empty.index(stage))
    last = steps - 1
    mbarrier.wait(empty.index(last % STAGES), last // STAGES & 1)
    layout: gl.constexpr = acc.get_reg_layout()
    d = gl.allocate_shared_memory(d_desc.dtype, [M, N], d_desc.layout)
    d.store(acc.load(layout).to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [m, n], d)
    tma.store_wait(0)


@gluon.jit
def matmul_scaled(
    a_desc,
    b_desc,
    d_ptr,
    sfa_ptr,
    sfb_ptr,
    N,
    K,
    FORMAT: gl.constexpr,
    VEC: gl.constexpr,
):
    """D = (A * SFA) (B * SFB)^T of packed E2M1, scales through registers to TMEM."""
    M: gl.constexpr = a_desc.block_shape[0]
    BLOCK_N: gl.constexpr = b_desc.block_shape[0]
    PACKED: gl.constexpr = a_desc.block_shape[1]
    BLOCK_K: gl.constexpr = 2 * PACKED
    BLOCKS: gl.constexpr = BLOCK_K // VEC
    a = gl.allocate_shared_memory(a_desc.dtype, [M, PACKED], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [BLOCK_N, PACKED], b_desc.layout)
    full = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(done, count=1)
    fence_async_shared()
    tmem: gl.constexpr = TensorMemoryLayout([M, BLOCK_N], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [M, BLOCK_N], tmem)
    of_scales: gl.constexpr = TensorMemoryScalesLayout()
    sfa = allocate_tensor_memory(sfa_ptr.dtype.element_ty, [M, BLOCKS], of_scales)
    sfb = allocate_tensor_memory(sfb_ptr.dtype.element_ty, [BLOCK_N, BLOCKS], of_scales)
    of_a: gl.constexpr = sfa.get_reg_layout()
    of_b: gl.constexpr = sfb.get_reg_layout()
    n = gl.program_id(0) * BLOCK_N
    for step in range(K // BLOCK_K):
        parity = step & 1
        mbarrier.expect(full, (M + BLOCK_N) * PACKED)
        tma.async_load(a_desc, [0, step * PACKED], full, a)
        tma.async_load(b_desc, [n, step * PACKED], full, b)
        i = gl.arange(0, M, gl.SliceLayout(1, of_a))
        k = step * BLOCKS + gl.arange(0, BLOCKS, gl.SliceLayout(0, of_a))
        sfa.store(gl.load(sfa_ptr + i[:, None] * (K // VEC) + k[None, :]))
        j = n + gl.arange(0, BLOCK_N, gl.SliceLayout(1, of_b))
        k = step * BLOCKS + gl.arange(0, BLOCKS, gl.SliceLayout(0, of_b))
        sfb.store(gl.load(sfb_ptr + j[:, None] * (K // VEC) + k[None, :]))
        mbarrier.wait(full, parity)
        tcgen05_mma_scaled(
            a, b.permute((1, 0)), acc, sfa, sfb, FORMAT, FORMAT, use_acc=step > 0
        )
        tcgen05_commit(done)
        mbarrier.wait(done, parity)
    layout: gl.constexpr = acc.get_reg_layout()
    i = gl.arange(0, M, gl.SliceLayout(1, layout))
    j = n + gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))
    gl.store(d_ptr + i[:, None] * N + j[None, :], acc.load(layout))


@gluon.jit
def _load_tiles(a_desc, b_desc, a, b, full, empty, K, STAGES: gl.constexpr):
    """Warp of the loads."""
    BLOCK_K: gl.constexpr = a_desc.block_shape[1]
    nbytes: gl.constexpr = (a_desc.block_shape[0] + b_desc.block_shape[0]) * BLOCK_K * 2
    for step in range(K // BLOCK_K):
        stage = step % STAGES
        mbarrier.wait(empty.index(stage), step // STAGES & 1 ^ 1, pred=step >= STAGES)
        mbarrier.expect(full.index(stage), nbytes)
        k = step * BLOCK_K
        tma.async_load(a_desc, [0, k], full.index(stage), a.index(stage))
        tma.async_load(b_desc, [0, k], full.index(stage), b.index(stage))


@gluon.jit
def _multiply_tiles(a, b, acc, full, empty, ready, steps, STAGES: gl.constexpr):
    """Warp of the MMAs."""
    for step in range(steps):
        stage = step % STAGES
        mbarrier.wait(full.index(stage), step // STAGES & 1)
        tcgen05_mma(
            a.index(stage), b.index(stage).permute((1, 0)), acc, use_acc=step > 0
        )
        tcgen05_commit(empty.index(stage))
    tcgen05_commit(ready)


@gluon.jit
def _store_tile(d_desc, acc, ready):
    """Warps of the epilogue."""
    mbarrier.wait(ready, 0)
    layout: gl.constexpr = acc.get_reg_layout()
    d = gl.allocate_shared_memory(d_desc.dtype, d_desc.block_shape, d_desc.layout)
    d.store(acc.load(layout).to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [0, 0], d)
    tma.store_wait(0)


@gluon.jit
def specialized(a_desc, b_desc, d_desc, K, STAGES: gl.constexpr):
    """D = A B^T of one tile by warps with one job each."""
    M: gl.constexpr = a_desc.block_shape[0]
    N: gl.constexpr = b_desc.block_shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_shape[1]
    a = gl.allocate_shared_memory(a_desc.dtype, [STAGES, M, BLOCK_K], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [STAGES, N, BLOCK_K], b_desc.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    ready = mbarrier.allocate_mbarrier()
    for each in gl.static_range(STAGES):
        mbarrier.init(full.index(each), count=1)
        mbarrier.init(empty.index(each), count=1)
    mbarrier.init(ready, count=1)
    fence_async_shared()
    tmem: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [M, N], tmem)
    gl.warp_specialize(
        [
            (_store_tile, (d_desc, acc, ready)),
            (_load_tiles, (a_desc, b_desc, a, b, full, empty, K, STAGES)),
            (_multiply_tiles, (a, b, acc, full, empty, ready, K // BLOCK_K, STAGES)),
        ],
        [1, 1],
        [24, 24],
    )
