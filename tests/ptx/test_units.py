"""Hardware instructions do what the machine's raw-integer interface does."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from on_lanes import bits32, kernel, lanes, machine, run

from fp4ref.errors import (
    ClusterFault,
    MbarrierFault,
    NotModelled,
    OutOfBounds,
    RegistersNotReady,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.mbarrier_unit import MbarrierState
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.ptx import (
    IssueFault,
    Program,
    PtxError,
    UndefinedRegister,
    launch,
    parse,
)
from fp4ref.ptx.instructions.spin_loops import spins

BAR = ".shared .align 8 .b64 bar; mov.u32 %r1, bar; mov.u32 %r2, %tid.x;"
FIRST = "setp.eq.u32 %p1, %r2, 0;"


def init(count: int) -> str:
    return (
        f"{BAR}{FIRST} @%p1 mbarrier.init.shared::cta.b64 [%r1], {count}; bar.sync 0;"
    )


def word(on: object) -> MbarrierState:
    data = on.sms[0].smem.data[:8].tobytes()  # type: ignore[attr-defined]
    return MbarrierState.decode(int.from_bytes(data, "little"))


# -- mbarriers ---------------------------------------------


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
    loop = f"W: {TRY}; ld.shared.u64 %rd1, [%r1]; @!%p2 bra W;"
    assert not wait_of(loop)
    on = machine("late", trace=True)
    body = f"""{init(32)}
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


# -- cluster launch control ---------------------------------------------


def test_clc_answers_and_undefined_coordinates() -> None:
    on = machine(sms=1)
    out = on.gmem.upload("out", np.zeros(8, np.uint32))
    request = (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
        ".multicast::cluster::all.b128"
    )
    body = f"""
        .shared .align 16 .b8 answer[16]; {init(1)}
        mov.u32 %r3, answer;
        mov.u32 %r9, 0;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
        @%p1 {request} [%r3], [%r1];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
        @!%p2 bra W;
        ld.shared.b128 %q1, [%r3];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
        @%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128
            {{%r4, %r5, %r6, _}}, %q1;
        add.u32 %r7, %r4, 100;
        selp.u32 %r7, %r7, 7, %p3;
        clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r8, %q1;
        selp.u32 %r8, %r8, 9, %p3;
        mov.u32 %r10, %ctaid.x;
        mad.wide.u32 %rd1, %r10, 8, {out};
        @%p1 st.global.v2.u32 [%rd1], {{%r7, %r8}};
    """
    run(body, on=on, grid=(3, 1, 1))
    found = on.gmem.contents(out, 24).view(np.uint32).reshape(3, 2)
    # CTA 0 took 1's work; 2 found nothing left.
    assert found.tolist() == [[101, 1], [0, 0], [7, 9]]
    careless = body.replace("selp.u32 %r8, %r8, 9, %p3;", "")
    with pytest.raises(UndefinedRegister, match="%r8"):
        run(careless, on=on, grid=(3, 1, 1))


# -- TMA and TMEM ---------------------------------------------


def test_tensor_loads_and_stores_take_their_map_from_a_parameter() -> None:
    on = machine("late")
    a = bits32(1, 256).reshape(8, 32)
    src, dst = on.gmem.upload("a", a), on.gmem.upload("d", np.zeros_like(a))
    maps = b"".join(
        TensorMap(DataType.UINT32, at, (32, 8), (128,), (32, 4)).to_bytes()
        for at in (src, dst)
    )
    params = ".param .align 64 .b8 maps[256]"
    body = f"""
        .shared .align 128 .b8 tile[512]; {init(1)}
        mov.u32 %r3, tile;
        mov.b64 %rd1, maps;
        cvta.param.u64 %rd2, %rd1;
        prefetch.tensormap [%rd2];
        @%p1 mbarrier.expect_tx.shared::cta.b64 [%r1], 512;
        mov.u32 %r4, -2;
        @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%r3], [%rd2, {{0, %r4}}], [%r1];
        @%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
        @!%p2 bra W;
        cp.async.bulk.tensor.2d.global.shared::cta.bulk_group
            [%rd2 + 128, {{0, 1}}], [%r3];
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0;
        cp.async.bulk.wait_group 0;
    """
    run(body, params=params, values=maps, on=on)
    found = on.gmem.contents(dst, 1024).view(np.uint32).reshape(8, 32)
    want = np.zeros_like(a)
    want[3:5] = a[:2]
    np.testing.assert_array_equal(found, want)


