"""Instructions of mbarriers do what the raw-integer interface does."""

from __future__ import annotations

import pytest
from barrier_text import BAR, FIRST, init, word
from on_lanes import kernel, machine, run

from fp4ref.errors import MbarrierFault, OutOfBounds
from fp4ref.hardware.mbarrier_unit import MbarrierState
from fp4ref.ptx import IssueFault, Program, PtxError, parse
from fp4ref.ptx.instructions.spin_loops import spins


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", (0, 68, 0)),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1], 2;", (0, 36, 0)),
        ("mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r1];", (0, 68, 0)),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];", (0, 68, 0)),
        ("@%p1 mbarrier.arrive.shared.b64 _, [%r1];", (0, 99, 0)),
        ("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;", (0, 99, 64)),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], %r2;", (0, 68, 496)),
        ("@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 7;", (0, 100, 7)),
        ("@%p1 mbarrier.complete_tx.shared::cluster.b64 [%r1], 7;", (0, 100, -7)),
        ("cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;"
         "mbarrier.arrive.b64 _, [%rd1];", (0, 68, 0)),
        ("add.u32 %r3, %r2, 1; setp.lt.u32 %p2, %r2, 4;"
         "@%p2 mbarrier.arrive.shared::cta.b64 _, [%r1], %r3;", (0, 90, 0)),
    ],
)  # fmt: skip
def test_arrivals_count_for_every_lane(text: str, counts: tuple[int, int, int]) -> None:
    on = machine()
    balance = f"@%p1 mbarrier.complete_tx.shared::cta.b64 [%r1], {max(counts[2], 0)};"
    balance += f"@%p1 mbarrier.expect_tx.shared::cta.b64 [%r1], {max(-counts[2], 0)};"
    run(f"{init(100)} {text} {balance}", on=on)
    assert word(on).counts == (counts[0], counts[1], 0)


def test_an_arrival_returns_the_state_before_it() -> None:
    body = (
        f"{init(3)} @!%p1 bra E; mbarrier.arrive.shared::cta.b64 %rd1, [%r1];"
        "mbarrier.pending_count.b64 %r3, %rd1;"
        "mbarrier.test_wait.shared::cta.b64 %p2, [%r1], %rd1;"
        "mbarrier.arrive.shared::cta.b64 %rd2, [%r1], 2;"
        "mbarrier.test_wait.acquire.cta.shared::cta.b64 %p3, [%r1], %rd1;"
        "setp.ne.u32 %p4, %r3, 3; @%p4 trap; @%p2 trap; @!%p3 trap; E:"
    )
    run(body)


def test_lanes_of_one_instruction_arrive_on_their_own_barriers() -> None:
    """`@p mapa` with the lane as rank, as CUTLASS's consumers release a stage."""
    on = machine(sms=2)
    body = f"""{init(2)}
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.acquire.aligned;
        setp.lt.u32 %p2, %r2, 2;
        @%p2 mapa.shared::cluster.u32 %r3, %r1, %r2;
        @%p2 mbarrier.arrive.shared::cluster.b64 _, [%r3];
    L:  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;
        @!%p3 bra L;
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.acquire.aligned;
    """
    run(body, on=on, grid=(2, 1, 1), cluster=(2, 1, 1))
    for sm in on.sms:
        state = MbarrierState.decode(
            int.from_bytes(sm.smem.data[:8].tobytes(), "little")
        )
        assert state.counts == (1, 2, 0)


def test_a_second_initialisation_needs_inval() -> None:
    again = "@%p1 mbarrier.init.shared::cta.b64 [%r1], 1;"
    with pytest.raises(MbarrierFault, match="on a live mbarrier"):
        run(f"{init(1)} {again}")
    run(f"{init(1)} @%p1 mbarrier.inval.shared::cta.b64 [%r1]; {again}")


def test_a_remote_arrival_returns_nothing() -> None:
    with pytest.raises(PtxError, match="returns no state"):
        run(f"{init(1)} mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];")


def test_a_generic_address_of_an_mbarrier_is_in_shared_memory() -> None:
    with pytest.raises(OutOfBounds, match="not in shared memory"):
        run("mov.u64 %rd1, 4096; mbarrier.arrive.b64 _, [%rd1];")


TRY = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0"
LOOPS = {
    "inline assembly": "{.reg .pred P1; W: mbarrier.try_wait.parity.shared::cta.b64 "
    "P1, [%r1], 0; @P1 bra D; bra W; D: }",
    "time hint": f"W: {TRY}, 0x989680; @!%p2 bra W;",
    "uniform": f"W: {TRY}; @%p2 bra.uni D; bra.uni W; D:",
    "selp": f"W: {TRY}; selp.b32 %r3, 1, 0, %p2; setp.eq.b32 %p3, %r3, 0; @%p3 bra W;",
    "selp and and": f"W: {TRY}; selp.u32 %r3, 1, 0, %p2; and.b32 %r4, %r3, 1;"
    "setp.ne.s32 %p3, %r4, 0; @%p3 bra D; bra W; D:",
    "not.pred": f"W: {TRY}; not.pred %p3, %p2; @%p3 bra W;",
    "sleep": f"W: {TRY.replace('try', 'test')}; @%p2 bra D; nanosleep.u32 20;bra W; D:",
    "test first": f"bra T; W: nanosleep.u32 5; T: {TRY}; @!%p2 bra W;",
}


