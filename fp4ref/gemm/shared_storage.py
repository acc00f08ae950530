"""Parts 1 and 4. shared_storage: what the warps of one CTA share, by address.

CUTLASS's ``SharedStorage``: the rings of barriers, the stage buffers, the CLC responses
and the word that receives the TMEM address.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm.config import (
    CTA_THREADS,
    EPILOGUE_THREADS,
    WARP_THREADS,
    GemmConfig,
    NamedBarrierId,
)
from fp4ref.gemm.partition import GemmParams
from fp4ref.gemm.pipeline import Ring
from fp4ref.gemm.tile_scheduler import (
    ClcTileScheduler,
    StaticTileScheduler,
    TileScheduler,
)
from fp4ref.hardware import clc, mbarrier, named_barrier
from fp4ref.hardware.sm import Blocked, Cta, Warp


@dataclass(frozen=True)
class SharedStorage:
    """One CTA's view of configuration, parameters and addresses."""

    config: GemmConfig
    params: GemmParams
    base: int
    mainloop: Ring
    c: Ring
    clc: Ring
    accumulator: Ring
    throttle: Ring
    load_order: int
    clc_responses: tuple[int, ...]
    tmem_pointer: int

    @classmethod
    def of(cls, cta: Cta, config: GemmConfig, params: GemmParams) -> SharedStorage:
        """Place everything from the CTA's shared base.

        Arrival counts (cluster 1x1x1), frames 1.2, 1.9 and 1.10: a mainloop stage
        becomes full by one arrive.expect_tx and its bytes, empty by one
        tcgen05.commit; an accumulator full by one commit, empty by 128 threads.
        """
        base, smem = cta.smem_base, config.smem

        def ring(name: str, full: int, empty: int, stages: int, *counts: int) -> Ring:
            full_count, empty_count = counts
            return Ring.at(
                name, base + full, base + empty, stages, (full_count, empty_count)
            )

        mainloop = ring(
            "mainloop",
            smem.mainloop_full,
            smem.mainloop_empty,
            config.mainloop_stages,
            1,
            1,
        )
        c = ring(
            "c",
            smem.c_full,
            smem.c_empty,
            config.c_stages,
            WARP_THREADS,
            EPILOGUE_THREADS,
        )
        clc_ring = ring(
            "clc",
            smem.clc_full,
            smem.clc_empty,
            config.clc_stages,
            1,
            config.clc_consumers,
        )
        accumulator = ring(
            "accumulator",
            smem.accumulator_full,
            smem.accumulator_empty,
            config.accumulator_stages,
            1,
            EPILOGUE_THREADS,
        )
        throttle = ring(
            "throttle",
            smem.throttle_full,
            smem.throttle_empty,
            config.clc_stages,
            WARP_THREADS,
            WARP_THREADS,
        )
        responses = tuple(
            base + smem.clc_response + clc.RESPONSE_NBYTES * i
            for i in range(config.clc_stages)
        )
        return cls(
            config,
            params,
            base,
            mainloop,
            c,
            clc_ring,
            accumulator,
            throttle,
            base + smem.load_order,
            responses,
            base + smem.tmem_pointer,
        )

    def a(self, stage: int) -> int:
        """Shared address of an A stage."""
        return self.base + self.config.smem.a + stage * self.config.a_nbytes

    def b(self, stage: int) -> int:
        """Shared address of a B stage."""
        return self.base + self.config.smem.b + stage * self.config.b_nbytes

    def sfa(self, stage: int) -> int:
        """Shared address of an SFA stage."""
        return self.base + self.config.smem.sfa + stage * self.config.sfa_nbytes

    def sfb(self, stage: int) -> int:
        """Shared address of an SFB stage."""
        return self.base + self.config.smem.sfb + stage * self.config.sfb_nbytes

    def c_subtile(self, stage: int) -> int:
        """Shared address of a C stage."""
        return self.base + self.config.smem.c + stage * self.config.c_subtile_nbytes

    def d_subtile(self, stage: int) -> int:
        """Shared address of a D stage."""
        return self.base + self.config.smem.d + stage * self.config.d_subtile_nbytes

    def tile_scheduler(self, warp: Warp) -> TileScheduler:
        """Return the warp's own view of the tile scheduler."""
        if self.config.scheduler == "static":
            return StaticTileScheduler(warp, self.params.grid)
        return ClcTileScheduler(warp, self.params.grid, self.clc, self.clc_responses)


def init_barriers(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Initialise every barrier once, make it visible, and meet. Frame 1.4.

    Warp 0 initialises; no warp goes on before the CTA barrier.
    """
    config = storage.config
    if warp.index == 0:
        with warp.frame("1.4"):
            storage.mainloop.init(warp)
            if config.loads_c:
                storage.c.init(warp)
                cta, offset = warp.cta.resolve_shared(storage.load_order)
                cta.smem.labels[offset] = "load_order"
                mbarrier.init(warp, storage.load_order, WARP_THREADS)
            if config.scheduler == "clc":
                storage.clc.init(warp)
                storage.throttle.init(warp)
            storage.accumulator.init(warp)
            mbarrier.fence_mbarrier_init(warp)
            for address, name in buffer_labels(storage):
                warp.smem.labels[warp.cta.resolve_shared(address)[1]] = name
    yield from named_barrier.sync(warp, NamedBarrierId.CTA.value, CTA_THREADS)


def buffer_labels(storage: SharedStorage) -> list[tuple[int, str]]:
    """Names of the buffers, for faults and traces."""
    config = storage.config
    labels = [(storage.tmem_pointer, "tmem_pointer")]
    labels += [(a, f"clc_response[{i}]") for i, a in enumerate(storage.clc_responses)]
    for i in range(config.mainloop_stages):
        labels += [(storage.a(i), f"A[{i}]"), (storage.b(i), f"B[{i}]")]
        labels += [(storage.sfa(i), f"SFA[{i}]"), (storage.sfb(i), f"SFB[{i}]")]
    if config.loads_c:
        labels += [(storage.c_subtile(i), f"C[{i}]") for i in range(config.c_stages)]
    labels += [(storage.d_subtile(i), f"D[{i}]") for i in range(config.d_stages)]
    return labels
