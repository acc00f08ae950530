"""ring: one warp loads rows by TMA, another adds 1 to every byte and stores them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import mbarrier, named_barrier, smem, tma
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.tensor_map import DataType, TensorMap

LAUNCH = Launch(warps=2, smem_nbytes=2048)
ROWS, ROW_NBYTES, STAGES = 8, 128, 2


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the maps of the rows to read and of those to write."""
    data = np.arange(ROWS * ROW_NBYTES, dtype=np.uint8)
    at = (machine.gmem.upload("source", data), machine.gmem.upload("target", data * 0))
    return tuple(
        TensorMap(
            DataType.UINT8, address, (ROW_NBYTES, ROWS), (ROW_NBYTES,), (ROW_NBYTES, 1)
        )
        for address in at
    )


def kernel(cta: Cta, source: TensorMap, target: TensorMap) -> list[Role]:
    """Return the producer and the consumer."""
    base = cta.smem_base
    full, empty = [base, base + 8], [base + 16, base + 24]
    stage, out = base + 1024, base + 1536

    def meet(warp: Warp) -> Generator[Blocked, None, None]:
        yield from named_barrier.sync(warp, 0)

    def producer(warp: Warp) -> Generator[Blocked, None, None]:
        mbarrier.init(warp, full[0], 1)
        mbarrier.init(warp, full[1], 1)
        mbarrier.init(warp, empty[0], 32)
        mbarrier.init(warp, empty[1], 32)
        mbarrier.fence_mbarrier_init(warp)
        yield from meet(warp)
        for k in range(ROWS):
            i, parity = k % STAGES, k // STAGES & 1
            yield from mbarrier.try_wait(warp, empty[i], parity ^ 1)
            mbarrier.arrive_expect_tx(warp, full[i], ROW_NBYTES)
            tma.load(warp, source, (0, k), stage + ROW_NBYTES * i, full[i])
        yield from meet(warp)
        mbarrier.inval(warp, full[0])
        mbarrier.inval(warp, full[1])

    def consumer(warp: Warp) -> Generator[Blocked, None, None]:
        yield from meet(warp)
        for k in range(ROWS):
            i, parity = k % STAGES, k // STAGES & 1
            yield from mbarrier.try_wait(warp, full[i], parity)
            row = smem.ld(warp, stage + ROW_NBYTES * i, ROW_NBYTES)
            smem.fence_proxy_async(warp)
            mbarrier.arrive(warp, empty[i], 32)
            yield from tma.wait_group(warp, 1, read=True)
            smem.st(warp, out + ROW_NBYTES * i, row + np.uint8(1))
            smem.fence_proxy_async(warp)
            tma.store(warp, target, (0, k), out + ROW_NBYTES * i)
            tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)
        yield from meet(warp)

    return [producer, consumer]
