"""mma_unscaled: the descriptor of the kinds without scales, and their MMAs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_machine import MBAR, TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.errors import (
    ClusterFault,
    DescriptorFault,
    MissingProxyFence,
    NotModelled,
    ReadWhileInFlight,
    TmemAllocationFault,
)
from fp4ref.hardware import (
    cluster,
    mbarrier,
    mma_unscaled,
    named_barrier,
    smem,
    tcgen05,
    tma,
    tmem,
)
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ElementFormat, matmul_unscaled

NONE, B32, B64, B128, _ = SwizzleMode
F16, BF16 = ElementFormat.F16, ElementFormat.BF16
E4M3, E5M2 = ElementFormat.E4M3, ElementFormat.E5M2

# -- instruction descriptor


def idesc(n=128, *, a=0, b=0, d_type=1, m=128, negate_a=0, negate_b=0):
    """The 32 bits, from PTX's table."""
    word = d_type << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    return word | negate_a << 13 | negate_b << 14


@pytest.mark.parametrize(
    ("word", "kind", "n", "element"),
    [
        # As CUTLASS passes them: tutorial 01 and example 81.
        (0x08400010, "f16", 256, F16),
        (0x08200010, "f8f6f4", 128, E4M3),
        (0x08200490, "f16", 128, BF16),
        (0x08040490, "f8f6f4", 16, E5M2),
    ],
)
def test_golden_idesc_without_scales(word, kind, n, element):
    descriptor = UnscaledInstrDescriptor(kind, 128, n, element, element)
    assert descriptor.encode() == word
    assert UnscaledInstrDescriptor.decode(word, kind) == descriptor


@given(
    st.integers(1, 16).map(lambda i: 16 * i),
    st.sampled_from([E4M3, E5M2]),
    st.sampled_from([E4M3, E5M2]),
    st.booleans(),
    st.booleans(),
)
def test_idesc_without_scales_round_trip(n, a, b, negate_a, negate_b):
    d = UnscaledInstrDescriptor("f8f6f4", 128, n, a, b, negate_a, negate_b)
    codes = {E4M3: 0, E5M2: 1}
    word = idesc(n, a=codes[a], b=codes[b], negate_a=negate_a, negate_b=negate_b)
    assert d.encode() == word
    assert UnscaledInstrDescriptor.decode(word, "f8f6f4") == d


@pytest.mark.parametrize(
    ("word", "kind", "error", "says"),
    [
        (idesc(a=2, b=2), "f16", DescriptorFault, "element types 2 and 2"),
        (idesc(a=2), "f8f6f4", DescriptorFault, "element types 2 and 0"),
        (idesc(b=6), "f8f6f4", DescriptorFault, "element types 0 and 6"),
        (idesc(a=1), "f16", DescriptorFault, "A is BF16 and B F16"),
        (idesc(d_type=2), "f16", DescriptorFault, "D type S32"),
        (idesc(d_type=3), "f16", DescriptorFault, r"D type \(none\)"),
        (idesc(m=256), "f16", DescriptorFault, "M is 256"),
        (idesc(m=32), "f16", DescriptorFault, "M is 32"),
        (idesc(m=96), "f16", DescriptorFault, "M is 96"),
        (idesc() | 1 << 2, "f16", NotModelled, "sparsity 4"),
        (idesc() | 1, "f16", NotModelled, "sparsity 1"),
        (idesc(0), "f16", DescriptorFault, "N is 0"),
        (idesc(272), "f16", DescriptorFault, "N is 272"),
        *(
            (idesc() | 1 << bit, "f16", DescriptorFault, "another kind or of .ws")
            for bit in (3, 6, 23, 29, 30, 31)
        ),
    ],
)
def test_refused_idesc_without_scales(word, kind, error, says):
    with pytest.raises(error, match=says):
        UnscaledInstrDescriptor.decode(word, kind)


# -- MMAs on a machine

A_AT, B_AT = TILE, TILE + 0x8000
MEMORY = random_bytes(0x10000, seed=11)
"""What shared memory holds from `TILE`."""
# Few codes that are Inf or NaN, so that results say something.
MEMORY[1::2] &= 0xBB
MEMORY[0::2] &= 0xFB


def put_memory(cta):
    cta.smem.poke(TILE, MEMORY)


def descriptor(start, swizzle=B128, stride=None, leading=16):
    stride = 8 * (16 << swizzle) if stride is None else stride
    return SmemDescriptor(start, leading, stride, swizzle).encode()


