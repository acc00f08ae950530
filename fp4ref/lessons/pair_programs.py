"""pair_programs: small kernels of a CTA pair and of clusters, for a notebook.

`run_stage` is one stage of an NVFP4 product by one pair: D is 256 x 128, K is 256, and
each CTA has one warp. `run_lanes` marks every cell of D by its row and column;
`run_multicast` and `run_clc` send a box and an answer through a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fp4ref.execution.traced_machine import TracedMachine
from fp4ref.gemm.config import TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.descriptors import (
    K_BLOCK_STEP,
    SF_BLOCK_STEP,
    SF_COLUMNS,
    operand_descriptor,
    scale_descriptor,
)
from fp4ref.gemm.partition import operand_map, scale_map
from fp4ref.gemm.plan import plan
from fp4ref.hardware import (
    clc,
    cluster,
    mbarrier,
    mma_unscaled,
    smem,
    tcgen05,
    tma,
    tmem,
)
from fp4ref.hardware.data_path import DATA_PATHS
from fp4ref.hardware.instr_descriptor import InstrDescriptor, UnscaledInstrDescriptor
from fp4ref.hardware.shared_memory import BASE
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.tensor_map import TensorMap
from fp4ref.layout import SwizzleMode, swizzled_offsets
from fp4ref.numerics import ElementFormat, ScaleFormat
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.trace import Dim3, Trace

FULL, DONE, TADDR = BASE, BASE + 8, BASE + 16
"""Shared addresses: the leader's full barrier, one in each CTA, TMEM's address."""

A_AT, B_AT, SFA_AT, SFB_AT = 0x800, 0x4800, 0x6800, 0x7000
"""Where a stage lies, the same in both CTAs."""

N = 128
D, SFA, SFB, COLUMNS = 0, N, N + 16, 256
"""Columns of TMEM: first of D and of the scales, and how many are allocated."""

PLAN = plan(GemmConfig())
"""What the scales of a stage are: four atoms along K."""

IDESC = InstrDescriptor(2 * TILE_M, N, ScaleFormat.UE4M3).encode()

Steps = Generator[Blocked, None, None]


@dataclass(frozen=True)
class Maps:
    """Tensor maps of a stage; the box of A is 128 rows, that of B half of N."""

    a: TensorMap
    b: TensorMap
    sfa: TensorMap
    sfb: TensorMap


@dataclass(frozen=True)
class PairRun:
    """What ran: its trace, and the TMEM of each CTA by rank, (128, 512) uint32."""

    trace: Trace
    tmem: list[NDArray[np.uint32]]


def here(warp: Warp, address: int) -> int:
    """Return a shared address of the warp's own CTA, as the cluster sees it."""
    return cluster.mapa(warp, address, warp.cta.rank)


def leaders(warp: Warp, address: int) -> int:
    """Return the same address in the leader of the warp's pair."""
    return cluster.mapa(warp, address, warp.cta.rank & ~1)


def is_leader(warp: Warp) -> bool:
    """Whether this is the even CTA of its pair."""
    return warp.cta.rank % 2 == 0


def meet(warp: Warp) -> Steps:
    """Pass the cluster barrier."""
    yield from cluster.wait(warp, cluster.arrive(warp))


def expected_nbytes(warp: Warp, maps: Maps) -> int:
    """Bytes that this CTA's full barrier waits for: both shares, or none."""
    share = (maps.a, maps.b, maps.sfa, maps.sfb)
    return 2 * sum(each.box_nbytes for each in share) if is_leader(warp) else 0


def half_of_b(warp: Warp) -> int:
    """First row of B that this CTA loads."""
    return N // 2 * warp.cta.rank


def load(warp: Warp, maps: Maps) -> None:
    """Load this CTA's share; the leader sends the scales of B to both."""
    rank, full = warp.cta.rank, leaders(warp, FULL)
    to = partial(here, warp)
    tma.load(warp, maps.a, (0, TILE_M * rank, 0), to(A_AT), full, cta_group=2)
    tma.load(warp, maps.b, (0, half_of_b(warp), 0), to(B_AT), full, cta_group=2)
    tma.load(warp, maps.sfa, (0, 0, rank, 0), to(SFA_AT), full, cta_group=2)
    if is_leader(warp):
        tma.load(warp, maps.sfb, (0, 0, 0, 0), to(SFB_AT), full, 0b11, cta_group=2)


