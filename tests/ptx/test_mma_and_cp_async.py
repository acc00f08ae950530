"""The MMAs without scales, and copies by single lanes, from hand-written PTX."""

from __future__ import annotations

import re

import numpy as np
import pytest
from on_lanes import machine, run

from fp4ref.errors import (
    DeadlockError,
    MissingProxyFence,
    NotModelled,
    OutOfBounds,
)
from fp4ref.numerics import ElementFormat, matmul_unscaled
from fp4ref.ptx import IssueFault, PtxError, UndefinedRegister

N = 32
TILE_NBYTES = (128 + N) * 32
K_MAJOR = 1 << 46 | (128 >> 4) << 16 | (256 >> 4) << 32
"""Core matrices of 8 rows x 16 bytes: 128 bytes along K, 256 to the next rows."""


def core(codes: np.ndarray) -> bytes:
    """Lay rows of 32 bytes out as core matrices."""
    rows = codes.view(np.uint8).reshape(-1, 8, 2, 16)
    return rows.transpose(0, 2, 1, 3).tobytes()


def gemm(kind: str, idesc: int, copy: str, mma: str, source: int, out: int) -> str:
    """One warpgroup copies A and B to shared memory, multiplies, stores column 5."""
    return f"""
        .shared .align 1024 .b8 tile[{TILE_NBYTES}]; .shared .align 8 .b64 done;
        .shared .align 8 .b64 full; .shared .b32 where;
        mov.u32 %r1, tile; mov.u32 %r2, %tid.x; mov.u32 %r3, %warpid; mov.u32 %r4, done;
        mov.u32 %r20, where; mov.u32 %r19, full;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 mbarrier.init.shared::cta.b64 [%r4], 1;
        @%p2 mbarrier.init.shared::cta.b64 [%r19], 128;
        bar.sync 0;
        mad.wide.u32 %rd1, %r2, 16, {source};
        mad.lo.u32 %r5, %r2, 16, %r1;
        mov.u32 %r6, 0;
    C:  mad.lo.u32 %r11, %r6, 128, %r2;
        setp.lt.u32 %p1, %r11, {TILE_NBYTES // 16};
        {copy}
        add.u64 %rd1, %rd1, 2048;
        add.u32 %r5, %r5, 2048;
        add.u32 %r6, %r6, 1;
        setp.lt.u32 %p1, %r6, 3;
        @%p1 bra C;
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r19];
    F:  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r19], 0;
        @!%p4 bra F;
        fence.proxy.async.shared::cta;
        setp.ne.u32 %p3, %r3, 0;
        @%p3 bra J;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], {N};
    J:  bar.sync 0;
        ld.shared.b32 %r21, [%r20];
        shr.u32 %r7, %r1, 4;
        cvt.u64.u32 %rd2, %r7;
        or.b64 %rd3, %rd2, {K_MAJOR};
        add.u64 %rd4, %rd3, {128 * 32 // 16};
        mov.u32 %r8, {idesc}; mov.u32 %r9, 0; mov.pred %p5, 0;
        @!%p2 bra W;
        tcgen05.mma.cta_group::1.kind::{kind} {mma};
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], 0;
        @!%p4 bra W;
        shl.b32 %r24, %r3, 21;
        add.u32 %r24, %r24, %r21;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r25}}, [%r24+5];
        tcgen05.wait::ld.sync.aligned;
        mad.wide.u32 %rd8, %r2, 4, {out};
        st.global.b32 [%rd8], %r25;
        bar.sync 0;
        @%p3 bra E;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, {N};
    E:
    """


CP_ASYNC = "@%p1 cp.async.cg.shared.global.L2::128B [%r5], [%rd1], 16;"
BY_REGISTERS = """@%p1 ld.global.v4.b32 {%r12, %r13, %r14, %r15}, [%rd1];
    @%p1 st.shared.v4.b32 [%r5], {%r12, %r13, %r14, %r15};"""
