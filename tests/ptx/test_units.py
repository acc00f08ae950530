"""Instructions of CLC, TMA and TMEM do what the raw-integer interface does."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
from barrier_text import BAR, init
from on_lanes import bits32, lanes, machine, run

from fp4ref.errors import (
    ClusterFault,
    NotModelled,
    RegistersNotReady,
    UninitialisedRead,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.clc import ClcFault
from fp4ref.hardware.tensor_map import DataType, TensorMap, TensorMapError
from fp4ref.ptx import IssueFault, PtxError, UndefinedRegister


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


def test_a_request_after_a_refusal_that_was_read_is_a_fault() -> None:
    """A CTA alone finds no other; it is a fault to ask again once it knows."""
    request = (
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;"
        "@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta"
        ".mbarrier::complete_tx::bytes.b128 [%r3], [%r1];"
    )
    wait = (
        "W{0}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], {0};@!%p2 bra W{0};"
    )
    start = (
        f".shared .align 16 .b8 answer[16]; {init(1)} mov.u32 %r3, answer; {request}"
    )
    start += wait.format(0)
    run(start + request + wait.format(1))
    with pytest.raises(ClcFault, match="after a request that found no cluster left"):
        run(start + "ld.shared.b128 %q1, [%r3];" + request + wait.format(1))


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


def test_a_map_of_zeros_may_be_prefetched_and_is_no_map() -> None:
    """CUTLASS's kernels without C prefetch one; the prefetch brings a cache line."""
    body = "mov.b64 %rd1, maps; cvta.param.u64 %rd2, %rd1; prefetch.tensormap [%rd2];"
    params = ".param .align 64 .b8 maps[128]"
    run(body, params=params, values=bytes(128))
    with pytest.raises(TensorMapError):
        run(body, params=params, values=bytes(127) + b"\x01")
    load = f"""
        .shared .align 128 .b8 tile[512]; {init(1)} mov.u32 %r3, tile;
        @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%r3], [%rd2, {{0}}], [%r1];
    """
    with pytest.raises(TensorMapError):
        run(body + load, params=params, values=bytes(128))


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


def test_packed_registers_are_the_low_halves_of_two_columns() -> None:
    a = bits32(4, 32)
    body = f"""{ALLOC}
        tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r21], {{%a}};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.pack::16b.x1.b32 {{%r2}}, [%r21];
        tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {{%r3}}, [%r21];
        tcgen05.wait::ld.sync.aligned;
        xor.b32 %r3, %r3, %r2;
        or.b32 %d, %r3, %r2;
        {FREE}
    """
    np.testing.assert_array_equal(lanes(body, "u4", a=a), a)
    half = body.replace(".x1.pack::16b.b32 {%r3}", ".x1.b32 {%r3}")
    with pytest.raises(UninitialisedRead, match="64 of 128 bytes"):
        lanes(half, "u4", a=a)


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


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize(
    ("use", "by_the_text"),
    [("add.u32 %d, %r2, 1;", nullcontext()),
     ("add.u32 %r2, %r2, 1; mov.u32 %d, %r2;", nullcontext()),
     ("mov.u32 %r2, 8; mov.u32 %d, %r2;", pytest.raises(RegistersNotReady)),
     ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r21]; mov.u32 %d, 8;",
      pytest.raises(RegistersNotReady))],
    ids=["read", "read and written", "written", "loaded again"],
)  # fmt: skip
def test_a_load_is_pending_until_its_wait(
    use: str, by_the_text: AbstractContextManager[object], schedule: str
) -> None:
    """Reading the register completes the load; overwriting it is a fault."""
    program = f"{PENDING} {use} tcgen05.wait::ld.sync.aligned; {FREE}"
    with by_the_text:
        assert (lanes(program, "u4", on=machine(schedule)) == 8).all()
    on = machine(schedule, "shipped")
    assert (lanes(program, "u4", on=on) == 8).all()
    # Only the load that was used has landed early.
    assert on.advisories == {Advisory.LOAD_WITHOUT_WAIT.value: 1}


def test_tcgen05_forms_that_are_not_modelled_are_refused() -> None:
    for text in (
        "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r2, %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, "
        "[%r3], [%r4], %p1",
        "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%r1], %rd1, "
        "%rd2, %r2, [%r3], [%r4], %p1",
        "tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r1], %rd1",
        "tcgen05.shift.cta_group::1.down [%r1]",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group "
        "[%rd1, {0, 0}], [%r1]",
        "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%r1], 1",
        "mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1]",
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