def tile(rows, start, swizzle=B128, stride=None, leading=16):
    """Bytes (rows, 32) of a K-major tile in `MEMORY`."""
    span = 16 << swizzle
    stride = 8 * span if stride is None else stride
    found = np.empty((rows, 32), np.uint8)
    for row in range(rows):
        for byte in range(32):
            at = start + row // 8 * stride + byte % 16
            if swizzle is NONE:
                at += row % 8 * 16 + byte // 16 * leading
            else:
                at = xor_swizzle(at + row % 8 * span + byte // 16 * 16, swizzle)
            found[row, byte] = MEMORY[at - TILE]
    return found


def with_tmem(*steps, columns=512):
    """A warp that owns TMEM, has MBAR initialised, and does the steps."""

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from tmem.alloc(warp, MBAR + 8, columns)
        for step in steps:
            result = step(warp)
            if result is not None:
                yield from result
        tmem.dealloc(warp, 0, columns)

    return body


def commit_and_wait(warp, parity=0):
    tcgen05.commit(warp, MBAR)
    return mbarrier.try_wait(warp, MBAR, parity)


DTYPES = {
    F16: np.float16,
    BF16: ml_dtypes.bfloat16,
    E4M3: ml_dtypes.float8_e4m3fn,
    E5M2: ml_dtypes.float8_e5m2,
}
CODES = {F16: 0, BF16: 1, E4M3: 0, E5M2: 1}


def run_mma(
    a_format=F16,
    b_format=F16,
    *,
    n=64,
    negate=(0, 0),
    swizzle=B128,
    advance=0,
    layout=(None, 16),
    accumulate=True,
    column=0,
    schedule="late",
):
    """Run one MMA; compare D's bits with the arithmetic of `numerics`."""
    kind = "f16" if a_format in (F16, BF16) else "f8f6f4"
    c = np.random.default_rng(4).standard_normal((128, n)).astype(np.float32)
    got = []

    def steps(warp):
        if accumulate:
            for lane in range(128):
                warp.tmem.poke(lane * 2048 + 4 * column, c[lane].view(np.uint8))
        mma_unscaled.mma(
            warp,
            column,
            descriptor(A_AT + advance, swizzle, *layout),
            descriptor(B_AT + advance, swizzle, *layout),
            idesc(
                n,
                a=CODES[a_format],
                b=CODES[b_format],
                negate_a=negate[0],
                negate_b=negate[1],
            ),
            accumulate,
            kind=kind,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, column : column + n].copy())

    launch(machine(schedule), with_tmem(steps), setup=put_memory)
    operands = []
    for at, rows, element, flip in (
        (A_AT, 128, a_format, negate[0]),
        (B_AT, n, b_format, negate[1]),
    ):
        codes = tile(rows, at + advance, swizzle, *layout)
        codes = codes.view(np.uint16) if element.bits == 16 else codes
        operands.append(codes ^ flip * (1 << (element.bits - 1)))
    want = matmul_unscaled(
        *operands,
        c if accumulate else None,
        a_format=a_format,
        b_format=b_format,
    )
    np.testing.assert_array_equal(got[0], want.view(np.uint32))
    return got[0].view(np.float32), operands


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "formats", [(F16, F16), (BF16, BF16), (E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2)]
)
def test_unscaled_mma_for_every_format(formats, accumulate):
    d, (a, b) = run_mma(*formats, accumulate=accumulate)
    # The values are right too, not only the same as those of `numerics`.
    if not accumulate:
        x, y = (
            codes.view(DTYPES[f]).astype(np.float64)
            for codes, f in zip((a, b), formats, strict=True)
        )
        with np.errstate(invalid="ignore"):
            exact = x @ y.T
        finite = np.isfinite(exact) & np.isfinite(d)
        assert finite.sum() > d.size // 2
        bound = np.abs(x) @ np.abs(y).T * 2.0**-20
        assert (np.abs(d - exact) <= bound)[finite].all()


@pytest.mark.parametrize("n", [8, 16, 24, 32, 48, 128, 240, 256])
def test_unscaled_mma_for_every_n(n):
    run_mma(n=n)


