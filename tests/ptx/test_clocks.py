"""``%clock64`` and ``%globaltimer``: readings grow, delays end, limits can wait."""

from __future__ import annotations

import time

import numpy as np
import pytest

from fp4ref.errors import DeadlockError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch, parse
from fp4ref.ptx.instructions.control import KernelTrap

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
"""
POLL = """
    mov.u64 %rd2, %clock64;
    POLL: ld.relaxed.gpu.global.u32 %r2, [%rd1+64];
    setp.ne.u32 %p3, %r2, 0;
    @%p3 bra SEEN;
    mov.u64 %rd3, %clock64;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, 100000;
    @%p1 bra POLL;
    trap;
    SEEN: @%p4 st.global.u32 [%rd1], %r2;
    ret;
"""
ROLES = "setp.eq.u32 %p4, %r1, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra OTHER;"


def run(body: str, threads: int = 32, schedule: str | int = "eager") -> np.ndarray:
    """Launch one CTA; returns what it wrote, as words of 64 bits."""
    machine = Machine(1, make_schedule(schedule))
    at = machine.gmem.upload("out", np.zeros(1024, np.uint8))
    program = Program.of(parse(f"{HEAD}{body}\n}}"), "k")
    params = at.to_bytes(8, "little")
    launch(machine, program, (1, 1, 1), (threads, 1, 1), params)
    return machine.gmem.contents(at, 1024).view("<u8")


def test_a_reading_is_larger_than_those_before_it():
    names = ("%clock64", "%globaltimer", "%clock64", "%globaltimer")
    body = "".join(
        f"mov.u64 %rd2, {name}; st.global.u64 [%rd1+{8 * i}], %rd2;"
        for i, name in enumerate(names)
    )
    found = run(body)[:4]
    assert (np.diff(found.astype(np.int64)) > 0).all()


def test_readings_without_anything_between_stay_in_their_order():
    """Such instructions are done in one go, in any order."""
    read = "".join(f"mov.u64 %rd{i}, %clock64;" for i in range(2, 8))
    store = "".join(f"st.global.u64 [%rd1+{8 * i}], %rd{i + 2};" for i in range(6))
    found = run(read + store)[:6]
    assert (np.diff(found.astype(np.int64)) > 0).all()


@pytest.mark.parametrize("name", ["clock", "globaltimer"])
def test_halves_of_a_reading(name):
    wide = "%clock64" if name == "clock" else "%globaltimer"
    low = "%clock" if name == "clock" else "%globaltimer_lo"
    later = f"DELAY: mov.u64 %rd2, {wide}; setp.lt.u64 %p1, %rd2, 0x500000000;"
    body = (
        f"{later} @%p1 bra DELAY; mov.u32 %r2, {low}; mov.u32 %r3, %{name}_hi;"
        "st.global.u64 [%rd1], %rd2; st.global.u32 [%rd1+8], %r2;"
        "st.global.u32 [%rd1+12], %r3;"
    )
    whole, halves = run(body)[:2].tolist()
    assert whole >= 0x5_0000_0000
    assert halves == whole + 1


@pytest.mark.parametrize("cycles", [100, 10**6, 10**12])
def test_a_delay_ends_soon_and_is_not_much_longer(cycles):
    before = time.process_time()
    body = f"""
    mov.u64 %rd2, %clock64;
    DELAY: mov.u64 %rd3, %clock64; sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, {cycles};
    @%p1 bra DELAY;
    st.global.u64 [%rd1], %rd4;
    """
    assert cycles <= run(body)[0] <= 3 * cycles + 1000
    assert time.process_time() - before < 20  # 10^12 readings would take weeks


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2])
def test_a_limit_does_not_pass_while_others_have_work(schedule):
    """The flag comes after a delay of a fifth of the limit."""
    other = """
    OTHER: mov.u64 %rd2, %clock64;
    DELAY: mov.u64 %rd3, %clock64; sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, 20000;
    @%p1 bra DELAY;
    mov.u32 %r5, 9;
    st.relaxed.gpu.global.u32 [%rd1+64], %r5;
    """
    assert run(ROLES + POLL + other, 64, schedule)[0] == 9


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_a_limit_passes_where_nothing_else_can_happen(schedule):
    with pytest.raises(KernelTrap):
        run(f"{ROLES}{POLL} OTHER: ret;", 64, schedule)


def test_a_loop_that_no_time_ends_is_a_deadlock():
    poll = POLL.replace("trap;", "bra POLL;")
    with pytest.raises(DeadlockError, match="1 warps wait") as caught:
        run(f"{ROLES}{poll} OTHER: ret;", 64)
    assert "reads the time, and no time is enough" in caught.value.edges[0][1]


def test_a_limit_does_not_pass_while_a_copy_is_under_way():
    """Under late it lands when no warp can go on, which comes before time does."""
    body = """
    setp.ne.u32 %p2, %r1, 0;
    @%p2 ret;
    mov.u32 %r6, 1024;
    mbarrier.init.shared.b64 [%r6], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 16;
    add.u32 %r7, %r6, 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r7], [%rd1], 16, [%r6];
    mov.u64 %rd2, %clock64;
    POLL: mbarrier.test_wait.parity.shared.b64 %p3, [%r6], 0;
    @%p3 bra SEEN;
    mov.u64 %rd3, %clock64;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, 100;
    @%p1 bra POLL;
    trap;
    SEEN: mov.u32 %r2, 5;
    st.global.u32 [%rd1], %r2;
    """
    body = body.replace("mov.u32 %r6, 1024;", "mov.u32 %r6, words;")
    assert run(".shared .align 16 .b8 words[64];" + body, schedule="late")[0] == 5
