"""``wmma`` and ``mma.sync``: products of CUDA's own classes, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from on_lanes import machine, run
from test_nvrtc import compile_cuda, nvrtc_works

from fp4ref.errors import MisalignedAddress, UninitialisedRead
from fp4ref.hardware.order.race import RaceFault
from fp4ref.ptx import PtxError, UndefinedRegister, launch, parse
from fp4ref.ptx.text.program import Program

BF16 = np.dtype(ml_dtypes.bfloat16)
NEEDS_NVRTC = pytest.mark.skipif(
    not nvrtc_works(), reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
TEXT = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const {of_a} *a, const {of_a} *b, const {of_c} *c,
                             {of_d} *d, int stages) {{
  wmma::fragment<wmma::matrix_a, {m}, {n}, {k}, {class_a}, wmma::{a_layout}> fa;
  wmma::fragment<wmma::matrix_b, {m}, {n}, {k}, {class_a}, wmma::{b_layout}> fb;
  wmma::fragment<wmma::accumulator, {m}, {n}, {k}, {of_c}> fc;
  wmma::load_matrix_sync(fc, c, {n}, wmma::mem_row_major);
  for (int s = 0; s < stages; ++s) {{
    wmma::load_matrix_sync(fa, a + s * {m} * {k}, {lda});
    wmma::load_matrix_sync(fb, b + s * {k} * {n}, {ldb});
    wmma::mma_sync(fc, fa, fb, fc);
  }}
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] * {of_c}(2);
  wmma::store_matrix_sync(d, fc, {n}, wmma::mem_row_major);
}}
"""
TYPES = {
    "half": ("half", np.dtype(np.float16)),
    "__nv_bfloat16": ("__nv_bfloat16", BF16),
    "wmma::precision::tf32": ("float", np.dtype(np.float32)),
    "signed char": ("signed char", np.dtype(np.int8)),
    "unsigned char": ("unsigned char", np.dtype(np.uint8)),
}
SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
CASES = [
    *((cls, acc, mnk) for mnk in SHAPES for cls, acc in (
        ("half", "float"), ("half", "half"), ("__nv_bfloat16", "float"),
        ("signed char", "int"), ("unsigned char", "int"))),
    ("wmma::precision::tf32", "float", (16, 16, 8)),
]  # fmt: skip


@NEEDS_NVRTC
@pytest.mark.outside
@pytest.mark.parametrize("layouts", ["row col", "col row"])
@pytest.mark.parametrize(("of_class", "accumulator", "mnk"), CASES)
def test_a_product_of_cuda_has_the_exact_sums(of_class, accumulator, mnk, layouts):
    """Small integers: each sum is exact whatever its order, and is then doubled."""
    (m, n, k), stages = mnk, 2
    of_a, dtype = TYPES[of_class]
    of_c = np.dtype({"float": "f4", "half": "f2", "int": "i4"}[accumulator])
    rng = np.random.default_rng(sum(mnk))
    low = 0 if "unsigned" in of_class else -4
    a, b = rng.integers(low, 5, (stages, m, k)), rng.integers(low, 5, (stages, k, n))
    c = rng.integers(-9, 10, (m, n))
    a_layout, b_layout = (f"{each}_major" for each in layouts.split())
    text = TEXT.format(
        **{"m": m, "n": n, "k": k, "of_a": of_a, "class_a": of_class},
        **{"of_c": accumulator, "of_d": accumulator},
        **{"a_layout": a_layout, "b_layout": b_layout},
        **{"lda": k if a_layout == "row_major" else m},
        **{"ldb": n if b_layout == "row_major" else k},
    )
    program = Program.of(parse(compile_cuda(text)), "k")
    on = machine("late", races="raise")
    stored = [
        x if layout == "row_major" else x.transpose(0, 2, 1)
        for x, layout in ((a, a_layout), (b, b_layout))
    ]
    places = [
        on.gmem.upload(name, np.ascontiguousarray(values).reshape(-1))
        for name, values in (
            ("a", stored[0].astype(dtype)),
            ("b", stored[1].astype(dtype)),
            ("c", c.astype(of_c)),
            ("d", np.zeros((m, n), of_c)),
        )
    ]
    params = b"".join(at.to_bytes(8, "little") for at in places)
    launch(on, program, (1, 1, 1), (32, 1, 1), params + stages.to_bytes(4, "little"))
    found = on.gmem.contents(places[3], m * n * of_c.itemsize).view(of_c)
    assert found.reshape(m, n).astype(int).tolist() == (2 * (a @ b + c).sum(0)
        - 2 * (stages - 1) * c).tolist()  # fmt: skip


