"""Divergence and reconvergence, exits, traps and printing, on warps that take sides."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import bits32, lanes, machine, run

from fp4ref.errors import DeadlockError, NotModelled
from fp4ref.ptx import KernelTrap, PartialWarp, PtxError

LANE = np.arange(32, dtype=np.uint32)
BALLOT = "vote.sync.ballot.b32 %r9, 1, 0xffffffff;"
"""A fault unless all lanes are together."""


def ballot(pred: str = "%p0") -> str:
    return f"setp.eq.u32 {pred}, 0, 0; vote.sync.ballot.b32 %d, {pred}, 0xffffffff;"


def test_both_sides_of_a_branch_run_and_meet() -> None:
    body = """
        setp.lt.u32 %p1, %tid32, 10;
        @%p1 bra A;
        add.u32 %d, %tid32, 100;
        bra B;
    A:  add.u32 %d, %tid32, 200;
    B:  activemask.b32 %r1;
        setp.ne.u32 %p2, %r1, 0xffffffff;
        @%p2 trap;
    """
    want = np.where(LANE < 10, LANE + 200, LANE + 100)
    np.testing.assert_array_equal(lanes(body, "u4"), want)


def test_the_fall_through_side_runs_though_the_other_meets_first() -> None:
    body = """
        mov.u32 %d, 1;
        setp.lt.u32 %p1, %tid32, 16;
        @%p1 bra END;
        mov.u32 %d, 2;
    END: add.u32 %d, %d, 10;
    """
    np.testing.assert_array_equal(lanes(body, "u4"), np.where(LANE < 16, 11, 12))


def test_lanes_leave_a_loop_one_after_another() -> None:
    body = f"""
        mov.u32 %d, 0;
        mov.u32 %r1, 0;
    L:  add.u32 %r1, %r1, 1;
        add.u32 %d, %d, %r1;
        setp.lt.u32 %p1, %r1, %tid32;
        @%p1 bra L;
        setp.eq.u32 %p2, 0, 0;
        {BALLOT.replace(", 1,", ", %p2,")}
    """
    n = np.maximum(LANE, 1)
    np.testing.assert_array_equal(lanes(body, "u4"), n * (n + 1) // 2)


def test_nested_branches_inside_a_divergent_loop() -> None:
    a = bits32(3, 32) % np.uint32(50) + np.uint32(1)
    body = """
        mov.u32 %d, 0;
        mov.u32 %r1, %a;
    L:  setp.eq.u32 %p1, %r1, 1;
        @%p1 bra DONE;
        add.u32 %d, %d, 1;
        and.b32 %r2, %r1, 1;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra EVEN;
        mad.lo.u32 %r1, %r1, 3, 1;
        bra.uni L;
    EVEN: shr.u32 %r1, %r1, 1;
        bra.uni L;
    DONE: activemask.b32 %r3;
        setp.ne.u32 %p3, %r3, 0xffffffff;
        @%p3 trap;
    """

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    assert lanes(body, "u4", a=a).tolist() == [collatz(int(n)) for n in a]


@pytest.mark.parametrize("place", ["END", "SIDE"])
def test_lanes_meet_around_code_that_traps_and_a_return_in_the_middle(place) -> None:
    """As nvcc lays assertions out: the last instruction is no exit."""
    run(
        f"""
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 10;
        setp.eq.u32 %p2, %r1, %r1;
        bra.uni START;
    END: activemask.b32 %r2;
        setp.ne.u32 %p3, %r2, 0xffffffff;
        @%p3 trap;
        ret;
    START: @%p1 bra SIDE;
        @%p2 bra {place};
        brkpt;
        bra.uni END;
    SIDE: @%p2 bra PASSED;
        trap;
    PASSED: bra.uni END;
    """
    )


# -- lanes make progress by themselves

TWO_BARRIERS = """
    .shared .align 8 .b64 bar[2];
    mov.u32 %r1, bar;
    mov.u32 %r2, %tid.x;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
    @%p1 mbarrier.init.shared::cta.b64 [%r1+8], 1;
    bar.warp.sync -1;
