"""Bulk copies between CTAs, masks of bytes, bulk reductions: against plain Python."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.errors import (
    ClusterFault,
    HardwareFault,
    MisalignedAddress,
    MissingProxyFence,
    ReadWhileInFlight,
)

NBYTES = 512
TYPES = {
    "b32": "<u4", "u32": "<u4", "s32": "<i4", "b64": "<u8", "u64": "<u8", "s64": "<i8",
    "f32": "<f4", "f64": "<f8",
    "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
SETUP = """
    .shared .align 128 .b8 tile[512]; .shared .align 128 .b8 other[512];
    .shared .align 8 .b8 bar[8];
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, other;
    ld.param.u64 %rd1, [k_in]; ld.param.u64 %rd2, [k_out];
    mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 0;
    cvt.u64.u32 %rd4, %r9; mad.lo.u64 %rd3, %rd4, 16, %rd1;
    mad.lo.u32 %r4, %r9, 16, %r1;
    ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd3];
    st.shared.v4.b32 [%r4], {%r10, %r11, %r12, %r13};
    mad.lo.u64 %rd5, %rd4, 16, %rd2; mad.lo.u32 %r5, %r9, 16, %r3;
    ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd5];
    st.shared.v4.b32 [%r5], {%r10, %r11, %r12, %r13};
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.proxy.async;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
"""
"""The first array in `tile`, the second in `other`; 32 threads of 16 bytes."""
PARAMS = ".param .u64 k_in, .param .u64 k_out"
DONE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
SHARED = ".shared::cluster.shared::cta.mbarrier::complete_tx::bytes"


def after(
    body: str, new: Any, old: Any, schedule: str | int = "late", setup: str = SETUP
) -> Any:
    """Run a body on two arrays; return what the second one has become."""
    on = machine(schedule)
    addresses = on.gmem.upload("in", new), on.gmem.upload("out", old)
    values = struct.pack("<2Q", *addresses)
    run(setup + body, params=PARAMS, values=values, on=on)
    return on.gmem.contents(addresses[1], NBYTES).view(old.dtype)


def numbers(kind: str, seed: int, high: int = 1000) -> Any:
    dtype = np.dtype(TYPES[kind])
    rng = np.random.default_rng(seed)
    count = NBYTES // dtype.itemsize
    if kind[0] in "bus" and kind != "bf16":
        low = -high if kind[0] == "s" else 0
        return rng.integers(low, high, count).astype(dtype)
    return (rng.standard_normal(count) * 8).astype(np.float32).astype(dtype)


def inc(old: int, new: int) -> int:
    return 0 if old >= new else old + 1


def dec(old: int, new: int) -> int:
    return new if old == 0 or old > new else old - 1


MEANING: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "min": min, "max": max, "inc": inc, "dec": dec,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
GLOBAL = {
    "add": "u32 s32 u64 f32 f64 noftz.f16 noftz.bf16",
    "min": "u32 s32 u64 s64 f16 bf16",
    "max": "u32 s32 u64 s64 f16 bf16",
    "inc": "u32",
    "dec": "u32",
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
}
IN_SHARED = {"add": "u32 s32 u64", "min": "u32 s32", "max": "u32 s32", "inc": "u32"}
IN_SHARED |= {"dec": "u32", "and": "b32", "or": "b32", "xor": "b32"}


def expected(what: str, kind: str, old: Any, new: Any) -> Any:
    """Element by element in Python's integers and fractions, then rounded once."""
    pairs = zip(old.tolist(), new.tolist(), strict=True)
    if kind[0] in "bus" and kind != "bf16":
        found = [MEANING[what](a, b) for a, b in pairs]
        bits = 8 * old.itemsize
        return np.array([x % (1 << bits) for x in found], f"<u{old.itemsize}")
    exact = [MEANING[what](Fraction(float(a)), Fraction(float(b))) for a, b in pairs]
    # These sums have at most 53 bits, so that float64 holds them before the rounding.
    return np.array([float(x) for x in exact]).astype(old.dtype)


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize(
    "form", [f"{op}.{kind}" for op, kinds in GLOBAL.items() for kind in kinds.split()]
)
def test_each_element_in_global_memory_is_combined(
    form: str, schedule: str | int
) -> None:
    what, kind = form.split(".")[0], form.split(".")[-1]
    new, old = numbers(kind, 1), numbers(kind, 2)
    opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{form}"
    found = after(f"@%p1 {opcode} [%rd2], [%r1], 512; {DONE}", new, old, schedule)
    want = expected(what, kind, old, new)
    assert found.tobytes() == want.astype(want.dtype).tobytes()


