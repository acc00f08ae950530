"""Part 5. cp_async_loader: A and B by the load warp's threads, the scales by TMA.

TMA takes rows whose pitch is a multiple of 16 bytes, which a K of an odd number of
16-element blocks has not. A thread of ``cp.async`` copies 8 bytes, puts them where
TMA's 128-byte swizzle would, and reads nothing for what lies outside the operand, which
becomes 0. The stage is full when TMA's bytes are there and each thread has arrived,
which it does when its copies are complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.descriptors import OPERAND_SWIZZLE
from fp4ref.gemm.partition import sfa_coords, sfb_coords
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import cp_async, mbarrier, smem, tma
from fp4ref.hardware.sm import Warp

COPY_NBYTES = 8
"""A whole number of them is in every row of 16-element blocks."""

ROW_NBYTES = 128
"""A row of a k-tile."""

COPIES_PER_ROW = ROW_NBYTES // COPY_NBYTES
ROWS_AT_A_TIME = WARP_THREADS // COPIES_PER_ROW


@dataclass(frozen=True, slots=True)
class CpAsyncLoader:
    """The loads of one CTA, 8 bytes a thread."""

    warp: Warp
    storage: SharedStorage

    @property
    def k_group(self) -> int:
        """k-tiles of a whole stage."""
        return self.storage.plan.k_group

    def expect(self, stage: Stage, k_tiles: int) -> None:
        """Tell the full barrier how many bytes of scales will come. Frame 5.4.8."""
        nbytes = k_tiles * self.storage.plan.k_tile_tx_bytes
        mbarrier.arrive_expect_tx(self.warp, stage.full, nbytes)

    def prefetch(self) -> None:
        """Fetch the tensor maps ahead of their first use."""
        params = self.storage.params
        for tensor_map in (params.sfa, params.sfb):
            assert tensor_map is not None, "TMA copies the scales"
            tma.prefetch_tensormap(self.warp, tensor_map)

    def load(self, stage: Stage, work: WorkTile, group: range) -> None:
        """Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7.

        The fence orders them after the MMAs that have read the stage, through the async
        proxy.
        """
        smem.fence_proxy_async(self.warp)
        for i, k_tile in enumerate(group):
            self.load_one(stage, stage.index * self.k_group + i, work, k_tile)
        cp_async.mbarrier_arrive_noinc(self.warp, stage.full, WARP_THREADS)

    def load_one(self, stage: Stage, i: int, work: WorkTile, k_tile: int) -> None:
        """Start the copies of one k-tile into buffer `i`."""
        warp, storage, params = self.warp, self.storage, self.storage.params
        plan = storage.plan
        assert params.sfa is not None, "TMA copies the scales"
        assert params.sfb is not None, "TMA copies the scales"
        with warp.frame("5.4.6"):
            at = sfa_coords(work, k_tile, plan)
            tma.load(warp, params.sfa, at, storage.address("sfa", i), stage.full)
        with warp.frame("5.4.7"):
            at = sfb_coords(work, k_tile, plan)
            tma.load(warp, params.sfb, at, storage.address("sfb", i), stage.full)
        with warp.frame("5.4.4"):
            rows = range(work.m * plan.tile_m, (work.m + 1) * plan.tile_m)
            to = storage.address("a", i)
            self.copy(params.a_address, params.m, work.l, rows, k_tile, to)
        with warp.frame("5.4.5"):
            rows = range(work.n * plan.tile_n, (work.n + 1) * plan.tile_n)
            to = storage.address("b", i)
            self.copy(params.b_address, params.n, work.l, rows, k_tile, to)

    def copy(
        self, operand: int, end: int, batch: int, rows: range, k_tile: int, to: int
    ) -> None:
        """Copy the rows of a k-tile; those from `end`, and bytes beyond K, are 0."""
        pitch = self.storage.params.k // 2
        lanes = range(WARP_THREADS)
        column = [lane % COPIES_PER_ROW * COPY_NBYTES for lane in lanes]
        byte = [k_tile * ROW_NBYTES + each for each in column]
        for first in range(0, len(rows), ROWS_AT_A_TIME):
            row = [first + lane // COPIES_PER_ROW for lane in lanes]
            inside = [
                rows[r] < end and x < pitch for r, x in zip(row, byte, strict=True)
            ]
            sources = [
                operand + (batch * end + rows[r]) * pitch + x if read else operand
                for r, x, read in zip(row, byte, inside, strict=True)
            ]
            targets = [
                to + OPERAND_SWIZZLE.swizzle(r * ROW_NBYTES + x)
                for r, x in zip(row, column, strict=True)
            ]
            sizes = [COPY_NBYTES * read for read in inside]
            cp_async.copy(self.warp, targets, sources, COPY_NBYTES, sizes)