"""


def waits(name: str, offset: int) -> str:
    return f"""
    {name}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+{offset}], 0;
        @!%p2 bra {name};
    """


def arrives(offset: int) -> str:
    return f"""
        setp.eq.u32 %p3, %r2, 1;
        @%p3 mbarrier.arrive.shared::cta.b64 _, [%r1+{offset}];
    """


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
@pytest.mark.parametrize("trace", [False, True])
def test_a_side_that_waits_lets_the_other_go_on(schedule, trace) -> None:
    """Lane 0 waits for lane 1, which then waits for lane 0, all in one warp."""
    body = f"""{TWO_BARRIERS}
        @%p1 bra FIRST;
        {arrives(0)}
        {waits("B", 8)}
        bra.uni END;
    FIRST:
        {waits("A", 0)}
        mbarrier.arrive.shared::cta.b64 _, [%r1+8];
    END: activemask.b32 %r3;
        setp.ne.u32 %p3, %r3, 0xffffffff;
        @%p3 trap;
    """
    run(body, on=machine(schedule, trace=trace))


def test_sides_that_wait_for_nobody_are_all_in_the_report() -> None:
    body = f"""{TWO_BARRIERS}
        @%p1 bra FIRST;
        {waits("B", 8)}
        bra.uni END;
    FIRST:
        {waits("A", 0)}
    END:
    """
    with pytest.raises(DeadlockError) as caught:
        run(body)
    for offset in (0, 8):
        assert f"{0x400 + offset:#x} parity 0" in str(caught.value)
    assert "root: smem0 0x4" in str(caught.value)


def test_registers_and_sources_of_a_side_survive_the_other() -> None:
    """What a test answers goes to the lanes that asked."""
    body = f"""{TWO_BARRIERS}
        mov.u32 %r4, 5;
        @%p1 bra FIRST;
        mov.u32 %r4, 7;
        {arrives(0)}
        bra.uni END;
    FIRST:
        {waits("A", 0)}
        selp.u32 %r4, 6, 0, %p2;
    END: setp.eq.u32 %p4, %r2, 0;
        selp.u32 %r5, 6, 7, %p4;
        setp.ne.u32 %p3, %r4, %r5;
        @%p3 trap;
    """
    run(body)


def test_random_nests_of_branches_equal_their_meaning() -> None:
    rng = np.random.default_rng(11)

    def build(depth: int) -> tuple[str, object]:
        """A nested if / else tree as text and as a Python function."""
        if depth == 0:
            k = int(rng.integers(1, 1 << 20))
            return f"add.u32 %d, %d, {k};", lambda x, d: d + k
        bit = int(rng.integers(0, 8))
        (yes, f), (no, g), (after, h) = (build(depth - 1) for _ in range(3))
        n = build.count = getattr(build, "count", 0) + 1
        text = (
            f"shr.u32 %r1, %a, {bit}; and.b32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0;"
            f"@%p1 bra Y{n}; {no} bra E{n}; Y{n}: {yes} E{n}: {after}"
        )
        return text, lambda x, d: h(x, f(x, d) if x >> bit & 1 else g(x, d))

    text, meaning = build(4)
    a = bits32(12, 64)
    d = lanes(f"mov.u32 %d, 0; {text} activemask.b32 %r2;", "u4", a=a)
    assert d.tolist() == [meaning(int(x), 0) % (1 << 32) for x in a]


def test_lanes_that_exit_inside_a_branch_do_not_come_back() -> None:
    on = machine()
    out = on.gmem.upload("out", np.zeros(32, np.uint32))
    run(
        f"""
        mov.u64 %rd1, {out};
        mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd1, %r1, 4, %rd1;
        setp.lt.u32 %p1, %r1, 20;
        @%p1 bra A;
        setp.lt.u32 %p2, %r1, 28;
        @%p2 ret;
        bra B;
    A:  setp.lt.u32 %p3, %r1, 4;
        @%p3 exit;
    B:  activemask.b32 %r2;
        st.global.u32 [%rd1], %r2;
        bar.sync 0;
        """,
        on=on,
    )
    found = on.gmem.contents(out, 128).view(np.uint32)
    alive = ((LANE >= 4) & (LANE < 20)) | (LANE >= 28)
    mask = sum(1 << int(i) for i in np.flatnonzero(alive))
    np.testing.assert_array_equal(found, np.where(alive, mask, 0))


@pytest.mark.parametrize("word", ["ret", "exit", "ret.uni"])
def test_an_exit_ends_the_warp(word: str) -> None:
    run(f"{word}; trap;")


def test_a_loop_without_end_for_some_lanes_does_not_swallow_the_exit() -> None:
    body = """
        mov.u32 %r1, %tid.x;
    L:  add.u32 %r1, %r1, 1;
        setp.gt.u32 %p1, %r1, 100;
        @%p1 exit;
        bra L;
    """
    run(body)


@pytest.mark.parametrize(
    "text",
    [
        "bar.sync 0;",
        "barrier.sync.aligned 1, 32;",
        "bar.arrive 1, 64;",
        "bar.warp.sync 0xffffffff;",
        "barrier.cluster.arrive.aligned;",
        "vote.sync.any.pred %p3, %p1, 0xffffffff;",
        "shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;",
        "elect.sync _|%p3, 0xffffffff;",
        "redux.sync.add.u32 %r2, %r1, 0xffffffff;",
        "tcgen05.wait::ld.sync.aligned;",
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
        "setmaxnreg.dec.sync.aligned.u32 40;",
    ],
)
def test_sync_and_aligned_need_the_lanes_together(text: str) -> None:
    body = f"""
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 7;
        @!%p1 bra E;
        {text}
    E:  mov.u32 %r3, 0;
    """
    with pytest.raises(PartialWarp, match=r"executed by[\s\S]*PTX line"):
        run(body)


def test_a_warp_of_fewer_threads_is_whole() -> None:
    run("bar.sync 0; bar.warp.sync 0xffffffff;", threads=40)


def test_threads_that_the_block_has_not_do_nothing() -> None:
    on = machine()
    total = on.gmem.upload("total", np.zeros(1, np.uint32))
    run(f"mov.u64 %rd1, {total}; red.global.add.u32 [%rd1], 1;", threads=40, on=on)
    assert on.gmem.contents(total, 4).view(np.uint32).tolist() == [40]


def test_uniform_branch_that_splits_is_a_fault() -> None:
    with pytest.raises(PartialWarp, match=r"bra\.uni taken by 5 of 32"):
        run("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra.uni E; E:")


def test_bar_sync_without_a_count_does_not_wait_for_warps_that_exited() -> None:
    run(
        "mov.u32 %r1, %warpid; setp.eq.u32 %p1, %r1, 1; @%p1 exit; bar.sync 0;",
        threads=96,
    )


@pytest.mark.parametrize("word", ["bar", "bar.cta", "barrier", "barrier.cta"])
def test_a_warp_that_arrives_goes_on_and_the_other_waits_for_it(word: str) -> None:
    body = f"""
        .shared .align 4 .b8 word[4]; mov.u32 %r1, word;
        setp.lt.u32 %p1, %tid32, 32; setp.eq.u32 %p2, %tid32, 32;
        @%p1 bra WAITS;
        @%p2 st.shared.b32 [%r1], 9;
        {word}.arrive 1, 64;
        bra.uni END;
    WAITS:
        bar.sync 1, 64;
        ld.shared.b32 %d, [%r1];
    END:
    """
    found = lanes(f"mov.b32 %d, 0; {body}", "u4", a=np.zeros(64, np.uint32))
    assert found.tolist() == [9] * 32 + [0] * 32


def test_trap_and_brkpt_stop_with_the_line() -> None:
    for word in ("trap", "brkpt"):
        with pytest.raises(
            KernelTrap, match=rf"{word} reached[\s\S]*lane 0[\s\S]*line"
        ):
            run(f"{word};")


STRING = "{:s} = {{{:s}}};"
FUNCTIONS = """
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a);
.extern .func other(.param .b64 a);
"""


def string(name: str, text: str) -> str:
    data = [*text.encode(), 0]
    return (
        f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};"
    )


def test_printf_formats_what_local_memory_holds() -> None:
    module = FUNCTIONS + string("text", "%d %5.2f %s|%x\n") + string("word", "yes")
    body = """
        .local .align 8 .b8 depot[32];
        mov.u64 %rd1, depot;
        cvta.local.u64 %rd2, %rd1;
        mov.u32 %r1, %tid.x;
        sub.s32 %r2, %r1, 1;
        st.local.u32 [%rd1], %r2;
        st.local.u64 [%rd1+8], 0d400921FB54442D18;
        mov.u64 %rd3, word;
        cvta.global.u64 %rd3, %rd3;
        st.local.u64 [%rd1+16], %rd3;
        st.local.u32 [%rd1+24], 255;
        mov.u64 %rd4, text;
        cvta.global.u64 %rd4, %rd4;
        setp.gt.u32 %p1, %r1, 1;
        @%p1 exit;
        { .param .b64 p0; .param .b64 p1; .param .b32 result;
          st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
          call.uni (result), vprintf, (p0, p1);
          ld.param.b32 %r3, [result]; }
    """
    assert run(body, module=module) == ["-1  3.14 yes|ff\n", "0  3.14 yes|ff\n"]


def test_a_failed_assertion_names_message_and_file() -> None:
    module = FUNCTIONS + string("message", "n > 0") + string("file", "dir/gemm.cu")
    body = """
        mov.u64 %rd1, message;
        mov.u64 %rd2, file;
        { .param .b64 p0; .param .b64 p1;
          st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2;
          call.uni __assertfail, (p0, p1); }
    """
    with pytest.raises(KernelTrap, match=r"assertion failed: n > 0 in gemm\.cu"):
        run(body, module=module)


def test_other_calls_are_refused_by_the_functions_name() -> None:
    with pytest.raises(NotModelled, match=r"call\.uni other \(line"):
        run("call.uni other, (x, y);", module=FUNCTIONS)


# -- loops that wait ---------------------------------------------

FLAG = ".shared .align 8 .b32 flag; mov.u32 %r1, %tid.x; mov.u32 %r9, %warpid;"


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
def test_a_loop_that_polls_memory_lets_the_writer_run(schedule: str | int) -> None:
    body = f"""{FLAG}
        setp.eq.u32 %p1, %r1, 0;
        @%p1 st.shared.u32 [flag], 0;
        bar.sync 0;
        setp.eq.u32 %p2, %r9, 1;
        @%p2 bra WRITE;
    L:  ld.volatile.shared.u32 %r2, [flag];
        setp.eq.u32 %p3, %r2, 0;
        @%p3 bra L;
        bra E;
    WRITE: setp.eq.u32 %p4, %r1, 32;
        @%p4 st.volatile.shared.u32 [flag], 1;
    E:  bar.sync 0;
    """
    run(body, threads=64, on=machine(schedule))


def test_a_loop_that_nobody_ends_is_a_deadlock_and_names_its_line() -> None:
    body = f"""{FLAG}
        st.shared.u32 [flag], 0;
    L:  ld.volatile.shared.u32 %r2, [flag];
        setp.eq.u32 %p3, %r2, 0;
        @%p3 bra L;
    """
    with pytest.raises(DeadlockError, match=r"a loop at PTX line \d+ that repeats"):
        run(body)


def test_a_spin_lock_is_taken_in_turn() -> None:
    on = machine()
    total = on.gmem.upload("total", np.zeros(2, np.uint32))
    body = f"""
        mov.u64 %rd1, {total};
        mov.u32 %r1, %laneid;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 exit;
    L:  atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1;
        setp.ne.u32 %p2, %r2, 0;
        @%p2 bra L;
        ld.global.u32 %r3, [%rd1+4];
        bar.sync 1, 128;
        add.u32 %r3, %r3, 1;
        st.global.u32 [%rd1+4], %r3;
        atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;
    """
    body = body.replace("bar.sync 1, 128;", "nanosleep.u32 20;")
    run(body, threads=128, on=on)
    assert on.gmem.contents(total, 8).view(np.uint32).tolist() == [0, 4]


def test_a_long_loop_of_arithmetic_is_not_taken_for_waiting() -> None:
    body = """
        mov.u32 %r1, 0;
    L:  add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 1000;
        @%p1 bra L;
        mov.u32 %d, %r1;
    """
    assert (lanes(body, "u4") == 1000).all()


def test_launch_checks_block_and_parameters() -> None:
    with pytest.raises(ValueError, match="1 to 1,024 threads"):
        run("", threads=1025)
    with pytest.raises(ValueError, match="0 parameter bytes; k takes 8"):
        run("", params=".param .u64 x")
    with pytest.raises(PtxError, match="branch to an unknown label nowhere"):
        run("bra nowhere;")