@pytest.mark.parametrize("negate", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("element", [F16, E4M3])
def test_negate_without_scales(element, negate):
    run_mma(element, element, n=32, negate=negate)


@pytest.mark.parametrize(
    ("swizzle", "advance"),
    [(B32, 0), (B64, 0), (B64, 32), *((B128, a) for a in (0, 32, 64, 96))],
)
def test_unscaled_tiles_of_every_swizzle_and_the_advance_along_k(swizzle, advance):
    run_mma(swizzle=swizzle, advance=advance)


def test_unscaled_tiles_of_core_matrices():
    run_mma(E4M3, E4M3, swizzle=NONE, layout=(256, 128))


def test_the_accumulator_may_start_at_any_column():
    run_mma(column=40)


def easy_mma(warp, n=128, d=0, accumulate=False, **options):
    tiles = descriptor(A_AT), descriptor(B_AT)
    mma_unscaled.mma(warp, d, *tiles, idesc(n), accumulate, **options)


def test_one_kernel_uses_one_group():
    with pytest.raises(ClusterFault, match=r"executed tcgen05.alloc.cta_group::1"):
        launch(machine(), with_tmem(lambda w: easy_mma(w, cta_group=2)))


def test_the_accumulator_is_allocated_and_starts_at_lane_0():
    def steps(d):
        return with_tmem(lambda w: easy_mma(w, d=d), columns=64)

    with pytest.raises(TmemAllocationFault, match="not all allocated"):
        launch(machine(), steps(0), setup=put_memory)
    with pytest.raises(DescriptorFault, match="accumulator at lane 32"):
        launch(machine(), steps(32 << 16), setup=put_memory)


def test_mmas_of_one_accumulator_run_in_order_and_others_may_not_overlap():
    def same(warp):
        easy_mma(warp)
        easy_mma(warp, accumulate=True)
        yield from commit_and_wait(warp)

    def other(warp):
        easy_mma(warp)
        easy_mma(warp, n=64)

    launch(machine("late"), with_tmem(same), setup=put_memory)
    with pytest.raises(ReadWhileInFlight, match="another shape or start"):
        launch(machine("late"), with_tmem(other), setup=put_memory)


def test_the_fault_names_the_sm_whose_tmem_it_is():
    """Of a cluster on SMs 8 to 11, the third."""

    def steps(warp):
        if warp.tmem.space == "tmem10":
            yield from tmem.alloc(warp, cluster.mapa(warp, MBAR, 2), 512)
            easy_mma(warp)
            easy_mma(warp, n=64)

    options = {"grid": (12, 1, 1), "cluster": (4, 1, 1)}
    with pytest.raises(ReadWhileInFlight, match="another shape or start") as caught:
        launch(machine("late", sms=12), steps, setup=put_memory, **options)
    assert caught.value.where == "tmem10 lane 0 column 0x0"


# -- generic stores


def writer(*, fenced, barrier):
    def body(warp):
        smem.st(warp, B_AT + 1234, random_bytes(1))
        if fenced:
            smem.fence_proxy_async(warp)
        if barrier:
            yield from named_barrier.sync(warp, 1, 64)

    return body


def reader(*, barrier):
    def steps(warp):
        if barrier:
            yield from named_barrier.sync(warp, 1, 64)
        for k in range(4):
            tiles = descriptor(A_AT) + 2 * k, descriptor(B_AT) + 2 * k
            mma_unscaled.mma(warp, 0, *tiles, idesc(), k > 0)
        yield from commit_and_wait(warp)

    return with_tmem(steps)


def test_an_unscaled_mma_needs_a_proxy_fence_too():
    launch(
        machine(), writer(fenced=True, barrier=True), reader(barrier=True),
        setup=put_memory,
    )  # fmt: skip
    with pytest.raises(MissingProxyFence, match="written by warp 0"):
        launch(
            machine(), writer(fenced=False, barrier=True), reader(barrier=True),
            setup=put_memory,
        )  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_shipped_ordering_takes_a_barrier_for_the_proxy_fence(schedule):
    on = machine(schedule, ordering="shipped")
    bodies = writer(fenced=False, barrier=True), reader(barrier=True)
    launch(on, *bodies, setup=put_memory)
    (advisory,) = on.advisories
    assert advisory.endswith("behind a barrier, without fence.proxy.async")
    with pytest.raises(MissingProxyFence, match="written by warp 0"):
        launch(
            machine(schedule, ordering="shipped"),
            writer(fenced=False, barrier=False),
            reader(barrier=False),
            setup=put_memory,
        )


def test_shipped_ordering_takes_no_barrier_for_the_fence_of_a_scaled_mma():
    def steps(warp):
        yield from named_barrier.sync(warp, 1, 64)
        tcgen05.cp(warp, 0, descriptor(B_AT + 1024, NONE, 128))

    def write(warp):
        smem.st(warp, B_AT + 1024, random_bytes(16))
        yield from named_barrier.sync(warp, 1, 64)

    with pytest.raises(MissingProxyFence, match=r"written by warp 0\n"):
        launch(machine(ordering="shipped"), write, with_tmem(steps), setup=put_memory)


def test_a_fence_behind_the_barrier_still_counts_under_shipped_ordering():
    on = machine(ordering="shipped")
    d = TensorMap(DataType.UINT8, on.gmem.allocate("D", 32), (32,), (), (32,))

    def body(warp):
        smem.st(warp, TILE, random_bytes(32))
        yield from named_barrier.sync(warp, 0)
        smem.fence_proxy_async(warp)
        tma.store(warp, d, (0,), TILE)

    launch(on, body)