def wait_of(text: str) -> bool:
    program = Program.of(parse(kernel(f"{BAR} {text}")))
    test = next(x for x in program.instructions if "_wait" in x.opcode)
    return spins(program, test)


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
@pytest.mark.parametrize("name", LOOPS)
def test_a_test_in_a_loop_parks_the_warp(name: str, schedule: str | int) -> None:
    assert wait_of(LOOPS[name])
    on = machine(schedule, trace=True)
    body = f"""{init(32)}
        mov.u32 %r9, %warpid;
        setp.eq.u32 %p6, %r9, 1;
        @%p6 bra OTHER;
        {LOOPS[name]}
        bra END;
    OTHER: mbarrier.arrive.shared::cta.b64 _, [%r1];
    END: bar.sync 0;
    """
    run(body, threads=64, on=on)
    names = [e.operation for e in on.recorder.trace.events]
    assert "mbarrier.test_wait.parity" not in names
    assert names.count("mbarrier.try_wait.parity") == 1


PEEKS = {
    "selp": f"{TRY}; selp.b32 %r3, 1, 0, %p2; st.shared.u32 [%r1+8], %r3;",
    "skips a wait": f"{TRY}; @%p2 bra D; W: {TRY}; @!%p2 bra W; D:",
    "gives up": f"W: {TRY}; add.u32 %r5, %r2, 1; setp.gt.u32 %p3, %r5, 4;"
    "@%p3 bra D; @!%p2 bra W; D:",
    "does something": f"W: {TRY}; st.shared.u32 [%r1+8], %r2; @!%p2 bra W;",
    "once": f"{TRY.replace('try', 'test')};",
}


@pytest.mark.parametrize("name", PEEKS)
def test_a_test_that_does_not_come_back_is_a_peek(name: str) -> None:
    assert not wait_of(PEEKS[name])


def test_a_loop_of_another_shape_parks_at_its_second_turn() -> None:
    """A load on the way is more than the program text is followed through."""
    loop = f"W: {TRY}; ld.shared.u64 %rd1, [%r7]; @!%p2 bra W;"
    assert not wait_of(loop)
    on = machine("late", trace=True)
    body = f""".shared .align 8 .b64 word; mov.u32 %r7, word;
        mov.u32 %r2, %tid.x; {FIRST} @%p1 st.shared.u64 [%r7], 0; {init(32)}
        mov.u32 %r9, %warpid;
        setp.eq.u32 %p6, %r9, 1;
        @%p6 bra OTHER;
        {loop}
        bra END;
    OTHER: mbarrier.arrive.shared::cta.b64 _, [%r1];
    END: bar.sync 0;
    """
    run(body, threads=64, on=on)
    names = [e.operation for e in on.recorder.trace.events]
    assert names.count("mbarrier.test_wait.parity") == 1
    assert names.count("mbarrier.try_wait.parity") == 1


def test_a_peek_is_late_under_the_late_schedule() -> None:
    body = (
        f"{init(32)} mbarrier.arrive.shared::cta.b64 _, [%r1];"
        "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;"
    )
    run(f"{body} @!%p2 trap;", on=machine("eager"))
    run(f"{body} @%p2 trap;", on=machine("late"))


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2, 3])
def test_two_barriers_polled_in_turn(schedule: str | int) -> None:
    """No single test comes straight back to itself, yet the loop must wait."""
    body = f"""
        .shared .align 8 .b64 bar[2]; mov.u32 %r1, bar; mov.u32 %r2, %tid.x; {FIRST}
        @%p1 mbarrier.init.shared::cta.b64 [%r1], 32;
        @%p1 mbarrier.init.shared::cta.b64 [%r1+8], 32;
        bar.sync 0;
        mov.u32 %r9, %warpid;
        setp.eq.u32 %p6, %r9, 1;
        @%p6 bra OTHER;
    W:  mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
        @%p2 bra END;
        mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1+8], 0;
        @!%p2 bra W;
        bra END;
    OTHER: mbarrier.arrive.shared::cta.b64 _, [%r1+8];
    END: bar.sync 0;
    """
    run(body, threads=64, on=machine(schedule))


def test_operands_of_one_operation_do_not_differ_by_lane() -> None:
    with pytest.raises(IssueFault, match="the phase differs between the lanes"):
        run(f"{init(1)} mbarrier.test_wait.parity.shared.b64 %p2, [%r1], %r2;")
    with pytest.raises(IssueFault, match="executed by 32 lanes"):
        run(f"{BAR} mbarrier.init.shared::cta.b64 [%r1], 1;")
