"""Part 2. clc_scheduler: which tile next, by asking cluster launch control.

The grid holds every tile; only as many CTAs as there are SMs start, and each takes over
tiles of CTAs that never start. The scheduler warp asks; every working warp reads the
same answer, which names the first CTA of a cluster.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.pipeline import Consumer, arrive_on_empty
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import NO_WORK, WorkTile
from fp4ref.gemm.tiles.scheduler import noted
from fp4ref.hardware import clc, smem
from fp4ref.hardware.sm import Blocked, Warp, frame


class ClcTileScheduler:
    """Reads the answers that the scheduler warp asked for."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        self.warp, self.grid = warp, storage.params.grid
        self.storage = storage
        self._consumer = Consumer(
            warp, storage.ring("clc"), arrive_on_empty(WARP_THREADS)
        )

    @frame("2.2")
    def initial_work(self) -> WorkTile:
        """Tile of blockIdx. Frame 2.2."""
        return noted(self.warp, "initial_work", self.grid.tile(self.warp.cta.ctaid))

    @frame("2.4", "1.10")
    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Wait for the answer, read it, give its slot back. Frames 1.10 and 2.4."""
        with (yield from self._consumer.wait()) as stage:
            slot = self.storage.address("clc_response", stage.index)
            response = smem.ld(self.warp, slot, clc.RESPONSE_NBYTES)
            # The next try_cancel overwrites the slot through the async proxy.
            smem.fence_proxy_async(self.warp)
        if not clc.is_canceled(response):
            return noted(self.warp, "next_work", NO_WORK)
        first, cta = clc.get_first_ctaid(response), self.storage.cta
        ctaid = (first[0] + cta.m, first[1] + cta.n, first[2])
        return noted(self.warp, "next_work", self.grid.tile(ctaid))
