"""TMA and CLC in clusters, from PTX text as CUTLASS writes it."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import bits32, machine, run

from fp4ref.errors import ClusterFault, LaunchFault
from fp4ref.hardware.tensor_map import DataType, TensorMap

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
START = f"""
    .shared .align 8 .b64 bar; .shared .align 128 .b8 tile[512];
    mov.u32 %r1, bar; mov.u32 %r3, tile;
    mov.u32 %r20, %tid.x; setp.eq.u32 %p1, %r20, 0;
    mov.u32 %r21, %cluster_ctarank; setp.eq.u32 %p3, %r21, 0;
    mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    {MEET}
"""
"""A barrier in each CTA; %p1: the first thread, %p3: the first rank."""


def map_of(on, elements):
    address = on.gmem.upload("a", elements)
    return TensorMap(DataType.UINT32, address, (32, 8), (128,), (32, 4)).to_bytes()


def pair_load(opcode: str) -> str:
    """Each CTA loads its half, and the leader waits for the bytes of both."""
    return f"""{START}
        and.pred %p4, %p1, %p3;
        @%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;
        and.b32 %r2, %r1, 0xFEFFFFFF;
        mul.lo.u32 %r4, %r21, 4;
        @%p1 {opcode} [%r3], [%rd2, {{0, %r4}}], [%r2];
        @!%p3 bra D;
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
        @!%p2 bra W;
    D:  {MEET}
    """


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
@pytest.mark.parametrize(
    "opcode",
    [
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global"
        ".mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
        ".mbarrier::complete_tx::bytes.cta_group::2",
    ],
)
def test_both_boxes_of_a_pair_count_on_the_leader(opcode, schedule):
    on = machine(schedule, sms=2, trace=True)
    a = bits32(1, 256).reshape(8, 32)
    params = ".param .align 64 .b8 map[128]"
    run(pair_load(opcode), on=on, params=params, values=map_of(on, a), **PAIR)
    for sm, half in zip(on.sms, (a[:4], a[4:]), strict=True):
        assert half.tobytes() in sm.smem.data.tobytes()


def test_without_the_group_a_barrier_of_the_leader_is_refused():
    on = machine(sms=2)
    text = pair_load(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    )
    params = ".param .align 64 .b8 map[128]"
    with pytest.raises(ClusterFault, match="same CTA"):
        run(text, on=on, params=params, values=map_of(on, bits32(1, 256)), **PAIR)


def test_a_remote_barrier_needs_a_cluster_destination():
    on = machine(sms=2)
    text = pair_load(
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"
        ".cta_group::2"
    )
    params = ".param .align 64 .b8 map[128]"
    with pytest.raises(ClusterFault, match="executing CTA"):
        run(text, on=on, params=params, values=map_of(on, bits32(1, 256)), **PAIR)


REQUEST = (
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    ".multicast::cluster::all.b128"
)


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_one_request_answers_every_cta_of_the_cluster(schedule):
    """Rank 1 asks; both CTAs read the first CTA of the cluster behind theirs."""
    on = machine(schedule, sms=2, trace=True)
    out = on.gmem.upload("out", np.zeros(4, np.uint32))
    body = f"""
        .shared .align 8 .b64 bar; .shared .align 16 .b8 answer[16];
        mov.u32 %r1, bar; mov.u32 %r3, answer;
        mov.u32 %r20, %tid.x; setp.eq.u32 %p1, %r20, 0;
        mov.u32 %r21, %cluster_ctarank; setp.eq.u32 %p3, %r21, 1;
        and.pred %p4, %p1, %p3;
        @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
        @%p1 fence.mbarrier_init.release.cluster;
        {MEET}
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
        @%p4 {REQUEST} [%r3], [%r1];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
        @!%p2 bra W;
        ld.shared.b128 %q1, [%r3];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %q1;
        mov.u32 %r4, 9;
        @%p5 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r4, %q1;
        mad.wide.u32 %rd1, %r21, 4, {out};
        @%p1 st.global.u32 [%rd1], %r4;
        {MEET}
    """
    run(body, on=on, grid=(4, 1, 1), cluster=(2, 1, 1))
    assert on.gmem.contents(out, 8).view(np.uint32).tolist() == [2, 2]
    assert on.stats["cta"] == 2


PAIR_LOAD = (
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    ".cta_group::2 [%r1], [%rd1, {%r1, %r1}], [%r1];"
)


@pytest.mark.parametrize("size", [1, 3])
def test_a_kernel_of_pairs_in_an_odd_cluster_is_refused_before_it_starts(size):
    on = machine(sms=4)
    shape = (size, 1, 1)
    with pytest.raises(LaunchFault, match="even number of CTAs") as caught:
        run(PAIR_LOAD, on=on, grid=shape, cluster=shape)
    assert "PTX line" in caught.value.where
    assert "cta" not in on.stats