def multiply(warp: Warp) -> None:
    """Copy the scales in both CTAs, and multiply: one MMA for each 64 of K."""
    for block in range(TILE_K // tcgen05.MMA_K):
        scales = block * SF_COLUMNS, block * SF_BLOCK_STEP
        for column, at in ((SFA, SFA_AT), (SFB, SFB_AT)):
            source = scale_descriptor(at) + scales[1]
            tcgen05.cp(warp, column + scales[0], source, cta_group=2)
        tcgen05.mma(
            warp,
            D,
            operand_descriptor(A_AT) + block * K_BLOCK_STEP,
            operand_descriptor(B_AT) + block * K_BLOCK_STEP,
            IDESC,
            SFA + scales[0],
            SFB + scales[0],
            enable_input_d=block > 0,
            cta_group=2,
        )


def commit(warp: Warp) -> None:
    """Arrive in both CTAs when the MMAs are complete."""
    tcgen05.commit(warp, here(warp, DONE), 0b11, cta_group=2)


def pair_warp(warp: Warp, maps: Maps) -> Steps:
    """Be the one warp of a CTA of the pair."""
    mbarrier.init(warp, here(warp, FULL), 1)
    mbarrier.init(warp, here(warp, DONE), 1)
    mbarrier.fence_mbarrier_init(warp)
    yield from tmem.alloc(warp, here(warp, TADDR), COLUMNS, 2)
    yield from meet(warp)
    if nbytes := expected_nbytes(warp, maps):
        mbarrier.arrive_expect_tx(warp, here(warp, FULL), nbytes)
    load(warp, maps)
    if is_leader(warp):
        yield from mbarrier.try_wait(warp, here(warp, FULL), 0)
        multiply(warp)
        commit(warp)
    yield from mbarrier.try_wait(warp, here(warp, DONE), 0)
    tcgen05.fence_after_thread_sync(warp)
    yield from release(warp)


def release(warp: Warp) -> Steps:
    """Free the columns of both, when both are done with them."""
    tcgen05.fence_before_thread_sync(warp)
    yield from meet(warp)
    tcgen05.fence_after_thread_sync(warp)
    tmem.dealloc(warp, D, COLUMNS, 2)


def _run(
    traced: TracedMachine,
    role: Role,
    grid: Dim3,
    shape: Dim3,
    put: Callable[[Cta], None] | None = None,
) -> PairRun:
    """Launch one warp for each CTA; `put` fills shared memory before it starts."""
    machine = traced.machine

    def kernel(cta: Cta) -> list[Role]:
        cta.smem.labels.update({FULL: "full", DONE: "done"})
        if put is not None:
            put(cta)
        return [role]

    machine.launch(kernel, grid, cluster=shape)
    trace = traced.trace(traced.meta())
    assert trace is not None
    return PairRun(trace, [sm.tmem.cells.copy() for sm in machine.sms])


def run_stage(a: BlockScaled, b: BlockScaled, schedule: str | int = 1) -> PairRun:
    """Multiply A (256, 256) by B (128, 256) on one pair.

    Raises
    ------
    HardwareFault
        A function of this module was replaced by one that breaks a rule.
    """
    traced = TracedMachine(2, schedule, "ptx", trace=True)
    put = traced.machine.gmem.upload
    at = {"A": put("A", a.packed().ravel()), "B": put("B", b.packed().ravel())}
    for name, each in (("SFA", a), ("SFB", b)):
        at[name] = put(name, each.swizzled_scales().data.ravel())
    maps = Maps(
        operand_map(at["A"], 2 * TILE_M, TILE_K, 1, (TILE_K, TILE_M)),
        operand_map(at["B"], N, TILE_K, 1, (TILE_K, N // 2)),
        scale_map(at["SFA"], 2 * TILE_M, TILE_K, 1, PLAN, TILE_M),
        scale_map(at["SFB"], N, TILE_K, 1, PLAN, N),
    )
    return _run(traced, partial(pair_warp, maps=maps), (2, 1, 1), (2, 1, 1))


# -- every cell of D is marked ---------------------------------------------------------

MARK_N = 64
"""N of `run_lanes`."""


def marks(rows: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Lay (R, 2) values as BF16 at the start of rows of 16, in the 128-byte swizzle."""
    row = np.zeros((len(rows), 64), np.uint16)
    row[:, :2] = (rows.view(np.uint32) >> 16).reshape(len(rows), 2)
    tile = np.empty(row.nbytes, np.uint8)
    places = swizzled_offsets(SwizzleMode.B128, rows=len(rows), row_bytes=128)
    tile[places] = row.view(np.uint8)
    return tile


def run_lanes(m: int) -> list[NDArray[np.int64]]:
    """Multiply so that D[m, n] is m + 256 n, and return D's cells of each CTA.

    A's row m is (m, 16) and B's row n is (1, 16 n), of BF16. Each array is
    (128, columns) of one TMEM.

    Parameters
    ----------
    m
        128 or 256; N is 64.
    """
    rows, half = m // 2, MARK_N // 2
    bf16 = ElementFormat.BF16
    word = UnscaledInstrDescriptor("f16", m, MARK_N, bf16, bf16).encode()

    def put(cta: Cta) -> None:
        a = np.arange(rows * cta.rank, rows * (cta.rank + 1), dtype=np.float32)
        b = 16 * np.arange(half * cta.rank, half * (cta.rank + 1), dtype=np.float32)
        cta.smem.poke(A_AT, marks(np.stack([a, np.full_like(a, 16)], 1)))
        cta.smem.poke(B_AT, marks(np.stack([np.ones_like(b), b], 1)))

    def body(warp: Warp) -> Steps:
        mbarrier.init(warp, here(warp, DONE), 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, here(warp, TADDR), COLUMNS, 2)
        yield from meet(warp)
        if is_leader(warp):
            tiles = operand_descriptor(A_AT), operand_descriptor(B_AT)
            mma_unscaled.mma(warp, D, *tiles, word, False, cta_group=2)
            commit(warp)
        yield from mbarrier.try_wait(warp, here(warp, DONE), 0)
        tcgen05.fence_after_thread_sync(warp)
        yield from release(warp)

    traced = TracedMachine(2, 1, "ptx", trace=True)
    found = _run(traced, body, (2, 1, 1), (2, 1, 1), put)
    columns = DATA_PATHS[m, 2].columns(MARK_N)
    return [
        cells[:, :columns].view(np.float32).astype(np.int64) for cells in found.tmem
    ]


# -- through a cluster -----------------------------------------------------------------


def multicast_warp(warp: Warp, a_map: TensorMap) -> Steps:
    """Send a box of A to every pair of a cluster; each leader waits for both boxes.

    The CTAs of the first pair load their rows; the mask has the CTAs of their own
    parity, so that both CTAs of each pair get theirs.
    """
    size = len(warp.cta.cluster.ctas)
    mbarrier.init(warp, here(warp, FULL), 1)
    mbarrier.fence_mbarrier_init(warp)
    yield from meet(warp)
    if is_leader(warp):
        mbarrier.arrive_expect_tx(warp, here(warp, FULL), 2 * a_map.box_nbytes)
    if (rank := warp.cta.rank) < 2:
        mask = sum(1 << to for to in range(rank, size, 2))
        corner, full = (0, TILE_M * rank, 0), leaders(warp, FULL)
        tma.load(warp, a_map, corner, here(warp, A_AT), full, mask, 2)
    if is_leader(warp):
        yield from mbarrier.try_wait(warp, here(warp, FULL), 0)
    yield from meet(warp)


def run_multicast(shape: Dim3 = (2, 4, 1)) -> PairRun:
    """Run `multicast_warp` on one cluster, with a row of A in 128 bytes."""
    size = shape[0] * shape[1]
    traced = TracedMachine(size, 1, "ptx", trace=True)
    rows = np.arange(2 * TILE_M, dtype=np.uint8).repeat(TILE_K // 2)
    at = traced.machine.gmem.upload("A", rows)
    a_map = operand_map(at, 2 * TILE_M, TILE_K, 1, (TILE_K, TILE_M))
    return _run(traced, partial(multicast_warp, a_map=a_map), shape, shape)


ANSWER_AT = 0x800
"""Where the 16 bytes of a CLC answer lie in each CTA."""


def clc_warp(warp: Warp, learned: dict[Dim3, Dim3]) -> Steps:
    """Let rank 0 ask for another cluster; every CTA reads the answer."""
    mbarrier.init(warp, here(warp, FULL), 1)
    mbarrier.fence_mbarrier_init(warp)
    yield from meet(warp)
    mbarrier.arrive_expect_tx(warp, here(warp, FULL), clc.RESPONSE_NBYTES)
    if warp.cta.rank == 0:
        clc.try_cancel(warp, here(warp, ANSWER_AT), here(warp, FULL), multicast=True)
    yield from mbarrier.try_wait(warp, here(warp, FULL), 0)
    answer = smem.ld(warp, here(warp, ANSWER_AT), clc.RESPONSE_NBYTES)
    learned[warp.cta.ctaid] = clc.get_first_ctaid(answer)
    yield from meet(warp)


def run_clc(shape: Dim3 = (2, 4, 1)) -> tuple[PairRun, dict[Dim3, Dim3]]:
    """Run `clc_warp` on one cluster of a grid of two: who learned what."""
    learned: dict[Dim3, Dim3] = {}
    traced = TracedMachine(shape[0] * shape[1], 1, "ptx", trace=True)
    grid = (2 * shape[0], *shape[1:])
    return _run(traced, partial(clc_warp, learned=learned), grid, shape), learned
