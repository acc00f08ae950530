"""Part 7. epilogue_warp: TMEM to registers, fusion, quantisation, TMA store.

Four warps, 128 threads; thread t of warp w owns row 32 * (w % 4) + t, because a warp
reaches only its own quarter of the lanes. The accumulator is released right after the
last load from it, before the last subtile is stored.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm import cleanup
from fp4ref.gemm.config import SF_VEC_SIZE, SUBTILE_N, TILE_M
from fp4ref.gemm.partition import ATOM_K, sfd_address, subtile_coords
from fp4ref.gemm.pipeline import Consumer, Stage, arrive_on_empty
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, WARP_THREADS, NamedBarrierId
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.gemm.tile_scheduler import WorkTile
from fp4ref.hardware import gmem, named_barrier, smem, tcgen05, tma, tmem
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.layout import swizzled_offsets
from fp4ref.numerics import (
    encode_bf16,
    encode_f16,
    fma_f32,
    gelu,
    mul_f32,
    pack_e2m1,
    quantize_blocks,
    relu,
    silu,
)
from fp4ref.trace import Bytes, Range

F32 = NDArray[np.float32]

_ACTIVATIONS = {"relu": relu, "gelu": gelu, "silu": silu}
FIRST_EPILOGUE_WARP = 4


@dataclass(slots=True)
class Epilogue:
    """One epilogue warp's registers."""

    warp: Warp
    storage: SharedStorage
    taddr: int
    accumulator: Consumer
    c: Consumer
    stores: int = 0

    @property
    def lane(self) -> int:
        """First TMEM lane, and first row of the tile, that this warp owns."""
        return WARP_THREADS * (self.warp.index % 4)

    @property
    def issues_stores(self) -> bool:
        """Whether this is the warp that talks to TMA."""
        return self.warp.index == FIRST_EPILOGUE_WARP


