"""TMA and CLC in clusters, from PTX text as CUTLASS writes it."""

from __future__ import annotations

import pytest
from on_lanes import bits32, machine, run

from fp4ref.errors import ClusterFault
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
