"""Part 1. rings: one table of the barrier rings, with who arrives how often.

From it come the addresses, the initialisation, the names in faults and traces, the
constants and accessors of the CUDA kernel, and the drawing of who signals whom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WARP_THREADS, WarpRole

ARRIVALS = WARP_THREADS
"""Of an epilogue warp on a barrier: one of each thread."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What completes one phase of a barrier.

    Attributes
    ----------
    count
        Arrivals; an mbarrier has ONE count.
    by
        The role or unit that arrives.
    tx_bytes
        Bytes that TMA or CLC must have written too.
    """

    count: int
    by: str
    tx_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RingSpec:
    """One ring: `stages` full barriers, then as many empty ones.

    Attributes
    ----------
    empty
        None for a barrier that is passed once, and so has no way back.
    producer, consumers
        Who fills a stage, and who gives it back.
    used
        Whether this configuration initialises it. Its memory is kept in any case.
    turn
        Rings are initialised in the order of their turns, then in the table's.
        Frame 1.4.
    """

    name: str
    stages: int
    full: Arrivals
    empty: Arrivals | None
    producer: WarpRole
    consumers: tuple[WarpRole, ...]
    used: bool = True
    turn: int = 0

    def parts(self) -> Iterator[tuple[str, Arrivals]]:
        """Name in the memory map, and arrivals, of each row of barriers."""
        if self.empty is None:
            yield self.name, self.full
        else:
            yield f"{self.name}_full", self.full
            yield f"{self.name}_empty", self.empty


def rings(
    config: GemmConfig,
    *,
    stages: int,
    stage_tx_bytes: int,
    c_tx_bytes: int,
    loads_c: bool,
    clc_consumers: int,
    clc_tx_bytes: int,
    cta_group: int,
    accumulators: int,
    overlapped: bool,
    releases: int,
    copiers: int,
    epilogue_warps: int,
) -> tuple[RingSpec, ...]:
    """Return the table, in CUTLASS's order of shared memory. Frames 1.2, 1.9, 1.10.

    `releases` is how many commits give a mainloop stage back: those of its row and of
    its column of the cluster. `copiers` are the threads of the load warp that arrive on
    a full one, each after its ``cp.async``.
    """
    accumulator = RingSpec(
        "accumulator",
        accumulators,
        full=Arrivals(1, "tcgen05.commit"),
        empty=Arrivals(cta_group * epilogue_warps * ARRIVALS, "epilogue warps"),
        producer=WarpRole.MMA,
        consumers=(WarpRole.EPILOGUE,),
        turn=1,
    )
    clc, throttle = _tile_rings(config, loads_c, clc_consumers, clc_tx_bytes)
    loads = _load_rings(
        config, stages, stage_tx_bytes, c_tx_bytes, loads_c, releases, copiers
    )
    dealloc = _dealloc_ring(cta_group, overlapped, epilogue_warps * ARRIVALS)
    return (*loads, clc, accumulator, throttle, *dealloc)


def _dealloc_ring(
    cta_group: int, overlapped: bool, epilogue_threads: int
) -> tuple[RingSpec, ...]:
    """What TMEM waits for before it is freed, if the accumulators do not say it.

    An overlapped accumulator is given back when only a part has been read. So the
    epilogue says when it has done with all, to the peer too.
    """
    threads, by, producer = WARP_THREADS, "MMA warp of the peer", WarpRole.MMA
    if overlapped:
        threads = cta_group * epilogue_threads
        by, producer = "epilogue warps", WarpRole.EPILOGUE
    elif cta_group == 1:
        return ()
    full = Arrivals(threads, by)
    mma = (WarpRole.MMA,)
    return (RingSpec("tmem_dealloc", 1, full, None, producer, mma, turn=2),)


def _load_rings(
    config: GemmConfig,
    stages: int,
    stage_tx_bytes: int,
    c_tx_bytes: int,
    loads_c: bool,
    releases: int,
    copiers: int,
) -> tuple[RingSpec, ...]:
    """What the two load warps fill, and the order between them."""
    load, load_c = WarpRole.MAINLOOP_LOAD, WarpRole.EPILOGUE_LOAD
    return (
        RingSpec(
            "mainloop",
            stages,
            full=Arrivals(1 + copiers, "load warp, arrive.expect_tx", stage_tx_bytes),
            empty=Arrivals(releases, "tcgen05.commit"),
            producer=load,
            consumers=(WarpRole.MMA,),
        ),
        RingSpec(
            "c",
            config.epilogue.c_stages,
            full=Arrivals(WARP_THREADS, "epilogue load warp", c_tx_bytes),
            empty=Arrivals(EPILOGUE_WARPS * ARRIVALS, "epilogue warps"),
            producer=load_c,
            consumers=(WarpRole.EPILOGUE,),
            used=loads_c,
        ),
        RingSpec(
            "load_order",
            1,
            full=Arrivals(WARP_THREADS, "load warp"),
            empty=None,
            producer=load,
            consumers=(load_c,),
            used=loads_c,
        ),
    )


def _tile_rings(
    config: GemmConfig, loads_c: bool, clc_consumers: int, clc_tx_bytes: int
) -> tuple[RingSpec, RingSpec]:
    """CLC's answers, and what keeps the scheduler warp from asking too early."""
    used = config.tiles.scheduler == "clc"
    readers = [WarpRole.MMA, WarpRole.SCHEDULER, WarpRole.MAINLOOP_LOAD]
    readers += [WarpRole.EPILOGUE_LOAD] if loads_c else []
    return (
        RingSpec(
            "clc",
            config.tiles.clc_stages,
            full=Arrivals(1, "scheduler warp, arrive.expect_tx", clc_tx_bytes),
            empty=Arrivals(clc_consumers, "every warp that reads tiles"),
            producer=WarpRole.SCHEDULER,
            consumers=(*readers, WarpRole.EPILOGUE),
            used=used,
        ),
        RingSpec(
            "throttle",
            config.tiles.clc_stages,
            full=Arrivals(WARP_THREADS, "load warp"),
            empty=Arrivals(WARP_THREADS, "scheduler warp"),
            producer=WarpRole.MAINLOOP_LOAD,
            consumers=(WarpRole.SCHEDULER,),
            used=used,
        ),
    )