def test_a_store_by_all_lanes_is_one_operation() -> None:
    on = machine("late", trace=True)
    dst = on.gmem.allocate("d", 512)
    m = TensorMap(DataType.UINT32, dst, (128,), (), (128,)).to_bytes()
    body = """
        .shared .align 128 .b8 tile[512]; mov.u32 %r1, %tid.x; mov.u32 %r3, tile;
        shl.b32 %r2, %r1, 4; add.u32 %r2, %r3, %r2; mov.b64 %rd1, maps;
        cvta.param.u64 %rd2, %rd1; mov.u32 %r4, OFFSET;
        st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};
        fence.proxy.async.shared::cta; bar.sync 0;
        cp.async.bulk.tensor.1d.global.shared::cta.bulk_group
            [%rd2, {%r4}], [%r3];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    how = {"params": ".param .align 64 .b8 maps[128]", "values": m}
    run(body.replace("OFFSET", "0"), on=on, **how)
    issued = [e for e in on.recorder.trace if e.kind == "issue"]
    assert [e.operation for e in issued] == ["cp.async.bulk.tensor.1d.store"]
    found = on.gmem.contents(dst, 512).view(np.uint32)
    np.testing.assert_array_equal(found, np.repeat(np.arange(32), 4))
    with pytest.raises(IssueFault, match="a coordinate differs between the lanes"):
        run(body.replace("OFFSET", "%tid.x"), **how)


def test_a_load_by_several_lanes_is_a_fault() -> None:
    text = (
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {0}], [%r1];"
    )
    with pytest.raises(IssueFault, match="executed by 32 lanes"):
        run(f"{BAR} mov.u64 %rd1, 0; {text}")
    with pytest.raises(PtxError, match=r"needs \[map, \{1 coordinates\}\]"):
        run(f"{BAR} mov.u64 %rd1, 0; {text.replace('{0}', '{0, 1}')}")


ALLOC = """
    .shared .align 4 .b32 where; mov.u32 %r20, where;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], 64;
    ld.shared.u32 %r21, [%r20];