MMA = "[%r21], %rd3, %rd4, %r8, {%r9, %r9, %r9, %r9}, %p5"
IDESC = 1 << 4 | N >> 3 << 17 | 8 << 24


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize(
    ("kind", "types", "element"),
    [
        ("f16", 0, ElementFormat.F16),
        ("f16", 1 << 7 | 1 << 10, ElementFormat.BF16),
        ("f8f6f4", 0, ElementFormat.E4M3),
        ("f8f6f4", 1 << 7 | 1 << 10, ElementFormat.E5M2),
    ],
)
@pytest.mark.parametrize(
    ("copy", "mma"), [(CP_ASYNC, MMA), (BY_REGISTERS, "[%r21], %rd3, %rd4, %r8, %p5")]
)
def test_an_mma_by_hand(
    kind: str, types: int, element: ElementFormat, copy: str, mma: str, schedule: object
) -> None:
    rng = np.random.default_rng(5)
    dtype = np.uint16 if element.bits == 16 else np.uint8
    a, b = (
        rng.integers(0, 1 << element.bits, (rows, 32 // dtype().itemsize)).astype(dtype)
        for rows in (128, N)
    )
    on = machine(schedule)  # type: ignore[arg-type]
    data = np.frombuffer(core(a) + core(b), np.uint8)
    source = on.gmem.upload("source", data)
    out = on.gmem.upload("out", np.zeros(128, np.float32))
    run(gemm(kind, IDESC | types, copy, mma, source, out), threads=128, on=on)
    want = matmul_unscaled(a, b, a_format=element, b_format=element)
    np.testing.assert_array_equal(
        on.gmem.contents(out, 512).view(np.uint32), want.view(np.uint32)[:, 5]
    )


def test_without_a_fence_the_mma_does_not_see_the_copies() -> None:
    on = machine()
    source = on.gmem.upload("source", np.zeros(TILE_NBYTES, np.uint8))
    out = on.gmem.upload("out", np.zeros(128, np.float32))
    body = gemm("f16", IDESC, CP_ASYNC, MMA, source, out)
    with pytest.raises(MissingProxyFence, match="written by warp"):
        run(body.replace("fence.proxy.async.shared::cta;", ""), threads=128, on=on)


def test_a_disabled_lane_of_each_quarter_gets_no_d() -> None:
    on = machine()
    source = on.gmem.upload("source", np.zeros(TILE_NBYTES, np.uint8))
    out = on.gmem.upload("out", np.zeros(128, np.float32))
    body = gemm("f16", IDESC, CP_ASYNC, MMA, source, out)
    with pytest.raises(UndefinedRegister, match="never written in lane 2"):
        run(body.replace("mov.u32 %r9, 0", "mov.u32 %r9, 4"), threads=128, on=on)


def test_one_lane_issues_an_mma_and_its_operands_are_defined() -> None:
    mma = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;"
    defined = "mov.u32 %r1, 0; mov.u64 %rd1, 0; mov.u64 %rd2, 0; mov.u32 %r2, 0;"
    with pytest.raises(UndefinedRegister, match="%p1"):
        run(f"{defined} {mma}")
    with pytest.raises(IssueFault, match="executed by 32 lanes"):
        run(f"{defined} mov.pred %p1, 0; {mma}")


def test_forms_of_mma_and_cp_async_that_are_not_modelled_are_refused() -> None:
    zeros = "{%r3, %r3, %r3, %r3}"
    forms = [
        f"tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {zeros}, %p1",
        "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r4], %r2, %p1",
        "tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r3], %rd2, %r2, %p1",
        "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 4, %rd2",
    ]
    with pytest.raises(NotModelled) as found:
        run(";\n".join(forms) + ";")
    text = str(found.value)
    assert {form.split()[0] for form in forms} <= set(text.split())
    listed = ", ".join(re.findall(r"\(line ([\d, ]+)\)", text))
    assert len(listed.split(", ")) == len(forms)


@pytest.mark.parametrize("form", ["ca.shared.global 12", "cg.shared.global 8"])
def test_a_copy_has_a_size_that_ptx_has(form: str) -> None:
    what, nbytes = form.split()
    with pytest.raises(PtxError, match=f"{what} of {nbytes} bytes"):
        run(f"cp.async.{what} [%r1], [%rd1], {nbytes};")


def test_a_generic_address_of_the_arrival_is_in_shared_memory() -> None:
    with pytest.raises(OutOfBounds, match="not in shared memory"):
        run("mov.u64 %rd1, 4096; cp.async.mbarrier.arrive.noinc.b64 [%rd1];")


@pytest.mark.parametrize("lanes", ["", "{%r9, %r9, %r9, %r9}, "])
def test_a_number_after_the_predicate_divides_d(lanes: str) -> None:
    """Twice the same product into one D: AB + AB / 8, in powers of two."""
    rng = np.random.default_rng(7)
    a, b = (
        (rng.integers(0, 3, (rows, 16)) - 1).astype(np.float16) for rows in (128, N)
    )
    data = np.frombuffer(core(a.view("u2")) + core(b.view("u2")), np.uint8)
    mma = f"[%r21], %rd3, %rd4, %r8, {lanes}%p5"
    again = f"""; mov.pred %p5, 1;
        tcgen05.mma.cta_group::1.kind::f16 {mma}, 3"""
    on = machine("late")
    source = on.gmem.upload("source", data)
    out = on.gmem.upload("out", np.zeros(128, np.float32))
    body = gemm("f16", IDESC, BY_REGISTERS, mma + again, source, out)
    run(body, threads=128, on=on)
    exact = (a.astype(np.float32) @ b.astype(np.float32).T)[:, 5]
    found = on.gmem.contents(out, 512).view(np.float32)
    np.testing.assert_array_equal(found, exact + exact / 8)
    assert len(np.unique(found)) > 5
    for scale in ("16", "%r9"):
        wrong = body.replace("%p5, 3", f"%p5, {scale}")
        with pytest.raises(PtxError, match="a number from 0 to 15"):
            run(wrong, threads=128, on=machine())


def test_an_mma_has_the_number_of_operands_of_its_form() -> None:
    with pytest.raises(PtxError, match="with 4 operands"):
        run("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2;")


ONE_LANE = """
    .shared .align 8 .b64 full; .shared .align 16 .b32 words[32];
    mov.u32 %r1, full; mov.u32 %r2, %tid.x; mov.u32 %r5, words;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r1], COUNT;
    bar.sync 0;
    mad.lo.u32 %r6, %r2, 4, %r5;
    mad.wide.u32 %rd1, %r2, 4, SOURCE;
    and.b32 %r7, %r2, 1;
    setp.eq.u32 %p2, %r7, 1;
    @%p2 cp.async.ca.shared.global [%r6], [%rd1], 4;
    cp.async.mbarrier.arrive.noinc.b64 [%rd2];
W:  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0;
    @!%p3 bra W;
    @%p2 ld.shared.b32 %r8, [%r6];
    mad.wide.u32 %rd3, %r2, 4, TARGET;
    @%p2 st.global.b32 [%rd3], %r8;
"""


def test_a_lane_reads_as_much_as_it_says() -> None:
    """Lane 1 reads one byte, lane 3 three, the others four; the rest becomes 0."""
    on = machine("late")  # type: ignore[arg-type]
    words = np.full(32, 0x01010101, np.uint32)
    source = on.gmem.upload("source", words)
    target = on.gmem.upload("target", np.zeros(32, np.uint32))
    body = ONE_LANE.replace("SOURCE", str(source)).replace("TARGET", str(target))
    body = body.replace("[%rd1], 4;", "[%rd1], 4, %r9;").replace("COUNT", "32")
    body = body.replace("setp.eq.u32 %p1", "min.u32 %r9, %r2, 4; setp.eq.u32 %p1", 1)
    generic = "cvt.u64.u32 %rd2, %r1; cvta.shared.u64 %rd2, %rd2; bar.sync 0;"
    run(body.replace("bar.sync 0;", generic), on=on)
    got = on.gmem.contents(target, 128).view(np.uint32)
    wanted = np.zeros(32, np.uint32)
    wanted[[1, 3]] = 0x01, 0x010101
    wanted[5::2] = 0x01010101
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("schedule", ["eager", "late", 2])
def test_lanes_copy_and_all_lanes_arrive(schedule: object) -> None:
    on = machine(schedule)  # type: ignore[arg-type]
    words = np.arange(32, dtype=np.uint32) * 3 + 1
    source = on.gmem.upload("source", words)
    target = on.gmem.upload("target", np.zeros(32, np.uint32))
    body = ONE_LANE.replace("SOURCE", str(source)).replace("TARGET", str(target))
    generic = "cvt.u64.u32 %rd2, %r1; cvta.shared.u64 %rd2, %rd2; bar.sync 0;"
    body = body.replace("bar.sync 0;", generic)
    run(body.replace("COUNT", "32"), on=on)
    got = on.gmem.contents(target, 128).view(np.uint32)
    np.testing.assert_array_equal(got, np.where(np.arange(32) % 2, words, 0))
    again = machine(schedule)  # type: ignore[arg-type]
    again.gmem.upload("source", words)
    again.gmem.upload("target", np.zeros(32, np.uint32))
    with pytest.raises(DeadlockError):
        run(body.replace("COUNT", "33"), on=again)
