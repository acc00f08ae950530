"""Part 7. epilogue_start: how every epilogue warp begins."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.parts import Parts
from fp4ref.gemm.pipeline import Consumer, arrive_on_empty
from fp4ref.gemm.plan.warps import WARP_THREADS, NamedBarrierId
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.hardware import named_barrier, smem
from fp4ref.hardware.sm import Blocked, Warp, frame


def start_epilogue(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, Epilogue]:
    """Wait for the MMA warp's allocation, and take this warp's lanes. Frame 7.1."""
    yield from init_barriers(warp, storage)
    taddr = yield from tmem_base(warp, storage)
    return Epilogue(
        warp,
        storage,
        taddr,
        Consumer(warp, storage.ring("accumulator"), arrive_on_empty(WARP_THREADS)),
        Consumer(warp, storage.ring("c"), arrive_on_empty(WARP_THREADS)),
        parts.fusion,
        parts.output,
        parts.fixup,
        parts.element_wise,
    )


@frame("7.1")
def tmem_base(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, int]:
    """Wait for the MMA warp's allocation, and read its address. Frame 7.1."""
    yield from named_barrier.sync(
        warp,
        NamedBarrierId.TMEM_ALLOCATION.value,
        WARP_THREADS + storage.plan.epilogue_threads,
    )
    word = smem.ld(warp, storage.address("tmem_pointer"), 4)
    return int(word.view("<u4")[0])
