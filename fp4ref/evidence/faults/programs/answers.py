"""answers: a cluster of two CTAs asks for the work of another one, until none is left.

The first CTA asks. Both get the 16 bytes of the answer, read them, and give the slot
back to the first CTA.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.evidence.faults.small_program import Argument, Launch
from fp4ref.hardware import clc, cluster, gmem, mbarrier, smem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp

LAUNCH = Launch(warps=1, ctas=2, clusters=2)
CLUSTER = mbarrier.Semantics(scope="cluster")


def arguments(machine: Machine) -> tuple[Argument, ...]:
    """Return the address of a word for each CTA of the grid."""
    return (machine.gmem.allocate("out", 4 * 4),)


def kernel(cta: Cta, out: int) -> list[Role]:
    """Return the one warp of a CTA."""
    base, rank = cta.smem_base, cta.rank
    full, empty, slot = base, base + 8, base + 16

    def body(warp: Warp) -> Generator[Blocked, None, None]:
        mbarrier.init(warp, full, 1)
        mbarrier.init(warp, empty, 2)
        mbarrier.fence_mbarrier_init(warp)
        yield from cluster.wait(warp, cluster.arrive(warp))
        first = cluster.mapa(warp, empty, 0)
        x, parity, more = cta.ctaid[0], 0, True
        while more:
            word = np.array([[x]], "<u4").view(np.uint8)
            gmem.st(warp, np.array([out + 4 * x]), word)
            mbarrier.arrive_expect_tx(warp, full, 16)
            if rank == 0:
                # Nobody holds the slot before the first round: parity 1 passes.
                yield from mbarrier.try_wait(warp, empty, parity ^ 1, CLUSTER)
                clc.try_cancel(warp, slot, full, multicast=True)
            yield from mbarrier.try_wait(warp, full, parity)
            answer = smem.ld(warp, slot, 16)
            smem.fence_proxy_async(warp)
            mbarrier.arrive(warp, first, semantics=CLUSTER)
            parity ^= 1
            if more := clc.is_canceled(answer):
                x = clc.get_first_ctaid(answer)[0] + rank
        if rank == 0:
            yield from mbarrier.try_wait(warp, empty, parity ^ 1, CLUSTER)

    return [body]