def epilogue_warp(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Finish every tile of this CTA. Frame 7 ctx."""
    yield from init_barriers(warp, storage)
    with warp.frame("7.1"):
        yield from named_barrier.sync(
            warp, NamedBarrierId.TMEM_ALLOCATION.value, WARP_THREADS + EPILOGUE_THREADS
        )
        word = smem.ld(warp, storage.address("tmem_pointer"), 4)
    epilogue = Epilogue(
        warp,
        storage,
        int(word.view("<u4")[0]),
        Consumer(warp, storage.ring("accumulator"), arrive_on_empty(WARP_THREADS)),
        Consumer(warp, storage.ring("c"), arrive_on_empty(WARP_THREADS)),
    )
    scheduler = storage.tile_scheduler(warp)
    work = scheduler.initial_work()
    with warp.frame("7 ctx"):
        while work.valid:
            next_work = yield from scheduler.fetch_next_work()
            yield from finish_tile(epilogue, work)
            if epilogue.issues_stores:
                warp.machine.count("tile")
            work = next_work
    if epilogue.issues_stores:
        yield from cleanup.store_tail(warp)


def finish_tile(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
    """Turn one accumulator into D. Frames 7.2 to 7.10."""
    warp, plan = e.warp, e.storage.plan
    with warp.frame("7.4"):
        accumulator = yield from e.accumulator.wait()
        tcgen05.fence_after_thread_sync(warp)
    with warp.frame("7.2"):
        warp.note("accumulator.stage", index=accumulator.index)
    for subtile in range(plan.subtiles):
        acc = yield from load_accumulator(e, accumulator, subtile)
        if subtile == plan.subtiles - 1:
            with warp.frame("7.10"), accumulator:
                tcgen05.fence_before_thread_sync(warp)
        c = yield from load_c(e)
        bias = load_bias(e, work, subtile)
        with warp.frame("7.6"):
            z = fuse(e, work, subtile, acc, c, bias)
            warp.note("fusion", subtile=subtile, rows=WARP_THREADS, columns=SUBTILE_N)
        yield from store_subtile(e, work, subtile, z)


def load_accumulator(
    e: Epilogue, accumulator: Stage, subtile: int
) -> Generator[Blocked, None, F32]:
    """Read 32 rows x 32 columns of TMEM. Frames 4.5 and 7.5."""
    warp = e.warp
    with warp.frame("4.5", "7.5"):
        column = e.storage.plan.tmem.accumulators[accumulator.index]
        address = e.taddr + tmem.address(e.lane, column + subtile * SUBTILE_N)
        registers = tmem.ld(warp, address, "32x32b", SUBTILE_N)
        yield from tmem.wait_ld(warp)
    return registers.words.view(np.float32)


def load_c(e: Epilogue) -> Generator[Blocked, None, F32 | None]:
    """Read this warp's rows of the next C subtile, if C is loaded."""
    plan = e.storage.plan
    if not plan.loads_c:
        return None
    row_nbytes = SUBTILE_N * plan.c_type.bits // 8
    with (yield from e.c.wait()) as stage:
        address = e.storage.address("c_subtile", stage.index) + e.lane * row_nbytes
        block = smem.ld(e.warp, address, WARP_THREADS * row_nbytes)
        # The next load of C overwrites the stage through the async proxy.
        smem.fence_proxy_async(e.warp)
    swizzle = plan.c_swizzle
    rows = block[swizzled_offsets(swizzle, WARP_THREADS, row_nbytes)]
    if plan.config.c_format == "bf16":
        return (rows.view("<u2").astype(np.uint32) << 16).view(np.float32)
    return rows.view("<f2" if plan.config.c_format == "f16" else "<f4").astype(
        np.float32
    )


def load_bias(e: Epilogue, work: WorkTile, subtile: int) -> F32 | None:
    """Read the bias of 32 columns; columns beyond N are 0."""
    params, plan = e.storage.params, e.storage.plan
    if not plan.config.bias:
        return None
    first = work.n * plan.tile_n + subtile * SUBTILE_N
    bias = np.zeros(SUBTILE_N, np.float32)
    count = min(SUBTILE_N, params.n - first)
    if count > 0:
        where = Range("gmem", params.bias + 4 * first, 4 * count)
        bias[:count] = gmem.ld(e.warp, where)[0].view("<f4")
    return bias


def fuse(
    e: Epilogue,
    work: WorkTile,
    subtile: int,
    acc: F32,
    c: F32 | None,
    bias: F32 | None,
) -> F32:
    """Return activation(beta * C + (alpha * acc + bias)). Frame 7.6.

    ``alpha * acc`` is one rounding, or one fma with the bias; beta * C is always an
    fma, also with beta 0, where C is +0: it turns -0 into +0. Source: CUTLASS
    ``sm90_callbacks_tma_warpspecialized.hpp``. What lies outside D becomes +0, so
    that it cannot reach a block scale.
    """
    params, plan = e.storage.params, e.storage.plan
    alpha = np.float32(params.alpha)
    scaled = mul_f32(alpha, acc) if bias is None else fma_f32(alpha, acc, bias)
    source = np.zeros_like(acc) if c is None else c
    z = fma_f32(np.float32(plan.config.beta), source, scaled)
    if plan.config.activation:
        z = _ACTIVATIONS[plan.config.activation](z)
    row = work.m * TILE_M + e.lane + np.arange(WARP_THREADS)[:, None]
    column = work.n * plan.tile_n + subtile * SUBTILE_N + np.arange(SUBTILE_N)
    inside = (row < params.m) & (column < params.n)
    return np.where(inside, z, np.float32(0))


def store_subtile(
    e: Epilogue, work: WorkTile, subtile: int, z: F32
) -> Generator[Blocked, None, None]:
    """Write one subtile of D through shared memory, and SFD directly. Frame 7.9."""
    warp, storage, plan = e.warp, e.storage, e.storage.plan
    rows = quantize(e, work, subtile, z)
    row_nbytes = rows.shape[1]
    swizzle = plan.d_swizzle
    block = np.empty(rows.size, np.uint8)
    block[swizzled_offsets(swizzle, WARP_THREADS, row_nbytes)] = rows
    buffer = storage.address("d_subtile", e.stores % plan.config.d_stages)
    with warp.frame("7.9"):
        if e.issues_stores:
            yield from tma.wait_group(warp, plan.config.d_stages - 1, read=True)
        yield from named_barrier.sync(
            warp, NamedBarrierId.EPILOGUE.value, EPILOGUE_THREADS
        )
        smem.st(warp, buffer + e.lane * row_nbytes, block)
        smem.fence_proxy_async(warp)
        yield from named_barrier.sync(
            warp, NamedBarrierId.EPILOGUE.value, EPILOGUE_THREADS
        )
        if e.issues_stores:
            coords = subtile_coords(work, subtile, plan.tile_n)
            tma.store(warp, storage.params.d, coords, buffer)
            tma.commit_group(warp)
    e.stores += 1


def quantize(e: Epilogue, work: WorkTile, subtile: int, z: F32) -> Bytes:
    """Convert to D's format; for NVFP4 also store SFD. Frame 7.7.

    Returns the bytes of 32 rows.
    """
    plan = e.storage.plan
    if plan.config.d_format == "f32":
        return np.ascontiguousarray(z).view(np.uint8)
    if plan.config.d_format == "bf16":
        return encode_bf16(z).view(np.uint8)
    if plan.config.d_format == "f16":
        return encode_f16(z).view(np.uint8)
    codes, scales = quantize_blocks(
        z,
        norm=plan.config.norm_constant,
        scale_format=plan.config.sfd_format,
        vec_size=SF_VEC_SIZE,
    )
    with e.warp.frame("7.7"):
        store_scales(e, work, subtile, scales)
    return pack_e2m1(codes)


def store_scales(e: Epilogue, work: WorkTile, subtile: int, scales: Bytes) -> None:
    """Write two SFD bytes for each row, in the 128x4 layout. Frame 7.7.

    Rows beyond M are written too: the buffer is padded to whole atoms, and its padding
    must be 0.
    """
    params, plan = e.storage.params, e.storage.plan
    column = (work.n * plan.tile_n + subtile * SUBTILE_N) // SF_VEC_SIZE
    if column * SF_VEC_SIZE // ATOM_K >= -(-params.n // ATOM_K):
        return
    first = sfd_address(params, work.m * TILE_M + e.lane, column, work.l)
    addresses = first + 16 * np.arange(WARP_THREADS, dtype=np.int64)
    gmem.st(e.warp, addresses, scales)
