"""``cp.async`` groups: what a wait guarantees, and to whom."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import machine, run

from fp4ref.errors import DeadlockError, ReadWhileInFlight
from fp4ref.hardware.order.race import RaceFault

COPIES = """
    .shared .align 16 .b32 words[128];
    mov.u32 %r2, %tid.x; mov.u32 %r5, words;
    mad.lo.u32 %r6, %r2, 4, %r5;
    mad.wide.u32 %rd1, %r2, 4, SOURCE;
    mad.wide.u32 %rd3, %r2, 4, TARGET;
    setp.lt.u32 %p2, %r2, 16;
"""
FIRST = "cp.async.ca.shared.global [%r6], [%rd1], 4; cp.async.commit_group;"
SECOND = "cp.async.ca.shared.global [%r6+128], [%rd1+128], 4; cp.async.commit_group;"
READ = "ld.shared.b32 %r8, [%r6]; st.global.b32 [%rd3], %r8;"
READ_SECOND = "ld.shared.b32 %r8, [%r6+128]; st.global.b32 [%rd3+128], %r8;"
NOT_ORDERED = (RaceFault, ReadWhileInFlight)
WORDS = np.arange(64, dtype=np.uint32) * 3 + 1


def copies(
    body: str, schedule: str | int = "late", threads: int = 32
) -> NDArray[np.uint32]:
    """Return what the body stored; raises what is not ordered."""
    on = machine(schedule, races="raise")
    source = on.gmem.upload("source", WORDS)
    target = on.gmem.upload("target", np.zeros(64, np.uint32))
    text = COPIES.replace("SOURCE", str(source)).replace("TARGET", str(target))
    run(f"{text}{body} cp.async.wait_all;", on=on, threads=threads)
    return on.gmem.contents(target, 256).view(np.uint32)


@pytest.mark.parametrize("schedule", ["eager", "late", 2])
def test_a_wait_leaves_the_newest_groups_in_flight(schedule: str | int) -> None:
    wait = "cp.async.wait_group 1;"
    found = copies(FIRST + SECOND + wait + READ, schedule)
    np.testing.assert_array_equal(found[:32], WORDS[:32])
    found = copies(FIRST + SECOND + "cp.async.wait_group 0;" + READ_SECOND, schedule)
    np.testing.assert_array_equal(found[32:], WORDS[32:])
    with pytest.raises(NOT_ORDERED):
        copies(FIRST + SECOND + wait + READ_SECOND, schedule)


def test_a_copy_that_is_in_no_group_is_not_waited_for() -> None:
    open_copy = FIRST.replace("cp.async.commit_group;", "")
    with pytest.raises(NOT_ORDERED):
        copies(open_copy + "cp.async.wait_group 0;" + READ)
    found = copies(open_copy + "cp.async.wait_all;" + READ)
    np.testing.assert_array_equal(found[:32], WORDS[:32])


def test_an_empty_group_counts() -> None:
    with pytest.raises(NOT_ORDERED):
        copies(FIRST + "cp.async.wait_group 1;" + READ)
    copies(FIRST + "cp.async.commit_group; cp.async.wait_group 1;" + READ)


def test_a_group_is_a_thread_s_own() -> None:
    """Half of the lanes commit once more: for them the first group is older."""
    more = "@%p2 cp.async.commit_group; cp.async.wait_group 1;"
    found = copies(f"{FIRST}{more} @!%p2 bra DONE; {READ} DONE:")
    np.testing.assert_array_equal(found[:16], WORDS[:16])
    with pytest.raises(NOT_ORDERED):
        copies(f"{FIRST}{more} @%p2 bra DONE; {READ} DONE:")


def test_a_lane_whose_source_is_ignored_gets_zeros() -> None:
    body = FIRST.replace("[%rd1], 4;", "[%rd1], 4, %p2;") + "cp.async.wait_all;" + READ
    found = copies(body)
    np.testing.assert_array_equal(found[:16], 0)
    np.testing.assert_array_equal(found[16:32], WORDS[16:32])


def test_another_thread_needs_a_barrier_behind_the_wait() -> None:
    """Warp 1 reads what warp 0 copied: the wait alone does not order it."""

    def program(barrier: str) -> str:
        return (
            "setp.ge.u32 %p3, %r2, 32; @%p3 bra THERE;"
            f"{FIRST} cp.async.wait_group 0; {barrier} bra DONE;"
            f"THERE: {barrier} sub.u32 %r6, %r6, 128; {READ} DONE:"
        )

    copies(program("bar.sync 0;"), "eager", 64)
    with pytest.raises(NOT_ORDERED):
        copies(program(""), "eager", 64)


ARRIVAL = """
    .shared .align 8 .b64 full; .shared .align 16 .b32 words[32];
    mov.u32 %r1, full; mov.u32 %r2, %tid.x; mov.u32 %r5, words;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], COUNT;
    bar.sync 0;
    mad.lo.u32 %r6, %r2, 4, %r5;
    mad.wide.u32 %rd1, %r2, 4, SOURCE;
    cp.async.ca.shared.global [%r6], [%rd1], 4;
    cp.async.mbarrier.arrive.shared.b64 [%r1];
    @%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;
    @!%p3 bra W;
    ld.shared.b32 %r8, [%r6];
    mad.wide.u32 %rd3, %r2, 4, TARGET;
    st.global.b32 [%rd3], %r8;
"""


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_an_arrival_that_counts_is_not_among_those_of_the_init(
    schedule: str | int,
) -> None:
    on = machine(schedule)
    source = on.gmem.upload("source", WORDS)
    target = on.gmem.upload("target", np.zeros(32, np.uint32))
    body = ARRIVAL.replace("SOURCE", str(source)).replace("TARGET", str(target))
    run(body.replace("COUNT", "1"), on=on)
    found = on.gmem.contents(target, 128).view(np.uint32)
    np.testing.assert_array_equal(found, WORDS[:32])
    again = machine(schedule)
    again.gmem.upload("source", WORDS)
    again.gmem.upload("target", np.zeros(32, np.uint32))
    with pytest.raises(DeadlockError):
        run(body.replace("COUNT", "2"), on=again)
