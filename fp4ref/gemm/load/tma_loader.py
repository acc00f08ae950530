"""Part 5. tma_loader: each k-tile of a stage by four TMA copies."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.partition import a_coords, b_coords, sfa_coords, sfb_coords
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import mbarrier, tma
from fp4ref.hardware.sm import Warp


@dataclass(frozen=True, slots=True)
class TmaLoader:
    """The loads of one CTA, each box whole."""

    warp: Warp
    storage: SharedStorage

    @property
    def k_group(self) -> int:
        """k-tiles of a whole stage."""
        return self.storage.plan.k_group

    def expect(self, stage: Stage, k_tiles: int) -> None:
        """Tell the full barrier how many bytes will come. Frame 5.4.8."""
        nbytes = k_tiles * self.storage.plan.k_tile_tx_bytes
        mbarrier.arrive_expect_tx(self.warp, stage.full, nbytes)

    def prefetch(self) -> None:
        """Fetch the tensor maps ahead of their first use."""
        params = self.storage.params
        for tensor_map in (params.a, params.b, params.sfa, params.sfb):
            if tensor_map is not None:
                tma.prefetch_tensormap(self.warp, tensor_map)

    def load(self, stage: Stage, work: WorkTile, group: range) -> None:
        """Start the copies of the k-tiles of a stage. Frames 5.4.4 to 5.4.7."""
        for i, k_tile in enumerate(group):
            self.load_one(stage, stage.index * self.k_group + i, work, k_tile)

    def load_one(self, stage: Stage, i: int, work: WorkTile, k_tile: int) -> None:
        """Start the copies of one k-tile into buffer `i`."""
        warp, storage, params = self.warp, self.storage, self.storage.params
        plan = storage.plan
        with warp.frame("5.4.4"):  # 128 x 256 elements
            at = a_coords(work, k_tile, plan)
            tma.load(warp, params.a, at, storage.address("a", i), stage.full)
        with warp.frame("5.4.5"):  # tile_n x 256 elements
            at = b_coords(work, k_tile, plan)
            tma.load(warp, params.b, at, storage.address("b", i), stage.full)
        if params.sfa is None or params.sfb is None:
            return
        with warp.frame("5.4.6"):  # 128 x 16 scales
            at = sfa_coords(work, k_tile, plan)
            tma.load(warp, params.sfa, at, storage.address("sfa", i), stage.full)
        with warp.frame("5.4.7"):  # 128 x 16 scales
            at = sfb_coords(work, k_tile, plan)
            tma.load(warp, params.sfb, at, storage.address("sfb", i), stage.full)
