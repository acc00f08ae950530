"""tcgen05 of a CTA pair, from PTX text."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import complaint, needs_ptxas
from on_lanes import machine, run

from fp4ref.errors import ClusterFault, DescriptorFault, LaunchFault

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
FORMS = (
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 32",
    "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32",
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned",
    "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r1], %rd1",
    "tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1",
    "tcgen05.mma.cta_group::2.kind::f8f6f4 [%r1], %rd1, %rd2, %r2, "
    "{%r3, %r3, %r3, %r3, %r3, %r3, %r3, %r3}, %p1",
    "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [%r1], %rd1, %rd2, "
    "%r2, [%r3], [%r4], %p1",
    "tcgen05.mma.cta_group::2.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], "
    "[%r4], %p1",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r1]",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
    ".multicast::cluster.b64 [%r1], %h1",
)


@pytest.mark.outside
@needs_ptxas
def test_ptxas_takes_the_forms(tmp_path):
    body = ";\n".join(FORMS)
    text = (
        ".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() { .reg .b32 "
        f"%r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .b16 %h<9>;\n{body};\nret; }}"
    )
    assert complaint(text, tmp_path) == ""


@pytest.mark.parametrize("form", FORMS, ids=lambda f: " ".join(f.split()[0].split(".")))
@pytest.mark.parametrize("size", [1, 3])
def test_clusters_of_odd_size_are_refused_before_launch(form, size):
    grid = {"grid": (size, 1, 1), "cluster": (size, 1, 1)}
    with pytest.raises(LaunchFault, match=rf"clusters of {size} CTAs .*cta_group::2"):
        run(f"{form};", on=machine(sms=3), **grid)


def test_one_group_for_a_whole_kernel():
    alloc = "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [%r1], 32;"
    text = ".shared .b32 at; mov.u32 %r1, at;" + alloc.format(1) + alloc.format(2)
    with pytest.raises(ClusterFault, match="in a kernel that has executed"):
        run(text, on=machine(sms=2), **PAIR)


@pytest.mark.parametrize("form", [f for f in FORMS if ".mma." in f])
def test_the_group_of_an_mma_reaches_its_descriptor(form):
    text = "".join(f"mov.u32 %r{i}, 0;" for i in range(1, 5))
    text += "mov.u64 %rd1, 0; mov.u64 %rd2, 0; setp.ne.u32 %p1, %r1, 0;"
    text += "mov.u32 %r5, %tid.x; setp.eq.u32 %p2, %r5, 0;"
    # BF16 or E2M1 without a shape.
    text += f"mov.u32 %r2, {0x480 if 'mxf4' in form else 0x490};"
    text = text.replace("0x490", "0x10") if "f8f6f4" in form else text
    if ".kind::mxf4.b" in form:
        text += "or.b32 %r2, %r2, 0x800000;"
    with pytest.raises(DescriptorFault, match=r"M is 128 or 256 with cta_group::2"):
        run(f"{text} @%p2 {form};", on=machine(sms=2), **PAIR)


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_scales_are_copied_in_both_ctas_by_one_instruction(schedule):
    on = machine(schedule, sms=2, trace=True)
    run(
        f"""
        .shared .align 1024 .b8 tile[512]; .shared .align 8 .b64 bar;
        .shared .align 4 .b32 where;
        mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, where;
        mov.u32 %r4, %tid.x; setp.eq.u32 %p1, %r4, 0;
        mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p2, %r5, 0;
        and.pred %p3, %p1, %p2;
        mov.u32 %r8, %r4;
    L:  shl.b32 %r9, %r8, 2; add.u32 %r9, %r9, %r1;
        shl.b32 %r7, %r5, 16; or.b32 %r7, %r7, %r8;
        st.shared.b32 [%r9], %r7;
        add.u32 %r8, %r8, 32; setp.lt.u32 %p4, %r8, 128; @%p4 bra L;
        fence.proxy.async.shared::cta;
        @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
        @%p1 fence.mbarrier_init.release.cluster;
        {MEET}
        tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r3], 32;
        {MEET}
        ld.shared.b32 %r10, [%r3];
        shr.b32 %r11, %r1, 4; or.b32 %r11, %r11, 65536;
        mov.u32 %r13, 0x00004008; mov.b64 %rd1, {{%r11, %r13}};
        @%p3 tcgen05.cp.cta_group::2.32x128b.warpx4 [%r10], %rd1;
        mov.u16 %h2, 3;
        @%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster\
.multicast::cluster.b64 [%r2], %h2;
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r2], 0;
        @!%p6 bra W;
        {MEET}
        tcgen05.fence::after_thread_sync;
        tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 32;
        tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
        """,
        on=on,
        **PAIR,
    )
    for rank, sm in enumerate(on.sms):
        words = rank << 16 | np.arange(128, dtype=np.uint32).reshape(32, 4)
        np.testing.assert_array_equal(sm.tmem.cells[:, :4], np.tile(words, (4, 1)))
    groups = {
        event.operation: event.operands.get("cta_group")
        for event in on.recorder.trace
        if event.operation.startswith("tcgen05.") and "fence" not in event.operation
    }
    assert groups == dict.fromkeys(groups, 2)
    assert len(groups) == 5
