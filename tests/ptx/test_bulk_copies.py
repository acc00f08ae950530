"""Bulk copies without a tensor map: what arrives, what is credited, what is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.errors import HardwareFault, MisalignedAddress
from fp4ref.ptx import PtxError

DATA = np.random.default_rng(7).integers(0, 256, 2048).astype(np.uint8)
PARAMS = ".param .u64 k_in, .param .u64 k_out"
SETUP = """
    .shared .align 128 .b8 tile[2048]; .shared .align 8 .b8 bar[8];
    mov.u32 %r1, tile; mov.u32 %r2, bar;
    ld.param.u64 %rd1, [k_in]; ld.param.u64 %rd2, [k_out];
    mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""
WAIT = """
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra WAIT;
"""
LOAD = "cp.async.bulk.shared::SPACE.global.mbarrier::complete_tx::bytes"
STORE = """
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 2048;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""


def copied(
    load: str, expect: int = 2048, schedule: str | int = "late", store: str = STORE
) -> np.ndarray:
    """Load 2,048 bytes, store them elsewhere, and return what is there."""
    on = machine(schedule)
    source, out = on.gmem.upload("in", DATA), on.gmem.allocate("out", 2048)
    arrive = f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [%r2], {expect};"
    run(
        SETUP + arrive + load + WAIT + store,
        params=PARAMS,
        values=struct.pack("<2Q", source, out),
        on=on,
    )
    return on.gmem.contents(out, 2048)


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize("space", ["cta", "cluster"])
def test_bytes_arrive_and_are_credited(space: str, schedule: str | int) -> None:
    load = f"@%p1 {LOAD.replace('SPACE', space)} [%r1], [%rd1], 2048, [%r2];"
    assert np.array_equal(copied(load, schedule=schedule), DATA)


def test_several_loads_credit_one_mbarrier() -> None:
    opcode = LOAD.replace("SPACE", "cluster") + ".L2::cache_hint"
    load = "".join(
        f"@%p1 {opcode} [%r1+{at}], [%rd1+{at}], 512, [%r2], %rd8;"
        for at in (0, 512, 1024, 1536)
    )
    load = "mov.u64 %rd8, 0; cp.async.bulk.prefetch.L2.global [%rd1], 512;" + load
    assert np.array_equal(copied(load), DATA)


def test_each_lane_issues_a_copy_of_its_own() -> None:
    """As cuda::memcpy_async does, with one mbarrier for all."""
    opcode = LOAD.replace("SPACE", "cta")
    load = (
        "mul.lo.u32 %r3, %r9, 64; add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd3, %r3;"
        f"add.u64 %rd3, %rd1, %rd3; {opcode} [%r4], [%rd3], 64, [%r2];"
    )
    assert np.array_equal(copied(load), DATA)


def test_a_multicast_load_arrives_in_the_ctas_of_the_mask() -> None:
    opcode = LOAD.replace("SPACE", "cluster") + ".multicast::cluster"
    load = f"mov.b16 %h1, 1; @%p1 {opcode} [%r1], [%rd1], 2048, [%r2], %h1;"
    assert np.array_equal(copied(load), DATA)


def test_a_mask_and_a_hint_are_operands_beside_the_others() -> None:
    opcode = LOAD.replace("SPACE", "cluster") + ".multicast::cluster.L2::cache_hint"
    load = f"mov.b16 %h1, 1; @%p1 {opcode} [%r1], [%rd1], 2048, [%r2], %h1"
    assert np.array_equal(copied(f"{load}, %rd1;"), DATA)
    with pytest.raises(PtxError, match="takes 6 operands"):
        copied(f"{load};")


def test_a_wrong_count_of_bytes_hangs_and_is_named() -> None:
    load = f"@%p1 {LOAD.replace('SPACE', 'cta')} [%r1], [%rd1], 1024, [%r2];"
    with pytest.raises(HardwareFault, match=r"1024|1,024"):
        copied(load)


@pytest.mark.parametrize(
    "operands",
    ["[%r1], [%rd1], 508, [%r2]", "[%r1+8], [%rd1], 512, [%r2]",
     "[%r1], [%rd1+4], 512, [%r2]"],
)  # fmt: skip
def test_what_is_no_multiple_of_16_is_a_fault(operands: str) -> None:
    load = f"@%p1 {LOAD.replace('SPACE', 'cta')} {operands};"
    with pytest.raises(MisalignedAddress, match="multiples of 16 bytes"):
        copied(load, 512)


def test_a_store_reads_shared_memory_later() -> None:
    """Without a wait for the read, the tile may be overwritten before it is read."""
    load = f"@%p1 {LOAD.replace('SPACE', 'cta')} [%r1], [%rd1], 2048, [%r2];"
    early = STORE.replace(
        "cp.async.bulk.wait_group 0;",
        "@%p1 st.shared.b32 [%r1], 0; cp.async.bulk.wait_group 0;",
    )
    with pytest.raises(HardwareFault):
        copied(load, store=early)