@pytest.mark.parametrize(
    "form",
    [f"{op}.{kind}" for op, kinds in IN_SHARED.items() for kind in kinds.split()],
)
def test_each_element_in_shared_memory_is_combined(form: str) -> None:
    what, kind = form.split(".")
    new, old = numbers(kind, 3), numbers(kind, 4)
    body = f"""
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
        @%p1 cp.reduce.async.bulk{SHARED}.{form} [%r3], [%r1], 512, [%r2];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
        @!%p2 bra W;
        @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 512; {DONE}
    """
    found = after(body, new, old)
    assert found.tobytes() == expected(what, kind, old, new).tobytes()


def test_float32_sums_flush_subnormals_and_halves_keep_them() -> None:
    small = np.zeros(128, np.float32)
    small[:3] = 2.0**-127, -(2.0**-127), 2.0**-126
    add = "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add"
    found = after(f"{add}.f32 [%rd2], [%r1], 512; {DONE}", small, small.copy())
    assert found[:3].tolist() == [0, 0, 2.0**-125]
    assert math.copysign(1, found[1]) == -1
    halves = np.full(256, 2.0**-24, np.float16)
    found = after(f"{add}.noftz.f16 [%rd2], [%r1], 512; {DONE}", halves, halves.copy())
    assert (found == 2.0**-23).all()


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_nan_loses_a_minimum_and_wins_a_sum(kind: str) -> None:
    dtype = np.dtype(TYPES[kind])
    new, old = np.ones(256, dtype), np.full(256, np.nan, dtype)
    opcode = "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group"
    least = after(f"{opcode}.min.{kind} [%rd2], [%r1], 512; {DONE}", new, old)
    assert (least == 1).all()
    total = after(f"{opcode}.add.noftz.{kind} [%rd2], [%r1], 512; {DONE}", new, old)
    assert (total.view(np.uint16) == 0x7FFF).all()


ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group"


def both(first: str, second: str) -> str:
    return f"""@%p1 {ADD}.{first} [%rd2], [%r1], 512;
        @%p1 {ADD}.{second} [%rd2], [%r3], 512; {DONE}"""


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_two_reductions_into_the_same_bytes_are_no_race(schedule: str | int) -> None:
    new, old = numbers("u32", 5), numbers("u32", 6)
    on = machine(schedule, races="raise")
    addresses = on.gmem.upload("in", new), on.gmem.upload("out", old)
    values = struct.pack("<2Q", *addresses)
    run(SETUP + both("add.u32", "add.u32"), params=PARAMS, values=values, on=on)
    found = on.gmem.contents(addresses[1], NBYTES).view("<u4")
    assert (found == 2 * old + new).all()


def test_elements_of_another_size_or_a_plain_copy_are_a_conflict() -> None:
    new, old = numbers("u32", 5), numbers("u32", 6)
    for body in (
        both("add.u32", "add.u64"),
        both("add.u32", "add.u32").replace(f"{ADD}.add.u32 [%rd2], [%r3]",
            "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3]"),
    ):  # fmt: skip
        with pytest.raises(ReadWhileInFlight):
            after(body, new, old)


def test_the_source_is_read_before_its_group_says_so() -> None:
    new, old = numbers("u32", 5), numbers("u32", 6)
    early = (
        f"@%p1 {ADD}.add.u32 [%rd2], [%r1], 512; @%p1 st.shared.b32 [%r1], 0; {DONE}"
    )
    with pytest.raises(ReadWhileInFlight):
        after(early, new, old)
    waits = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
    late = early.replace("@%p1 st", f"{waits} @%p1 st")
    assert (after(late, new, old) == old + new).all()


def test_a_reduction_needs_the_proxy_fence() -> None:
    new, old = numbers("u32", 5), numbers("u32", 6)
    without = SETUP.replace("fence.proxy.async;", "")
    with pytest.raises(MissingProxyFence):
        after(f"@%p1 {ADD}.add.u32 [%rd2], [%r1], 512; {DONE}", new, old, setup=without)


@pytest.mark.parametrize(
    "operands", ["[%rd2], [%r1], 508", "[%rd2], [%r1+8], 496", "[%rd2+4], [%r1], 496"]
)
def test_what_is_no_multiple_of_16_is_refused(operands: str) -> None:
    new, old = numbers("u32", 5), numbers("u32", 6)
    with pytest.raises(MisalignedAddress, match="multiples of 16 bytes"):
        after(f"@%p1 {ADD}.add.u32 {operands}; {DONE}", new, old)


