"""A block-scaled MMA, written out in PTX."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from numpy.typing import NDArray
from on_lanes import kernel, machine

from fp4ref.errors import CollectorFault
from fp4ref.hardware.advisory import Advisory
from fp4ref.numerics import (
    ElementFormat,
    ScaleFormat,
    matmul_mxf8f6f4,
    mma_block_scaled,
    pack_e2m1,
)
from fp4ref.ptx import Program, launch, parse

NVFP4 = "mxf4nvf4.block_scale.scale_vec::4X", 0x08200480


def mma_of_128x128(
    source: int, out: int, sfb_column: int, form: tuple[str, int] = NVFP4
) -> str:
    """Copy and multiply what is at `source`; store column 5 of D at `out`."""
    desc = 1 << 46 | (128 >> 4) << 16 | (256 >> 4) << 32
    return f"""
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
        tcgen05.mma.cta_group::1.kind::{form[0]}
            [%r21], %rd3, %rd4, {form[1]}, [%r22], [%r23], %p4;
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


def cores(rows: np.ndarray) -> bytes:
    """8 x 16-byte core matrices of 128 rows of 32 bytes: rows, then halves of K."""
    return rows.reshape(16, 8, 2, 16).transpose(0, 2, 1, 3).tobytes()


def atom(scales: np.ndarray) -> bytes:
    return scales.reshape(4, 32, 4).transpose(1, 0, 2).tobytes()


@pytest.mark.parametrize(
    ("sfb_column", "advised"),
    [(132, {}), (133, {Advisory.ODD_SCALE_COLUMN.value: 1})],
)
def test_a_block_scaled_mma_by_hand(sfb_column: int, advised: dict[str, int]) -> None:
    """Operands through ordinary stores, scales by tcgen05.cp, the bits of the model."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 16, (128, 64), np.uint8) for _ in range(2))
    sfa, sfb = (rng.integers(0, 127, (128, 4), np.uint8) for _ in range(2))

    data = cores(pack_e2m1(a)) + cores(pack_e2m1(b)) + atom(sfa) + atom(sfb)
    on = machine()
    source = on.gmem.upload("source", np.frombuffer(data, np.uint8))
    out = on.gmem.upload("out", np.zeros((128, 32), np.float32))
    program = Program.of(parse(kernel(mma_of_128x128(source, out, sfb_column))))
    launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
    found = on.gmem.contents(out, 512).view(np.uint32)
    want = mma_block_scaled(
        a, b, sfa, sfb, None, scale_format=ScaleFormat.UE4M3, vec_size=16
    )
    np.testing.assert_array_equal(found, want[:, 5].view(np.uint32))
    assert on.advisories == advised


@pytest.mark.parametrize(
    "form", [NVFP4, ("mxf4.block_scale", NVFP4[1] | 1 << 23), ("f16", 0x08200010)]
)
def test_a_use_of_the_collector_buffer_gives_the_same_d(form: tuple[str, int]) -> None:
    """Two MMAs without input, the second one with A from the buffer."""
    data = np.random.default_rng(8).integers(0, 0x70, 9216, np.uint8)

    def column(*usages: str) -> NDArray[np.uint32]:
        on = machine("late", ordering="shipped")
        source = on.gmem.upload("source", data)
        out = on.gmem.upload("out", np.zeros(128, np.float32))
        text = mma_of_128x128(source, out, 132, form)
        if form[0] == "f16":
            text = text.replace("[%r22], [%r23], %p4", "%p4")
        at = text.index("tcgen05.mma")
        mma = text[at : text.index(";", at) + 1]
        word = f"kind::{form[0]}"
        with_usage = [mma.replace(word, f"{word}.collector::a::{u}") for u in usages]
        text = text.replace(mma, " ".join(with_usage))
        program = Program.of(parse(kernel(text)))
        launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
        return on.gmem.contents(out, 512).view(np.uint32)

    found = column("fill", "use", "lastuse")
    np.testing.assert_array_equal(found, column("discard"))
    with pytest.raises(CollectorFault, match="nothing in the collector buffer"):
        column("fill", "lastuse", "use")


# Thread r stores the 32 bytes of row r of A to lane r, columns 160 to 167.
TO_TMEM = """
    shl.b32 %r30, %r3, 21; add.u32 %r30, %r30, %r21; add.u32 %r30, %r30, 160;
    shr.u32 %r31, %r2, 3; shl.b32 %r31, %r31, 8; and.b32 %r26, %r2, 7;
    shl.b32 %r26, %r26, 4; add.u32 %r31, %r31, %r26; add.u32 %r31, %r31, %r1;
    ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r31];
    ld.shared.v4.b32 {%r26, %r27, %r28, %r29}, [%r31+128];
    tcgen05.st.sync.aligned.32x32b.x8.b32
        [%r30], {%r6, %r7, %r8, %r9, %r26, %r27, %r28, %r29};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    add.u32 %r30, %r21, 160;
"""


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize(
    "form", [NVFP4, ("mxf4.block_scale", NVFP4[1] | 1 << 23), ("f16", 0x08200010)]
)
def test_a_from_tmem_gives_the_same_d(form: tuple[str, int], schedule: object) -> None:
    data = np.random.default_rng(9).integers(0, 0x70, 9216, np.uint8)

    def column(in_tmem: bool) -> NDArray[np.uint32]:
        on = machine(schedule)  # type: ignore[arg-type]
        source = on.gmem.upload("source", data)
        out = on.gmem.upload("out", np.zeros(128, np.float32))
        text = mma_of_128x128(source, out, 132, form)
        if form[0] == "f16":
            text = text.replace("[%r22], [%r23], %p4", "%p4")
        if in_tmem:
            scales = "add.u32 %r22, %r21, 128;"
            text = text.replace(scales, f"{TO_TMEM} {scales}")
            text = text.replace("[%r21], %rd3, %rd4", "[%r21], [%r30], %rd4")
        program = Program.of(parse(kernel(text)))
        launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
        return on.gmem.contents(out, 512).view(np.uint32)

    np.testing.assert_array_equal(column(True), column(False))


@pytest.mark.parametrize("vector", [".scale_vec::1X", ".block32", ""])
def test_an_mma_of_e4m3_with_one_scale_for_32_elements(vector: str) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.integers(0, 0x7F, (128, 32), np.uint8) for _ in range(2))
    sfa, sfb = (rng.integers(110, 140, (128, 4), np.uint8) for _ in range(2))
    data = cores(a) + cores(b) + atom(sfa) + atom(sfb)
    on = machine()
    source = on.gmem.upload("source", np.frombuffer(data, np.uint8))
    out = on.gmem.upload("out", np.zeros((128, 32), np.float32))
    # UE8M0, byte 2 of the words of A and byte 1 of those of B.
    idesc = 1 << 27 | 128 >> 3 << 17 | 1 << 23 | 2 << 29 | 1 << 4
    text = mma_of_128x128(source, out, 132, (f"mxf8f6f4.block_scale{vector}", idesc))
    program = Program.of(parse(kernel(text)))
    launch(on, program, (1, 1, 1), (128, 1, 1), struct.pack("<0Q"))
    found = on.gmem.contents(out, 512).view(np.uint32)
    e4m3 = ElementFormat.E4M3
    want = matmul_mxf8f6f4(
        a, b, sfa[:, 2:3], sfb[:, 1:2], None, a_format=e4m3, b_format=e4m3
    )
    np.testing.assert_array_equal(found, want[:, 5].view(np.uint32))