"""
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 64;"


def test_tmem_stores_come_back_by_loads() -> None:
    a = bits32(2, 32)
    body = f"""{ALLOC}
        add.u32 %r1, %a, 1;
        tcgen05.st.sync.aligned.32x32b.x2.b32 [%r21+4], {{%a, %r1}};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r2, %d}}, [%r21 + 4];
        tcgen05.wait::ld.sync.aligned;
        {FREE}
    """
    for schedule in ("eager", "late", 1):
        d = lanes(body, "u4", a=a, on=machine(schedule))
        np.testing.assert_array_equal(d, a + np.uint32(1))


def test_the_halves_of_16x32bx2_are_split_as_asked() -> None:
    a = bits32(3, 32)
    body = f"""{ALLOC}
        tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r21], 8, {{%a}};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {{%d}}, [%r21], 8;
        tcgen05.wait::ld.sync.aligned;
        {FREE}
    """
    np.testing.assert_array_equal(lanes(body, "u4", a=a), a)


PENDING = f"""{ALLOC}
    mov.u32 %r1, 7;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r21], {{%r1}};
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r21+1], {{%r1}};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r2}}, [%r21];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r21+1];
"""


@pytest.mark.parametrize(
    "use", ["add.u32 %d, %r2, 1;", "mov.u32 %r2, 8; mov.u32 %d, %r2;",
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r21]; mov.u32 %d, 8;"]
)  # fmt: skip
def test_a_load_is_pending_until_its_wait(use: str) -> None:
    """Reading the register is a fault, and so is overwriting it."""
    end = f"tcgen05.wait::ld.sync.aligned; {FREE}"
    for schedule in ("eager", "late"):
        with pytest.raises(RegistersNotReady):
            lanes(f"{PENDING} {use} {end}", "u4", on=machine(schedule))
        on = machine(schedule, "shipped")
        assert (lanes(f"{PENDING} {use} {end}", "u4", on=on) == 8).all()
        # Only the load that was used has landed early.
        assert on.advisories == {
            "tcgen05.ld result used without tcgen05.wait::ld": 1
        }  # fmt: skip


def test_tcgen05_forms_that_are_not_modelled_are_refused() -> None:
    for text in (
        "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r2, %p1",
        "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [%r1], %rd1, "
        "%rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::use "
        "[%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, "
        "[%r3], [%r4], %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%r1], %rd1, "
        "%rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1], [%r2], "
        "%rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.cp.cta_group::1.128x256b [%r1], %rd1",
        "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%r1, %r2}, [%r3]",
        "tcgen05.shift.cta_group::1.down [%r1]",
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 64",
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::"
        "complete_tx::bytes [%r1], [%rd1, {0, 0}], [%r1]",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group "
        "[%rd1, {0, 0}], [%r1]",
        "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%r1], 1",
        "mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1]",
        "bar.red.popc.u32 %r1, 0, %p1",
        "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128",
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1",
    ):
        opcode = text.split()[0].replace(".", "[.]")
        with pytest.raises(NotModelled, match=rf"{opcode} \(line \d+"):
            run(f"{text};")


def test_registers_fit_the_shape() -> None:
    with pytest.raises(PtxError, match="with 3 registers"):
        run("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2, %r3}, [%r4];")


def test_cluster_waits_follow_arrivals() -> None:
    with pytest.raises(ClusterFault, match="without an arrive"):
        run("barrier.cluster.wait.acquire.aligned;")


@pytest.mark.parametrize(
    ("sfb_column", "advised"),
    [(132, {}), (133, {Advisory.ODD_SCALE_COLUMN.value: 1})],
)
def test_a_block_scaled_mma_by_hand(sfb_column: int, advised: dict[str, int]) -> None:
    """Operands through ordinary stores, scales by tcgen05.cp, the bits of the model."""
    from fp4ref.numerics import ScaleFormat, mma_block_scaled, pack_e2m1

    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 16, (128, 64), np.uint8) for _ in range(2))
    sfa, sfb = (rng.integers(0, 127, (128, 4), np.uint8) for _ in range(2))

    def core(codes: np.ndarray) -> bytes:
        """8 x 16-byte core matrices: rows, then the two halves of K."""
        rows = pack_e2m1(codes).reshape(16, 8, 2, 16)
        return rows.transpose(0, 2, 1, 3).tobytes()

    def atom(scales: np.ndarray) -> bytes:
        return scales.reshape(4, 32, 4).transpose(1, 0, 2).tobytes()

    data = core(a) + core(b) + atom(sfa) + atom(sfb)
    on = machine()
    source = on.gmem.upload("source", np.frombuffer(data, np.uint8))
    out = on.gmem.upload("out", np.zeros((128, 32), np.float32))
    desc = 1 << 46 | (128 >> 4) << 16 | (256 >> 4) << 32
    body = f"""
        .shared .align 1024 .b8 tile[9216]; .shared .align 8 .b64 done;
        .shared .b32 where;
        mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mov.u32 %r3, %warpid; mov.u32 %r4, done;
        mov.u32 %r20, where;
        mad.wide.u32 %rd1, %r2, 16, {source};
        mad.lo.u32 %r5, %r2, 16, %r1;
        mov.u32 %r6, 0;
    C:  ld.global.v4.b32 {{%r7, %r8, %r9, %r10}}, [%rd1];
        st.shared.v4.b32 [%r5], {{%r7, %r8, %r9, %r10}};
        add.u64 %rd1, %rd1, 2048;
        add.u32 %r5, %r5, 2048;
        add.u32 %r6, %r6, 1;
        setp.lt.u32 %p1, %r6, 4;
        @%p1 bra C;
        setp.lt.u32 %p1, %r2, 64;
        @%p1 ld.global.v4.b32 {{%r7, %r8, %r9, %r10}}, [%rd1];
        @%p1 st.shared.v4.b32 [%r5], {{%r7, %r8, %r9, %r10}};
        fence.proxy.async.shared::cta;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 mbarrier.init.shared::cta.b64 [%r4], 1;
        setp.ne.u32 %p3, %r3, 0;
        @%p3 bra J;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], 256;
    J:  bar.sync 0;
        ld.shared.u32 %r21, [%r20];
        add.u32 %r22, %r21, 128;
        add.u32 %r23, %r21, {sfb_column};
        cvt.u64.u32 %rd2, %r1;
        shr.u64 %rd2, %rd2, 4;
        or.b64 %rd3, %rd2, {desc};
        add.u64 %rd4, %rd3, 256;
        or.b64 %rd5, %rd2, {1 << 46 | 8 << 32};
        add.u64 %rd6, %rd5, 544;
        add.u64 %rd5, %rd5, 512;
        @!%p2 bra W;
        tcgen05.cp.cta_group::1.32x128b.warpx4 [%r22], %rd5;
        tcgen05.cp.cta_group::1.32x128b.warpx4 [%r23], %rd6;
        setp.ne.u32 %p4, 0, 0;
        tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X
            [%r21], %rd3, %rd4, 0x08200480, [%r22], [%r23], %p4;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
        @!%p5 bra W;
        tcgen05.fence::after_thread_sync;
        shl.b32 %r24, %r3, 21;
        add.u32 %r24, %r24, %r21;
        mad.wide.u32 %rd7, %r2, 4, {out};
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r25}}, [%r24+5];
        tcgen05.wait::ld.sync.aligned;
        st.global.b32 [%rd7], %r25;
        bar.sync 0;
        @%p3 ret;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 256;
    """
    program = Program.of(parse(kernel(body)))
    launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
    found = on.gmem.contents(out, 512).view(np.uint32)
    want = mma_block_scaled(
        a, b, sfa, sfb, None, scale_format=ScaleFormat.UE4M3, vec_size=16
    )
    np.testing.assert_array_equal(found, want[:, 5].view(np.uint32))
    assert on.advisories == advised
