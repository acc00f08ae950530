"""Tensor maps that a compiled kernel changes: its lanes, its forms, what is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.errors import HardwareFault, OutOfBounds
from fp4ref.hardware.order.rules import Failure
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.ptx import PartialWarp, PtxError

PARAMS = ".param .u64 map, .param .u64 one, .param .u64 two"
MODULE = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 bar;\n"
MODULE += ".shared .align 128 .b8 copy[128];\n"
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
COPY += ".aligned [%rd1], [%r1], 128;"
SYNC = "bar.warp.sync -1;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
SPACE = {"shared": "shared::cta.b1024.b64 [%r1]", "global": "global.b1024.b64 [%rd1]"}


def replace(space, value="%rd2"):
    return f"tensormap.replace.tile.global_address.{SPACE[space]}, {value};"


def elected(text):
    """Text that lane 0 executes alone."""
    return "".join(
        f"@%p1 {each.strip()};\n" for each in text.split(";") if each.strip()
    )


START = f"""
    ld.param.u64 %rd1, [map];
    ld.param.u64 %rd2, [two];
    mov.u32 %r1, copy;
    mov.u32 %r2, bar;
    mov.u32 %r3, tile;
    mov.u32 %r4, %tid.x;
    setp.eq.u32 %p1, %r4, 0;
    mad.lo.u32 %r5, %r4, 4, %r1;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd3, %rd3, %rd1;
    ld.global.u32 %r6, [%rd3];
    st.shared.u32 [%r5], %r6;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    {SYNC}
"""

LOAD = f"""
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier\
::complete_tx::bytes [%r3], [%rd1, {{0, 0}}], [%r2];
    L: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra L;
    {SYNC}
    mad.lo.u32 %r5, %r4, 4, %r3;
    ld.shared.u32 %r6, [%r5];
    mul.wide.u32 %rd3, %r4, 4;
    ld.param.u64 %rd4, [one];
    add.u64 %rd3, %rd3, %rd4;
    st.global.u32 [%rd3], %r6;
"""
"""The first tensor, which the map named before, receives what is loaded."""


def execute(body, schedule="eager", ordering="ptx"):
    on = machine(schedule, ordering, trace=True, races="collect")
    one, two = (
        on.gmem.upload(n, np.full(1024, v, "u1")) for n, v in (("1", 1), ("2", 2))
    )
    m = TensorMap(DataType.UINT8, one, (128, 8), (128,), (128, 1))
    at = on.gmem.upload("map", np.frombuffer(m.to_bytes(), np.uint8))
    run(
        body,
        params=PARAMS,
        values=struct.pack("<3Q", at, one, two),
        on=on,
        module=MODULE,
    )
    return {f for f, _ in on.order.findings.counts}, on.gmem.contents(one, 128)


IN_PLACE = elected(replace("global") + RELEASE + ACQUIRE)
FUSED = elected(replace("shared")) + SYNC + COPY + ACQUIRE


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
@pytest.mark.parametrize("change", [IN_PLACE, FUSED], ids=["in place", "fused copy"])
def test_a_changed_map_loads_the_other_tensor(schedule, ordering, change):
    races, loaded = execute(START + change + LOAD, schedule, ordering)
    assert races == set()
    assert (loaded == 2).all()


@pytest.mark.parametrize(
    ("change", "failure"),
    [
        (elected(replace("shared")) + COPY + ACQUIRE, Failure.LANE),
        (elected(replace("shared")) + SYNC + COPY, Failure.MAP_ACQUIRE),
        (elected(replace("global") + ACQUIRE), Failure.MAP_RELEASE),
        # Lane 0 writes and uses; another lane's fences are not its own.
        (
            elected(replace("global")) + SYNC + f"@!%p1 {RELEASE} @!%p1 {ACQUIRE}",
            Failure.MAP_RELEASE,
        ),
        (
            elected(replace("global") + RELEASE) + SYNC + f"@!%p1 {ACQUIRE}",
            Failure.MAP_ACQUIRE,
        ),
    ],
)
def test_each_missing_edge_has_its_name(change, failure):
    races, _ = execute(START + change + LOAD)
    assert races == {failure}


def test_fences_of_other_lanes_count_after_a_warp_barrier():
    change = elected(replace("global")) + SYNC
    change += f"@!%p1 {RELEASE}\n{SYNC} @!%p1 {ACQUIRE}\n{SYNC}"
    assert execute(START + change + LOAD)[0] == set()


def test_a_generic_address_may_be_in_either_space():
    body = f"""{START}
    cvta.shared.u64 %rd5, %rd6;
    cvt.u64.u32 %rd6, %r1;
    cvta.shared.u64 %rd5, %rd6;
    @%p1 tensormap.replace.tile.global_address.b1024.b64 [%rd5], %rd2;
    {SYNC} {COPY} {ACQUIRE} {LOAD}
    """
    body = body.replace("cvta.shared.u64 %rd5, %rd6;\n    cvt", "cvt", 1)
    assert (execute(body)[1] == 2).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, %r2;",
            "0 to 4",
        ),
        (
            "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 4, "
            "%rd2;",
            "an ordinal from 0 to 3",
        ),
        (
            "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], %r2;",
            "a code from 0 to 15, as an immediate",
        ),
        (
            "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4;",
            "0 to 3",
        ),
        *(
            (
                f"tensormap.replace.tile.{field}.shared::cta.b1024.b32 [%r1], {most};",
                f"0 to {most - 1}",
            )
            for field, most in [("interleave_layout", 3), ("fill_mode", 2)]
        ),
        (COPY.replace("128;", "64;"), "a size from 128 to 128"),
        (ACQUIRE.replace("128;", "64;"), "a size from 128 to 128"),
    ],
)
def test_a_number_out_of_range_is_an_error_of_the_text(text, says):
    with pytest.raises(PtxError, match=says):
        execute(START + text)


def test_the_whole_warp_copies():
    with pytest.raises(PartialWarp, match="cp_fenceproxy"):
        execute(START + f"@%p1 {COPY}")


def test_an_acquire_of_shared_memory_is_refused():
    body = "cvt.u64.u32 %rd6, %r1; cvta.shared.u64 %rd1, %rd6;"
    with pytest.raises(OutOfBounds, match=r"lies in \.global"):
        execute(START + body + ACQUIRE)


def test_a_map_that_no_copy_can_use_says_so_at_the_copy():
    change = "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 7; "
    with pytest.raises(HardwareFault, match="rank 8; this is no tensor map"):
        execute(START + elected(change + RELEASE + ACQUIRE) + LOAD)
