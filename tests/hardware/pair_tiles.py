"""pair_tiles: kernels of one CTA pair, and what its two memories hold."""

from __future__ import annotations

import numpy as np
from on_machine import BASE, MBAR, TILE, launch, machine, random_bytes

from fp4ref.hardware import cluster, mbarrier, tcgen05, tmem
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
A_AT, B_AT, SF_AT = TILE, TILE + 0x8000, TILE + 0x18000
SFA, SFB = 256, 264
NBYTES = SF_AT - TILE + 0x1000


def memories(seed=7):
    """Shared memory of both CTAs from `TILE`: other random bytes in each."""
    return [random_bytes(NBYTES, seed), random_bytes(NBYTES, seed + 100)]


def descriptor(start):
    return SmemDescriptor(start, 16, 1024, SwizzleMode.B128).encode()


def rows_at(memory, start, rows):
    """32 bytes of each row of a tile with the 128-byte swizzle."""
    row = np.arange(rows)[:, None]
    linear = start + row * 128 + np.arange(32)[None, :]
    return memory[(linear ^ (linear >> 7 & 7) << 4) - TILE]


def put(memory):
    return lambda cta: cta.smem.poke(TILE, memory[cta.rank & 1])


def sync(warp):
    return cluster.wait(warp, cluster.arrive(warp))


def in_pair(steps, columns=512, group=2, wait=True):
    """A warp that has all of TMEM with its peer, does the steps, and gives it back.

    The even CTA's MBAR is initialised, and its CTA waits for one commit.
    """

    def body(warp):
        mbarrier.init(warp, warp.cta.smem_base, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from sync(warp)
        yield from tmem.alloc(warp, warp.cta.smem_base + 8, columns, group)
        yield from sync(warp)
        result = steps(warp)
        if result is not None:
            yield from result
        tcgen05.fence_before_thread_sync(warp)
        yield from sync(warp)
        tcgen05.fence_after_thread_sync(warp)
        tmem.dealloc(warp, 0, columns, group)

    return body


def by_leader(*steps, mask=0b11):
    """Let the even CTA do the steps and commit; both wait for it."""

    def body(warp):
        if warp.cta.rank % 2 == 0:
            for step in steps:
                step(warp)
            tcgen05.commit(warp, MBAR, mask, 2)
        yield from mbarrier.try_wait(warp, warp.cta.smem_base, 0)
        tcgen05.fence_after_thread_sync(warp)

    return body


def run_pair(*bodies, schedule="late", memory=None, trace=False, **options):
    on = machine(schedule, sms=2, trace=trace, **options)
    return launch(on, *bodies, setup=put(memory) if memory else None, **PAIR)


__all__ = [
    "A_AT",
    "BASE",
    "B_AT",
    "MBAR",
    "PAIR",
    "SFA",
    "SFB",
    "SF_AT",
    "by_leader",
    "descriptor",
    "in_pair",
    "memories",
    "put",
    "rows_at",
    "run_pair",
    "sync",
]
