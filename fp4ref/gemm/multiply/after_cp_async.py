"""Part 6. after_cp_async: the MMA of one SM, on what threads have copied.

``cp.async`` writes through the generic proxy, and ``tcgen05.mma`` reads through the
async proxy. The load warp cannot fence copies that it does not wait for, so the MMA
warp does, which has waited for them on the stage's full barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.gemm.multiply.one_sm import OneSm
from fp4ref.gemm.multiply.scale_copies import ScaleColumns
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import smem


@dataclass(frozen=True, slots=True)
class AfterCpAsync(OneSm):
    """``tcgen05.mma`` behind ``fence.proxy.async``."""

    def issue(
        self,
        accumulator: Stage,
        buffer: int,
        scales: ScaleColumns,
        work: WorkTile,
        k_block: int,
        accumulate: bool,
    ) -> None:
        """Issue one MMA; the first of a k-tile comes after the fence."""
        if k_block == 0:
            smem.fence_proxy_async(self.warp)
        OneSm.issue(self, accumulator, buffer, scales, work, k_block, accumulate)