# -- masks of bytes


@pytest.mark.parametrize("mask", [0, 1, 0x8000, 0x00FF, 0xA5C3, 0xFFFF])
@pytest.mark.parametrize("hint", ["", ".L2::cache_hint"])
def test_a_mask_chooses_bytes_of_every_sixteen(mask: int, hint: str) -> None:
    new, old = (
        np.random.default_rng(i).integers(0, 256, 512, np.uint8) for i in (7, 8)
    )
    operands = f"[%rd2], [%r1], 512, {'%rd8, ' if hint else ''}%h1"
    body = f"""mov.u64 %rd8, 0; mov.b16 %h1, {mask};
        @%p1 cp.async.bulk.global.shared::cta.bulk_group{hint}.cp_mask {operands};
        {DONE}"""
    want = [
        new[i] if mask >> i % 16 & 1 else old[i]
        for i in range(512)
    ]  # fmt: skip
    assert after(body, new, old).tolist() == want


def test_bytes_that_the_mask_leaves_out_may_be_written_by_others() -> None:
    new, old = (
        np.random.default_rng(i).integers(0, 256, 512, np.uint8) for i in (7, 8)
    )
    store = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2]"
    body = f"""mov.b16 %h1, 0xF0F; mov.b16 %h2, {{}};
        @%p1 {store}, [%r1], 512, %h1; @%p1 {store}, [%r3], 512, %h2; {DONE}"""
    found = after(body.format("0xF0F0"), new, old)
    want = [new[i] if 0xF0F >> i % 16 & 1 else old[i] for i in range(512)]
    assert found.tolist() == want
    with pytest.raises(ReadWhileInFlight):
        after(body.format("0xF0F8"), new, old)


# -- from CTA to CTA

PAIR = {"grid": (2, 1, 1), "cluster": (2, 1, 1)}
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
TO_PEER = f"""{SETUP}
    mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;
    mapa.shared::cluster.u32 %r22, %r3, %r21; mapa.shared::cluster.u32 %r23, %r2, %r21;
    mapa.shared::cluster.u32 %r24, %r1, %r21;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
    {MEET}
    @%p1 COPY;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
    @!%p2 bra W;
    mul.wide.u32 %rd6, %r20, 512; add.u64 %rd7, %rd2, %rd6;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd7], [%r3], 512; {DONE}
    {MEET}
"""
"""Each CTA sends `tile` to `other` of its peer, which waits for it and stores it."""


def at_peer(copy: str, schedule: str | int) -> Any:
    on = machine(schedule, sms=2)
    data = np.arange(128, dtype=np.uint32)
    out = np.full(256, 7, np.uint32)
    addresses = on.gmem.upload("in", data), on.gmem.upload("out", out)
    text = TO_PEER.replace("COPY", copy)
    values = struct.pack("<2Q", *addresses)
    run(text, params=PARAMS, values=values, on=on, **PAIR)
    return on.gmem.contents(addresses[1], 1024).view("<u4")


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_a_copy_goes_to_a_peer_and_credits_its_barrier(schedule: str | int) -> None:
    found = at_peer(f"cp.async.bulk{SHARED} [%r22], [%r1], 512, [%r23]", schedule)
    assert (found == np.tile(np.arange(128), 2)).all()


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_a_reduction_goes_to_a_peer(schedule: str | int) -> None:
    copy = f"cp.reduce.async.bulk{SHARED}.add.u32 [%r22], [%r1], 512, [%r23]"
    assert (at_peer(copy, schedule) == np.tile(np.arange(128) + 7, 2)).all()


@pytest.mark.parametrize("what", ["cp.async.bulk", "cp.reduce.async.bulk"])
def test_source_and_barrier_have_their_places(what: str) -> None:
    opcode = f"{what}{SHARED}{'.add.u32' if 'reduce' in what else ''}"
    with pytest.raises(ClusterFault, match=r"source is \.shared::cta"):
        at_peer(f"{opcode} [%r22], [%r24], 512, [%r23]", "late")
    with pytest.raises(ClusterFault, match="same CTA"):
        at_peer(f"{opcode} [%r22], [%r1], 512, [%r2]", "late")


@pytest.mark.parametrize("what", ["cp.async.bulk", "cp.reduce.async.bulk"])
def test_too_few_bytes_are_seen(what: str) -> None:
    opcode = f"{what}{SHARED}{'.add.u32' if 'reduce' in what else ''}"
    with pytest.raises(HardwareFault, match="256"):
        at_peer(f"{opcode} [%r22], [%r1], 256, [%r23]", "late")
