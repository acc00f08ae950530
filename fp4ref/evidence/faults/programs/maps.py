"""maps: a warp turns one tensor map into that of another tensor, twice, and uses it."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import mbarrier, smem, tensormap_proxy, tma
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.tensor_map import NBYTES, DataType, TensorMap
from fp4ref.trace import Range

LAUNCH = Launch(warps=1, smem_nbytes=2048)
ROW = 128
"""Bytes of a tensor: one word for each thread."""


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return addresses: a map in global memory, the tensors A and B, and the output."""
    a, b = (
        machine.gmem.upload(name, np.full(ROW, fill, np.uint8))
        for name, fill in (("A", 1), ("B", 2))
    )
    template = TensorMap(DataType.UINT8, a, (ROW, 1), (ROW,), (ROW, 1))
    at = machine.gmem.upload("map", np.frombuffer(template.to_bytes(), np.uint8))
    return at, a, b, machine.gmem.allocate("out", 2 * ROW)


def kernel(cta: Cta, at: int, a: int, b: int, out: int) -> list[Role]:
    """Return the warp."""
    loaded, edited = cta.smem_base, cta.smem_base + 128
    rows = cta.smem_base + 1024

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        gmem = warp.machine.gmem
        mbarrier.init(warp, loaded, 1)
        mbarrier.fence_mbarrier_init(warp)
        smem.st(warp, edited, gmem.read(Range("gmem", at, NBYTES))[0])
        # First by way of shared memory: the copy has the release built in.
        tensormap_proxy.replace(warp, "shared::cta", edited, "global_address", b)
        tensormap_proxy.cp_fenceproxy(warp, at, edited, "gpu")
        tensormap_proxy.fence_acquire(warp, at, "gpu")  # of B's map
        mbarrier.arrive_expect_tx(warp, loaded, ROW)
        found = tensormap_proxy.use(warp, at, "cp.async.bulk.tensor.2d.load")
        tma.load(warp, found, (0, 0), rows, loaded)
        yield from mbarrier.try_wait(warp, loaded, 0)
        # Then in place: the fence releases it.
        tensormap_proxy.replace(warp, "global", at, "global_address", a)
        tensormap_proxy.fence_release(warp, "gpu")
        tensormap_proxy.fence_acquire(warp, at, "gpu")  # of A's map
        mbarrier.arrive_expect_tx(warp, loaded, ROW)
        again = tensormap_proxy.use(warp, at, "cp.async.bulk.tensor.2d.load")
        tma.load(warp, again, (0, 0), rows + ROW, loaded)
        yield from mbarrier.try_wait(warp, loaded, 1)
        both = smem.ld(warp, rows, 2 * ROW)
        gmem.write(Range("gmem", out, 2 * ROW), both.reshape(1, -1))

    return [body]