# -- what is refused ---------------------------------------------------------------

ROOM = ".shared .align 128 .b8 tile[2048]; mov.u32 %r20, tile;"
FILL = """
    mov.u32 %r21, %tid.x;
    mad.lo.u32 %r22, %r21, 64, %r20;
    mov.b32 %r23, 0x3c003c00;
    st.shared.v4.b32 [%r22], {%r23, %r23, %r23, %r23};
    st.shared.v4.b32 [%r22+16], {%r23, %r23, %r23, %r23};
    st.shared.v4.b32 [%r22+32], {%r23, %r23, %r23, %r23};
    st.shared.v4.b32 [%r22+48], {%r23, %r23, %r23, %r23};
"""
EIGHT = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"


def load(offset: int, stride: int) -> str:
    """A of 16 x 16 halves out of shared memory."""
    opcode = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"
    return f"{opcode} {EIGHT}, [%r20+{offset}], {stride};"


@pytest.mark.parametrize(
    ("offset", "stride", "good"),
    [(0, 16, True), (32, 24, True), (0, 20, False), (16, 16, False), (2, 16, False)],
)
def test_rows_are_aligned(offset, stride, good):
    body = f"{ROOM}{FILL}bar.warp.sync 0xffffffff;{load(offset, stride)}"
    if good:
        run(body, on=machine(races="raise"))
        return
    with pytest.raises(MisalignedAddress, match="from row to row"):
        run(body)


def test_a_tile_that_nobody_wrote_is_no_operand():
    with pytest.raises(UninitialisedRead):
        run(ROOM + load(0, 16))


def test_a_tile_of_other_lanes_needs_a_barrier():
    body = f"{ROOM}{FILL}{load(0, 16)}"
    with pytest.raises(RaceFault):
        run(body, on=machine(races="raise"))


def test_a_store_reaches_those_behind_a_barrier_and_no_others():
    """Each lane reads a word of the tile that another lane's registers made."""
    zeros = "".join(f"mov.b32 %r{i}, {i};" for i in range(1, 9))
    store = f"wmma.store.d.sync.aligned.row.m16n16k16.shared.s32 [%r20], {EIGHT}, 16;"
    read = "mov.u32 %r21, %tid.x; mad.lo.u32 %r22, %r21, 8, %r20; {}" \
        "ld.shared.b32 %r24, [%r22];"  # fmt: skip
    run(
        f"{ROOM}{zeros}{store}{read.format('bar.warp.sync 0xffffffff;')}",
        on=machine(races="raise"),
    )
    with pytest.raises(RaceFault):
        run(f"{ROOM}{zeros}{store}{read.format('')}", on=machine(races="raise"))


def test_registers_without_a_value_are_no_operand():
    with pytest.raises(UndefinedRegister):
        run(
            "mov.b32 %r1, 0; mov.b32 %r2, 0;"
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, "
            "{%r3}, {%r1, %r2};"
        )


def test_half_a_warp_does_not_multiply():
    body = (
        "mov.b32 %r1, 0; mov.u32 %r4, %laneid; setp.lt.u32 %p1, %r4, 16;"
        "@%p1 mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r1}, "
        "{%r1}, {%r1, %r1};"
    )
    with pytest.raises(Exception, match="16 of 32"):
        run(body)


@pytest.mark.parametrize(
    "text",
    [
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1}, {%r3}, "
        "{%r1, %r2};",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 "
        "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r20];",
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r20], {%r1, %r2};",
    ],
)
def test_a_vector_of_another_length_is_named(text):
    with pytest.raises(PtxError, match=r"takes a vector of \d registers as operand"):
        run(ROOM + text)


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.f16.s32",
        "wmma.load.a.sync.aligned.row.m16n16k8.shared.f16",
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f16",
    ],
)
def test_what_ptx_does_not_have_is_no_form(opcode):
    from fp4ref.ptx.run.registry import find

    assert find(opcode) is None


def test_a_matrix_is_transposed_between_lanes():
    """Lane t has row t // 4, columns 2 (t % 4) and the next."""
    on = machine()
    at = on.gmem.upload("out", np.zeros(32, np.uint32))
    body = f"""
        mov.u32 %r1, %laneid; shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1;
        shl.b32 %r3, %r3, 16; or.b32 %r4, %r2, %r3;
        movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;
        mad.wide.u32 %rd1, %r1, 4, {at}; st.global.b32 [%rd1], %r5;
    """
    run(body, on=on)
    found = on.gmem.contents(at, 128).view(np.uint16).reshape(8, 8)
    assert found.tolist() == np.arange(64).reshape(8, 8).T.tolist()
