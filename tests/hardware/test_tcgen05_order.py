"""tcgen05: order of landings, conflicts, fences."""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import (
    A_AT,
    B128,
    B_AT,
    SF_AT,
    SF_WORD,
    SFA,
    SFB,
    commit_and_wait,
    descriptor,
    easy_mma,
    easy_scales,
    idesc,
    landing_order,
    put_memory,
    put_scales,
    with_tmem,
)
from on_machine import MBAR, launch, machine, random_bytes

from fp4ref.errors import (
    MissingProxyFence,
    ReadWhileInFlight,
)
from fp4ref.hardware import mbarrier, smem, tcgen05, tma, tmem
from fp4ref.hardware.tensor_map import DataType, TensorMap


def cp_over_live_scales(warp):
    easy_scales(warp)
    easy_mma(warp)
    tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)


def test_cp_over_columns_that_an_mma_reads():
    says = r"tcgen05\.cp touches.*tcgen05\.mma in flight reads"
    with pytest.raises(ReadWhileInFlight, match=says):
        landing_order(cp_over_live_scales)
    # Some random order finds it too.
    found = 0
    for seed in range(20):
        try:
            landing_order(cp_over_live_scales, schedule=seed)
        except ReadWhileInFlight:
            found += 1
    assert found


@pytest.mark.parametrize("schedule", ["late", *range(10)])
def test_shipped_ordering_keeps_mma_and_cp_in_order(schedule):
    order, on = landing_order(
        cp_over_live_scales, schedule=schedule, ordering="shipped"
    )
    assert order == ["tcgen05.mma", "tcgen05.cp", "tcgen05.commit"]
    if schedule == "late":
        assert on.advisories == {"tcgen05.cp over columns that an earlier MMA reads": 1}


@pytest.mark.parametrize(
    "second", [{"n": 64}, {"d": 64}, {"n": 256, "accumulate": True}]
)
def test_mmas_of_another_shape_or_start_are_not_ordered(second):
    def steps(warp):
        easy_scales(warp, 256)
        easy_mma(warp)
        easy_mma(warp, **second)

    with pytest.raises(ReadWhileInFlight, match="same shape and accumulator"):
        landing_order(steps)
    if "d" not in second and second["n"] == 64:
        landing_order(steps, ordering="shipped")


def test_mmas_into_two_accumulators():
    def steps(warp):
        put_scales(warp, 400, np.full((128, 4), 0x38))
        for d in (0, 128):
            for k in range(2):
                tcgen05.mma(
                    warp,
                    d,
                    descriptor(A_AT),
                    descriptor(B_AT),
                    idesc(),
                    400,
                    400,
                    k > 0,
                )

    landing_order(steps)


def load_map(on):
    source = on.gmem.upload("A", random_bytes(16384))
    return TensorMap(
        DataType.U4_ALIGN8B, source, (256, 128), (128,), (256, 128), swizzle=B128
    )


def test_tma_load_into_a_stage_that_an_mma_reads():
    on = machine("late")
    a = load_map(on)

    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        mbarrier.expect_tx(warp, MBAR, 16384)
        tma.load(warp, a, (0, 0), A_AT, MBAR)

    with pytest.raises(ReadWhileInFlight, match=r"load touches.*mma in flight reads"):
        launch(on, with_tmem(steps), setup=put_memory)


def test_mma_before_its_stage_has_landed():
    on = machine("late")
    a = load_map(on)

    def steps(warp):
        easy_scales(warp)
        mbarrier.expect_tx(warp, MBAR, 16384)
        tma.load(warp, a, (0, 0), A_AT, MBAR)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match=r"mma touches.*load in flight writes"):
        launch(on, with_tmem(steps), setup=put_memory)


def test_ld_of_an_accumulator_in_flight():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        tmem.ld(warp, 0, "32x32b", 32)

    with pytest.raises(ReadWhileInFlight, match=r"ld touches.*mma in flight writes"):
        landing_order(steps)


def test_mma_over_an_accumulator_that_is_being_loaded():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        yield from commit_and_wait(warp)
        tmem.ld(warp, 0, "32x32b", 32)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match=r"mma touches.*ld in flight reads"):
        launch(machine("late"), with_tmem(steps), setup=put_memory)


def test_dealloc_under_an_mma():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match="an access touches"):
        launch(machine("late"), with_tmem(steps), setup=put_memory)


@pytest.mark.parametrize("what", ["cp", "mma"])
def test_generic_stores_need_a_proxy_fence(what):
    def steps(fenced):
        def run(warp):
            easy_scales(warp)
            at = SF_AT + 500 if what == "cp" else B_AT + 12345
            smem.st(warp, at, random_bytes(1))
            if fenced:
                smem.fence_proxy_async(warp)
            if what == "cp":
                tcgen05.cp(warp, 400, SF_WORD | SF_AT >> 4)
            else:
                for k in range(4):
                    tcgen05.mma(
                        warp,
                        0,
                        descriptor(A_AT) + 2 * k,
                        descriptor(B_AT) + 2 * k,
                        idesc(),
                        SFA,
                        SFB,
                        False,
                    )

        return run

    launch(machine(), with_tmem(steps(True)), setup=put_memory)
    with pytest.raises(MissingProxyFence, match=r"1 bytes written by st\.shared"):
        launch(machine(), with_tmem(steps(False)), setup=put_memory)


def test_fences_change_nothing():
    """They touch no memory, and what is in flight stays so."""
    on = machine("late", trace=True)

    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        before = list(on.in_flight)
        tcgen05.fence_before_thread_sync(warp)
        tcgen05.fence_after_thread_sync(warp)
        assert before
        assert on.in_flight == before

    launch(on, with_tmem(steps, commit_and_wait), setup=put_memory)
    fences = [e for e in on.recorder.trace if "fence::" in e.operation]
    assert len(fences) == 2
    assert all(not e.reads and not e.writes for e in fences)
