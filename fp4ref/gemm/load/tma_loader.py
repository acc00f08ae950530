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
        warp, params, tile_n = self.warp, self.storage.params, self.storage.plan.tile_n
        copies = (
            ("5.4.4", "a", params.a, a_coords(work, k_tile)),  # (256, 128, 1) of K, M
            ("5.4.5", "b", params.b, b_coords(work, k_tile, tile_n)),  # of K, N
            ("5.4.6", "sfa", params.sfa, sfa_coords(work, k_tile)),  # (256, 4, 1, 1)
            ("5.4.7", "sfb", params.sfb, sfb_coords(work, k_tile, tile_n)),
        )
        for label, name, tensor_map, coords in copies:
            with warp.frame(label):
                address = self.storage.address(name, stage.index)
                tma.load(warp, tensor_map, coords, address, stage.full)
