"""prologue: a warp fills three stages ahead by cp.async, and adds up what it reads."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import cp_async, gmem, mbarrier, smem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=1)
K_TILES, STAGES, ATOM_NBYTES = 2, 3, 512


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of a scale atom for each k-tile, how many, and 32 words."""
    scales = np.full(K_TILES * ATOM_NBYTES, 0x38, np.uint8)
    at = machine.gmem.upload("scales", scales)
    return at, K_TILES, machine.gmem.allocate("out", 4 * 32)


def kernel(cta: Cta, scales: int, k_tiles: int, out: int) -> list[Role]:
    """Return the warp; each lane reads only what it has copied."""
    full = [cta.smem_base + 8 * i for i in range(STAGES)]
    stages = [cta.smem_base + 1024 + ATOM_NBYTES * i for i in range(STAGES)]
    lanes = 16 * np.arange(32)

    def fill(warp: Warp, k: int) -> None:
        source = scales + ATOM_NBYTES * k + lanes
        cp_async.copy(warp, list(stages[k % STAGES] + lanes), list(source), 16)
        cp_async.mbarrier_arrive_noinc(warp, full[k % STAGES], 32)

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        for bar in full:
            mbarrier.init(warp, bar, 32)
        for k in range(min(STAGES, k_tiles)):
            fill(warp, k)
        total = np.zeros(32, np.uint32)
        for k in range(k_tiles):
            i, parity = k % STAGES, k // STAGES & 1
            yield from mbarrier.try_wait(warp, full[i], parity)
            atom = smem.ld(warp, stages[i], ATOM_NBYTES)
            total += atom.reshape(32, 16)[:, :4].copy().view("<u4")[:, 0]
            if k + STAGES < k_tiles:
                fill(warp, k + STAGES)
        gmem.st(warp, out + 4 * np.arange(32), total.view(np.uint8).reshape(32, 4))

    return [body]
