"""Part 5. tma_loader: one mainloop stage by four TMA copies."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.partition import a_coords, b_coords, sfa_coords, sfb_coords
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tma
from fp4ref.hardware.sm import Warp


@dataclass(frozen=True, slots=True)
class TmaLoader:
    """The loads of one CTA, each box whole."""

    warp: Warp
    storage: SharedStorage

    @property
    def stage_tx_bytes(self) -> int:
        """Bytes that the copies of a stage credit to its full barrier."""
        return self.storage.plan.stage_tx_bytes

    def prefetch(self) -> None:
        """Fetch the tensor maps ahead of their first use."""
        params = self.storage.params
        for tensor_map in (params.a, params.b, params.sfa, params.sfb):
            tma.prefetch_tensormap(self.warp, tensor_map)

    def load(self, stage: Stage, work: WorkTile, k_tile: int) -> None:
        """Start the copies of one k-tile. Frames 5.4.4 to 5.4.7."""
        warp, storage, params = self.warp, self.storage, self.storage.params
        i, plan = stage.index, storage.plan
        with warp.frame("5.4.4"):  # 128 x 256 elements
            at = a_coords(work, k_tile, plan)
            tma.load(warp, params.a, at, storage.address("a", i), stage.full)
        with warp.frame("5.4.5"):  # tile_n x 256 elements
            at = b_coords(work, k_tile, plan)
            tma.load(warp, params.b, at, storage.address("b", i), stage.full)
        with warp.frame("5.4.6"):  # 128 x 16 scales
            at = sfa_coords(work, k_tile, plan)
            tma.load(warp, params.sfa, at, storage.address("sfa", i), stage.full)
        with warp.frame("5.4.7"):  # 128 x 16 scales
            at = sfb_coords(work, k_tile, plan)
            tma.load(warp, params.sfb, at, storage.address("sfb", i), stage.full)
