"""order: what the PTX text leaves to its reader, decided, in both orderings.

Sections are those of PTX ISA 9.2.
"""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import MBAR as MMA_BAR
from mma_tiles import easy_mma, easy_scales, put_memory
from on_machine import TILE
from order_cases import both, box, every, found

from fp4ref.hardware import mbarrier, named_barrier, smem, tcgen05, tma, tmem
from fp4ref.hardware.order.rules import Failure

# A proxy fence in any thread on the way from the write to the asynchronous read.
# 9.7.13.4 (membar, fence): bi-directional proxy fences take effect within a single
# thread, and their effect composes with other forms of synchronization. 8.9.5 has a
# rule for aliases ("a proxy fence along the base causality path") and none for async.


def hand_over_a_tile(fence):
    """Warp 0 writes, warp 1 passes it on, warp 2 stores it; warp 3 looks on."""

    def at(warp, place):
        if fence == place:
            smem.fence_proxy_async(warp)

    def writing(warp):
        at(warp, "before the write")
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        at(warp, "in the writer")
        named_barrier.arrive(warp, 1, 64)
        at(warp, "in the writer, after it arrived")
        yield from ()

    def passing(warp):
        at(warp, "between, before it has waited")
        yield from named_barrier.sync(warp, 1, 64)
        at(warp, "between")
        named_barrier.arrive(warp, 2, 64)

    def storing(warp):
        at(warp, "in the reader, before it has waited")
        yield from named_barrier.sync(warp, 2, 64)
        at(warp, "in the reader")
        tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    def looking(warp):
        at(warp, "in a fourth warp")
        yield from ()

    return writing, passing, storing, looking


@every
@both
@pytest.mark.parametrize("fence", ["in the writer", "between", "in the reader"])
def test_a_proxy_fence_on_the_causality_path_is_enough(schedule, ordering, fence):
    bodies = hand_over_a_tile(fence)
    seen, _ = found(*bodies, schedule=schedule, ordering=ordering, prepare=box)
    assert seen == set()


@every
@both
@pytest.mark.parametrize(
    "fence",
    [
        "nowhere",
        "before the write",
        "in the writer, after it arrived",
        "between, before it has waited",
        "in the reader, before it has waited",
        "in a fourth warp",
    ],
)
def test_a_proxy_fence_off_the_causality_path_is_none(schedule, ordering, fence):
    bodies = hand_over_a_tile(fence)
    seen, _ = found(*bodies, schedule=schedule, ordering=ordering, prepare=box)
    assert seen == {(Failure.PROXY, "error")}


# A bulk store whose source nobody waits for when the CTA exits. 9.7.9.27 (async
# proxy, bulk async-groups) says how to wait and not how long the source lives; CUDA's
# guide waits. So it is for review where the text decides, and counted where shipped
# kernels do.


@every
@both
@pytest.mark.parametrize("wait", [None, "read", "whole"])
def test_the_source_of_a_bulk_store_at_exit(schedule, ordering, wait):
    def body(warp):
        smem.st(warp, TILE, np.zeros(128, np.uint8))
        smem.fence_proxy_async(warp)
        tma.store(warp, warp.machine.tensor_map, (0, 0), TILE)
        tma.commit_group(warp)
        if wait is not None:
            yield from tma.wait_group(warp, 0, read=wait == "read")

    seen, on = found(body, schedule=schedule, ordering=ordering, prepare=box)
    severity = {"ptx": "review", "shipped": "allowed"}[ordering]
    assert seen == (set() if wait else {(Failure.EXIT, severity)})
    left = "clean" if wait or ordering == "shipped" else "review"
    assert on.order.findings.verdict == left


# The committing thread after its own commit. 9.7.16.6.4.2 (non-pipelined
# instructions, same thread): tcgen05.ld needs tcgen05.fence::after_thread_sync after
# the wait, and no fence before the commit. It does not say so of mma and cp, and
# shipped kernels issue these without: no finding.


@every
@both
@pytest.mark.parametrize("then", ["mma", "ld", "st"])
@pytest.mark.parametrize("fenced", [True, False])
def test_a_committing_thread_needs_a_fence_before_ld_and_st_only(
    schedule, ordering, then, fenced
):
    def body(warp):
        mbarrier.init(warp, MMA_BAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MMA_BAR + 8, 512)
        easy_scales(warp)
        easy_mma(warp, n=128)
        tcgen05.commit(warp, MMA_BAR)
        yield from mbarrier.try_wait(warp, MMA_BAR, 0)
        if fenced:
            tcgen05.fence_after_thread_sync(warp)
        if then == "mma":
            easy_mma(warp, n=64)
            tcgen05.commit(warp, MMA_BAR)
            yield from mbarrier.try_wait(warp, MMA_BAR, 1)
        elif then == "ld":
            tmem.ld(warp, 0, "32x32b", 1)
            yield from tmem.wait_ld(warp)
        else:
            tmem.st(warp, 0, np.zeros((32, 1), np.uint32), "32x32b", 1)
            yield from tmem.wait_st(warp)
        tmem.dealloc(warp, 0, 512)

    seen, _ = found(body, schedule=schedule, ordering=ordering, setup=put_memory)
    severity = {"ptx": "error", "shipped": "allowed"}[ordering]
    clean = fenced or then == "mma"
    assert seen == (set() if clean else {(Failure.TENSOR_AFTER, severity)})
