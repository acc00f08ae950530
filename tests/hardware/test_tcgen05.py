"""tcgen05: the instruction descriptor, scale copies, MMAs, commit, order, conflicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_machine import MBAR, TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.errors import (
    DescriptorFault,
    MissingProxyFence,
    NotModelled,
    OutOfBounds,
    ReadWhileInFlight,
    ScaleFactorFault,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware import (
    cluster,
    mbarrier,
    named_barrier,
    smem,
    tcgen05,
    tma,
    tmem,
)
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05 import InstrDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat, mma_block_scaled

NONE, B32, B64, B128 = SwizzleMode
UE4M3, UE8M0 = ScaleFormat.UE4M3, ScaleFormat.UE8M0

# -- instruction descriptor


def idesc(n=128, m=128, *, ue8m0=0, a_id=0, b_id=0, negate_a=0, negate_b=0):
    """The 32 bits, from PTX's table."""
    word = 1 << 7 | 1 << 10 | (n >> 3) << 17 | (m >> 7) << 27
    word |= ue8m0 << 23 | a_id << 29 | b_id << 4 | negate_a << 13 | negate_b << 14
    return word


@pytest.mark.parametrize(
    ("word", "n", "scale_format"),
    [
        (0x08200480, 128, UE4M3),
        (0x08100480, 64, UE4M3),
        (0x08300480, 192, UE4M3),
        (0x08400480, 256, UE4M3),
        (0x08A00480, 128, UE8M0),
    ],
)
def test_golden_idesc(word, n, scale_format):
    descriptor = InstrDescriptor(128, n, scale_format)
    assert descriptor.encode() == word
    assert InstrDescriptor.decode(word) == descriptor


@pytest.mark.parametrize("word", [0x10200480, 0x10400480])
def test_golden_idesc_of_two_ctas_is_not_modelled(word):
    with pytest.raises(NotModelled, match="M 256"):
        InstrDescriptor.decode(word)


@given(
    st.integers(1, 32).map(lambda i: 8 * i),
    st.sampled_from(ScaleFormat),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_idesc_round_trip(n, scale_format, a_id, b_id, negate_a, negate_b):
    d = InstrDescriptor(128, n, scale_format, a_id, b_id, negate_a, negate_b)
    word = idesc(
        n,
        ue8m0=int(scale_format is UE8M0),
        a_id=a_id,
        b_id=b_id,
        negate_a=negate_a,
        negate_b=negate_b,
    )
    assert d.encode() == word
    assert InstrDescriptor.decode(word) == d


GOOD = 0x08200480


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        (GOOD | 1 << 2, NotModelled, "sparsity 1"),
        (GOOD | 1 << 31, NotModelled, "K size 1"),
        (GOOD & ~(3 << 27), NotModelled, "M 0"),
        (GOOD | 3 << 27, NotModelled, "M 384"),
        (GOOD & ~(0x3F << 17), DescriptorFault, "N is 0"),
        (idesc(264), DescriptorFault, "N is 264"),
        (GOOD | 1 << 15, DescriptorFault, "transpose"),
        (GOOD | 1 << 16, DescriptorFault, "transpose"),
        # E2M1 is 5 in mxf8f6f4, 1 here.
        (GOOD & ~(7 << 7) | 5 << 7, DescriptorFault, "element types 5 and 1"),
        (GOOD & ~(3 << 10), DescriptorFault, "element types 1 and 0"),
        (GOOD & ~(3 << 10) | 3 << 10, DescriptorFault, "element types 1 and 3"),
        *(
            (GOOD | 1 << bit, DescriptorFault, "reserved")
            for bit in (0, 1, 3, 6, 12, 24, 25, 26)
        ),
    ],
)
def test_refused_idesc(word, error, says):
    with pytest.raises(error, match=says):
        InstrDescriptor.decode(word)


# -- a machine with tiles and scales in place

A_AT, B_AT, SF_AT = TILE, TILE + 0x8000, TILE + 0x18000
SFA, SFB = 256, 264
MEMORY = random_bytes(SF_AT - TILE + 0x1000, seed=7)
"""What shared memory holds from `TILE`: every bit pattern."""


def put_memory(cta):
    cta.smem.poke(TILE, MEMORY)


def descriptor(start, swizzle=B128, stride=None, leading=16):
    stride = 8 * (16 << swizzle) if stride is None else stride
    return SmemDescriptor(start, leading, stride, swizzle).encode()


def tile_codes(rows, start, swizzle, stride=None, leading=16):
    """E2M1 codes (rows, 64) of a K-major tile in `MEMORY`, low nibble first."""
    span = 16 << swizzle
    stride = 8 * span if stride is None else stride
    codes = np.empty((rows, 64), int)
    for row in range(rows):
        for byte in range(32):
            if swizzle is NONE:
                at = start + row // 8 * stride + row % 8 * 16
                at += byte // 16 * leading + byte % 16
            else:
                linear = start + row // 8 * stride + row % 8 * span + byte
                at = xor_swizzle(linear, swizzle)
            value = int(MEMORY[at - TILE])
            codes[row, 2 * byte : 2 * byte + 2] = value & 15, value >> 4
    return codes


def put_scales(warp, column, codes, sf_id=0, seed=0):
    """Scale (row, k) to lane row % 32 + 32 q, byte sf_id + k of column + row // 32.

    The other bytes of a word are noise.
    """
    rows, count = codes.shape
    columns = -(-rows // 32)
    noise = random_bytes(32 * columns * 4, seed).reshape(32, columns, 4)
    for row in range(rows):
        noise[row % 32, row // 32, sf_id : sf_id + count] = codes[row]
    for lane in range(128):
        warp.tmem.poke(lane * 2048 + 4 * column, noise[lane % 32].ravel())


def with_tmem(*steps):
    """A warp that owns all of TMEM, has MBAR initialised, and does the steps."""

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        for step in steps:
            result = step(warp)
            if result is not None:
                yield from result
        tmem.dealloc(warp, 0, 512)

    return body


def commit_and_wait(warp, parity=0):
    tcgen05.commit(warp, MBAR)
    return mbarrier.try_wait(warp, MBAR, parity)


def easy_scales(warp, n=128):
    put_scales(warp, SFA, np.full((128, 4), 0x38))
    put_scales(warp, SFB, np.full((-(-n // 32) * 32, 4), 0x38))


def easy_mma(warp, n=128, d=0, accumulate=False, **options):
    tcgen05.mma(
        warp,
        d,
        descriptor(A_AT),
        descriptor(B_AT),
        idesc(n),
        SFA,
        SFB,
        accumulate,
        **options,
    )


# -- the arithmetic, element by element, from the published model

E2M1 = [0, 1, 2, 3, 4, 6, 8, 12]


def nibble(code):
    value = E2M1[code & 7]
    return -value if code & 8 else value


def scale(code, ue8m0):
    """Significand in eighths and exponent; None for NaN."""
    if ue8m0:
        return None if code == 255 else (8, code - 127)
    code &= 0x7F
    if code == 0x7F:
        return None
    return (code & 7, -6) if code < 8 else (8 + (code & 7), (code >> 3) - 7)


def toward_zero(n, q):
    """n * 2^q as float32 bits."""
    sign, m = (0x80000000, -n) if n < 0 else (0, n)
    if m == 0:
        return 0
    e = m.bit_length() - 1 + q
    if e > 127:
        return sign | 0x7F800000
    shift = q - (max(e, -126) - 23)
    m = m << shift if shift >= 0 else m >> -shift
    return sign | (m if e < -126 else (e + 127) << 23 | m & 0x7FFFFF)


def mma_k64(a, b, c, sfa, sfb, ue8m0=False, fraction=35):
    """MMA-Sim's model of one output; 64 codes each, C bits, 4 scales each."""
    scales_a = [scale(s, ue8m0) for s in sfa]
    scales_b = [scale(s, ue8m0) for s in sfb]
    field, mantissa = c >> 23 & 255, c & 0x7FFFFF
    if None in scales_a or None in scales_b or (field == 255 and mantissa):
        return 0x7FFFFFFF
    if field == 255:
        return c
    terms = []
    for g in range(4):
        products = [nibble(a[i]) * nibble(b[i]) for i in range(16 * g, 16 * g + 16)]
        (ma, ea), (mb, eb) = scales_a[g], scales_b[g]
        live = any(products) and ma * mb
        terms.append((sum(products) * ma * mb, -8, ea + eb if live else -139))
    sig = mantissa | (0x800000 if field else 0)
    exponent = (field or 1) - 127 if sig else -139
    terms.append((-sig if c >> 31 else sig, -23, exponent))
    top = max(t[2] for t in terms)
    total = 0
    for n, q, e in terms:
        shift = e - top + fraction + q
        m = abs(n) << shift if shift >= 0 else abs(n) >> -shift
        total += -m if n < 0 else m
    return toward_zero(total, top - fraction)


def check_elements(got, codes_a, codes_b, sfa, sfb, c, *, ue8m0=False, count=60):
    """Compare random elements, the corners among them, with the model."""
    rng = np.random.default_rng(3)
    n = codes_b.shape[0]
    pairs = [(0, 0), (127, n - 1), (0, n - 1), (127, 0)]
    pairs += list(
        zip(rng.integers(0, 128, count), rng.integers(0, n, count), strict=True)
    )
    repeat = 4 // sfa.shape[1]
    for i, j in pairs:
        want = mma_k64(
            [int(x) for x in codes_a[i]],
            [int(x) for x in codes_b[j]],
            int(c[i, j]),
            [int(x) for x in np.repeat(sfa[i], repeat)],
            [int(x) for x in np.repeat(sfb[j], repeat)],
            ue8m0,
        )
        assert got[i, j] == want, (i, j, hex(int(got[i, j])), hex(want))


def random_scales(rows, count, ue8m0, seed):
    """Wide scales; few NaN, so that most results say something."""
    rng = np.random.default_rng(seed)
    if ue8m0:
        codes = rng.integers(110, 144, (rows, count))
        codes[rng.random((rows, count)) < 0.002] = 255
        return codes
    codes = rng.integers(0, 0x7F, (rows, count))
    codes[rng.random((rows, count)) < 0.002] = 0x7F
    return codes | rng.integers(0, 2, (rows, count)) << 7


def random_c(n, seed):
    """Float32 bits of many magnitudes, with some zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        c = rng.standard_normal((128, n)) * 2.0 ** rng.integers(-60, 40, (128, n))
    bits = c.astype(np.float32).view(np.uint32)
    special = rng.random((128, n))
    bits[special < 0.05] = 0
    bits[special < 0.01] = 0x7F800000
    bits[special < 0.005] = 0x7F800001
    return bits


def run_mma(
    *,
    n=128,
    kind="mxf4nvf4",
    scale_vec="4X",
    ue8m0=False,
    ids=(0, 0),
    negate=(0, 0),
    swizzle=B128,
    advance=0,
    layout=None,
    accumulate=True,
    schedule="late",
):
    """Run one MMA; compare it with the model. Returns D's bits."""
    count = 4 if scale_vec in ("4X", "block16") else 2
    sfa = random_scales(128, count, ue8m0, 1)
    sfb = random_scales(n, count, ue8m0, 2)
    c = random_c(n, 4) if accumulate else np.zeros((128, n), np.uint32)
    stride, leading = layout or (None, 16)
    got = []

    def steps(warp):
        put_scales(warp, SFA, sfa, ids[0], 5)
        put_scales(warp, SFB, sfb, ids[1], 6)
        if accumulate:
            for lane in range(128):
                warp.tmem.poke(lane * 2048, c[lane].view(np.uint8))
        tcgen05.mma(
            warp,
            0,
            descriptor(A_AT + advance, swizzle, stride, leading),
            descriptor(B_AT + advance, swizzle, stride, leading),
            idesc(
                n,
                ue8m0=int(ue8m0),
                a_id=ids[0],
                b_id=ids[1],
                negate_a=negate[0],
                negate_b=negate[1],
            ),
            SFA,
            SFB,
            accumulate,
            kind=kind,
            scale_vec=scale_vec,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :n].copy())

    launch(machine(schedule), with_tmem(steps), setup=put_memory)
    codes_a = tile_codes(128, A_AT + advance, swizzle, stride, leading)
    codes_b = tile_codes(n, B_AT + advance, swizzle, stride, leading)
    check_elements(
        got[0],
        codes_a ^ 8 * negate[0],
        codes_b ^ 8 * negate[1],
        sfa,
        sfb,
        c,
        ue8m0=ue8m0,
    )
    return got[0], (codes_a, codes_b, sfa, sfb, c)


@pytest.mark.parametrize("n", [8, 16, 24, 32, 40, 64, 96, 128, 184, 192, 256])
@pytest.mark.parametrize("accumulate", [False, True])
def test_mma_for_every_n(n, accumulate):
    run_mma(n=n, accumulate=accumulate)


@pytest.mark.parametrize(
    ("kind", "scale_vec", "ue8m0", "ids"),
    [
        ("mxf4nvf4", "4X", False, (0, 0)),
        ("mxf4nvf4", "block16", False, (0, 0)),
        ("mxf4nvf4", "4X", True, (0, 0)),
        *(
            (kind, vec, True, ids)
            for kind, vec in [
                ("mxf4nvf4", "2X"),
                ("mxf4nvf4", "block32"),
                ("mxf4", "2X"),
                ("mxf4", "block32"),
                ("mxf4", ""),
            ]
            for ids in [(0, 0), (2, 0), (0, 2), (2, 2)]
        ),
    ],
)
def test_mma_for_every_kind_and_scale_id(kind, scale_vec, ue8m0, ids):
    run_mma(n=64, kind=kind, scale_vec=scale_vec, ue8m0=ue8m0, ids=ids)


@pytest.mark.parametrize("negate", [(1, 0), (0, 1), (1, 1)])
def test_negate(negate):
    run_mma(n=32, negate=negate)


@pytest.mark.parametrize(
    ("swizzle", "advance"),
    [(B32, 0), (B64, 0), (B64, 32), *((B128, a) for a in (0, 32, 64, 96))],
)
def test_every_swizzle_and_the_advance_along_k(swizzle, advance):
    """+2 in units of 16 bytes for each K=64, on the unswizzled address."""
    run_mma(n=128, swizzle=swizzle, advance=advance)
    word = descriptor(A_AT, swizzle) + advance // 16
    assert word == descriptor(A_AT + advance, swizzle)


@pytest.mark.parametrize("layout", [(256, 128), (128, 2048), (512, 128), (144, 4096)])
def test_core_matrices_without_swizzle(layout):
    """(SBO, LBO); the first is the one that ran on hardware."""
    run_mma(n=64, swizzle=NONE, layout=layout)


def test_the_whole_accumulator_against_numerics():
    got, (codes_a, codes_b, sfa, sfb, c) = run_mma(n=256)
    want = mma_block_scaled(
        codes_a.astype(np.uint8),
        codes_b.astype(np.uint8),
        sfa.astype(np.uint8),
        sfb.astype(np.uint8),
        c.view(np.float32),
        scale_format=UE4M3,
        vec_size=16,
    )
    np.testing.assert_array_equal(got, want.view(np.uint32))


def hand_machine(a, b, sfa=0x38, sfb=0x38, c=0.0, schedule="late"):
    """Row 0 of A and of B are the given 64 codes, all else 0; returns D[0, 0]."""
    got = []

    def setup(cta):
        cta.smem.poke(TILE, np.zeros(MEMORY.size, np.uint8))
        for at, codes in ((A_AT, a), (B_AT, b)):
            packed = [codes[2 * i] | codes[2 * i + 1] << 4 for i in range(32)]
            cta.smem.poke(at, np.array(packed, np.uint8))

    def steps(warp):
        put_scales(warp, SFA, np.broadcast_to(np.array(sfa), (128, 4)))
        put_scales(warp, SFB, np.broadcast_to(np.array(sfb), (32, 4)))
        word = np.array([c], "<f4").view(np.uint8)
        for lane in range(128):
            warp.tmem.poke(lane * 2048, np.tile(word, 8))
        easy_mma(warp, 8, 0, True)
        yield from commit_and_wait(warp)
        got.append(float(warp.tmem.cells[0, 0:1].view(np.float32)[0]))

    launch(machine(schedule), with_tmem(steps), setup=setup)
    return got[0]


def test_by_hand():
    """1 * 1 + 6 * 0.5 - 3 * 2 = -2, times scales 2 and 0.5, plus 10."""
    a = [2, 7, 13] + [0] * 61
    b = [2, 1, 4] + [0] * 61
    assert hand_machine(a, b) == -2.0
    assert hand_machine(a, b, sfa=0x40) == -4.0
    assert hand_machine(a, b, sfa=0x40, sfb=0x30, c=10.0) == 8.0


def test_b36_the_sum_is_truncated():
    three = [5] + [0] * 63
    one = [2] + [0] * 63
    assert hand_machine(three, one, c=2.0**24) == 16777218.0
    assert hand_machine(one, one, c=2.0**24) == 16777216.0


def test_b36_cancellation_inside_one_mma():
    """Groups: +0.25 and -0.25 at scale 2^16, then 0.25 at 2^-18."""
    a = [0] * 64
    b = [0] * 64
    for group, sign in ((0, 0), (1, 8), (2, 0)):
        a[16 * group], b[16 * group] = 1 | sign, 1
    low = [0x78, 0x78, 0x01, 0x38]
    assert hand_machine(a, b, low, low) == 0.0
    higher = [0x78, 0x78, 0x08, 0x38]
    assert hand_machine(a, b, higher, higher) == 2.0**-14


def test_k_blocks_chain_through_the_accumulator():
    """Four MMAs of one 128B row, each truncating once."""
    sfa, sfb = random_scales(128, 4, False, 11), random_scales(32, 4, False, 12)
    got = []

    def steps(warp):
        put_scales(warp, SFA, sfa)
        put_scales(warp, SFB, sfb)
        for k in range(4):
            tcgen05.mma(
                warp,
                0,
                descriptor(A_AT) + 2 * k,
                descriptor(B_AT) + 2 * k,
                idesc(16),
                SFA,
                SFB,
                k > 0,
            )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :16].copy())

    for schedule in ("eager", "late", 0, 1):
        launch(machine(schedule), with_tmem(steps), setup=put_memory)
    for i, j in [(0, 0), (127, 15), (31, 7), (64, 8), (99, 3)]:
        c = 0
        for k in range(4):
            a = tile_codes(128, A_AT + 32 * k, B128)[i]
            b = tile_codes(16, B_AT + 32 * k, B128)[j]
            c = mma_k64(a.tolist(), b.tolist(), c, sfa[i].tolist(), sfb[j].tolist())
        assert {int(d[i, j]) for d in got} == {c}


def test_a_shifted_scale_address():
    """B23: an odd tile of 64 columns starts 64 rows, +2 columns, into its atom."""
    sfb = random_scales(128, 4, False, 21)
    got = []

    def steps(warp):
        put_scales(warp, SFA, np.full((128, 4), 0x38))
        put_scales(warp, SFB, sfb)
        tcgen05.mma(
            warp, 0, descriptor(A_AT), descriptor(B_AT), idesc(64), SFA, SFB + 2, False
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :64].copy())

    launch(machine(), with_tmem(steps), setup=put_memory)
    check_elements(
        got[0],
        tile_codes(128, A_AT, B128),
        tile_codes(64, B_AT, B128),
        np.full((128, 4), 0x38),
        sfb[64:],
        np.zeros((128, 64), np.uint32),
        count=20,
    )


ODD = Advisory.ODD_SCALE_COLUMN.value


@pytest.mark.parametrize("ordering", ["ptx", "shipped"])
@pytest.mark.parametrize(
    ("column", "value", "counts"),
    [(0, 64.0, {}), (1, 128.0, {ODD: 1}), (2, 256.0, {}), (3, 512.0, {ODD: 1})],
)
def test_b71_scales_at_an_odd_column_are_counted(column, value, counts, ordering):
    """N = 32, all data 1, and rows 32 q of SFB have scale 2^q."""
    got = []

    def setup(cta):
        cta.smem.poke(TILE, np.full(MEMORY.size, 0x22, np.uint8))

    def steps(warp):
        put_scales(warp, SFA, np.full((128, 4), 0x38))
        rows = 0x38 + 8 * (np.arange(128) // 32)
        put_scales(warp, SFB, np.repeat(rows[:, None], 4, axis=1))
        tcgen05.mma(
            warp,
            0,
            descriptor(A_AT),
            descriptor(B_AT),
            idesc(32),
            SFA,
            SFB + column,
            False,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :32].copy().view(np.float32))

    on = machine(ordering=ordering)
    launch(on, with_tmem(steps), setup=setup)
    assert np.unique(got[0]).tolist() == [value]
    assert on.advisories == counts


@pytest.mark.parametrize("n", [64, 192])
def test_b71_the_shift_by_two_columns_of_cutlass_is_not_counted(n):
    on = machine()

    def steps(warp):
        put_scales(warp, SFA, np.full((128, 4), 0x38))
        put_scales(warp, SFB, np.full((256, 4), 0x38))
        tcgen05.mma(
            warp, 0, descriptor(A_AT), descriptor(B_AT), idesc(n), SFA, SFB + 2, False
        )
        yield from commit_and_wait(warp)

    launch(on, with_tmem(steps), setup=put_memory)
    assert on.advisories == {}


def test_b71_an_odd_column_of_sfa_is_counted_too():
    on = machine()

    def steps(warp):
        put_scales(warp, SFA + 1, np.full((128, 4), 0x38))
        put_scales(warp, SFB, np.full((32, 4), 0x38))
        tcgen05.mma(
            warp, 0, descriptor(A_AT), descriptor(B_AT), idesc(8), SFA + 1, SFB, False
        )
        yield from commit_and_wait(warp)

    launch(on, with_tmem(steps), setup=put_memory)
    assert on.advisories == {ODD: 1}


# -- refusals of an MMA


def refused(error, says, mutate=None, setup=put_memory, **change):
    arguments = {
        "d_tmem": 0,
        "a_desc": descriptor(A_AT),
        "b_desc": descriptor(B_AT),
        "idesc": idesc(),
        "sfa_tmem": SFA,
        "sfb_tmem": SFB,
        "enable_input_d": False,
    }

    def steps(warp):
        easy_scales(warp)
        if mutate:
            mutate(warp)
        tcgen05.mma(warp, **arguments | change)

    with pytest.raises(error, match=says):
        launch(machine(), with_tmem(steps), setup=setup)


@pytest.mark.parametrize(
    ("error", "says", "change"),
    [
        (NotModelled, "kind::mxf8f6f4", {"kind": "mxf8f6f4"}),
        (NotModelled, "kind::f16", {"kind": "f16"}),
        (NotModelled, "cta_group::2", {"cta_group": 2}),
        (DescriptorFault, "mxf4 with scale_vec 4X", {"kind": "mxf4"}),
        (DescriptorFault, r"scale_vec \(none\)", {"scale_vec": ""}),
        (DescriptorFault, "UE4M3 scales with 32", {"scale_vec": "2X"}),
        (DescriptorFault, "UE4M3 scales with 32", {"kind": "mxf4", "scale_vec": "2X"}),
        (DescriptorFault, "ids 2 and 0", {"idesc": idesc(a_id=2)}),
        (DescriptorFault, "ids 0 and 1", {"idesc": idesc(b_id=1)}),
        (
            DescriptorFault,
            r"one of \[0, 2\]",
            {"idesc": idesc(ue8m0=1, b_id=1), "scale_vec": "2X"},
        ),
        (DescriptorFault, "accumulator at lane 32", {"d_tmem": 32 << 16}),
        (DescriptorFault, "SFA at lane 1", {"sfa_tmem": 1 << 16 | SFA}),
        (DescriptorFault, "SFB at lane 96", {"sfb_tmem": 96 << 16 | SFB}),
        (ScaleFactorFault, "SFA lies in the columns", {"sfa_tmem": 124}),
        (ScaleFactorFault, "SFB lies in the columns", {"sfb_tmem": 100}),
        (TmemAllocationFault, "not all allocated", {"d_tmem": 400}),
        (TmemAllocationFault, "not all allocated", {"sfa_tmem": 510}),
        (DescriptorFault, "Hopper", {"a_desc": 1 << 62 | 64 << 32 | A_AT >> 4}),
        # Hopper reads such a tile right if the pattern itself is aligned.
        (NotModelled, "at row 1 of the swizzle", {"a_desc": descriptor(A_AT + 128)}),
        (NotModelled, "at row 7 of the swizzle", {"b_desc": descriptor(B_AT + 896)}),
        # 32 bytes from 112 cross the 128-byte row.
        (DescriptorFault, "stays inside its 128", {"b_desc": descriptor(B_AT + 112)}),
        (
            NotModelled,
            "the pattern starts on 256",
            {"a_desc": descriptor(A_AT + 32, B32)},
        ),
        (OutOfBounds, "outside smem0", {"a_desc": descriptor(0x38000)}),
    ],
)
def test_refused_mma(error, says, change):
    refused(error, says, **change)


def test_scales_that_differ_between_quarters():
    def corrupt(warp):
        warp.tmem.poke((37 + 32) * 2048 + 4 * (SFB + 2) + 3, np.array([0x41], np.uint8))

    refused(
        ScaleFactorFault,
        "scale byte 3 of row 69 is 0x38 in lane 5 and 0x41 in lane 69",
        mutate=corrupt,
    )


def test_poison_in_a_tile_an_accumulator_or_the_scales():
    refused(UninitialisedRead, "never written", setup=None)
    refused(UninitialisedRead, "tmem0 lane 0", enable_input_d=True)
    refused(UninitialisedRead, "column 0x180", sfa_tmem=0x180)


def test_bytes_between_the_rows_of_a_tile_need_not_be_written():
    """Only K block 1 of each row is there."""

    def setup(cta):
        for start in (A_AT, B_AT):
            for row in range(128):
                for chunk in (2, 3):
                    at = xor_swizzle(start + 128 * row + 16 * chunk, 3)
                    cta.smem.poke(at, MEMORY[at - TILE : at - TILE + 16])

    def steps(warp):
        easy_scales(warp)
        tcgen05.mma(
            warp,
            0,
            descriptor(A_AT) + 2,
            descriptor(B_AT) + 2,
            idesc(),
            SFA,
            SFB,
            False,
        )

    launch(machine(), with_tmem(steps), setup=setup)
    with pytest.raises(UninitialisedRead):
        launch(
            machine(),
            with_tmem(easy_scales, easy_mma),
            setup=setup,
        )


# -- copies

SF_WORD = 0x00004008 << 32 | 1 << 16


def test_b22_cp_lands_in_all_four_quarters():
    got = []

    def steps(warp):
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.cp(warp, SFB, (SF_WORD | SF_AT >> 4) + 0x20)
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells.copy().view(np.uint8).reshape(128, 512, 4))

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    source = MEMORY[SF_AT - TILE :]
    for block, column in ((0, SFA), (512, SFB)):
        for r in range(32):
            for c in range(16):
                for lane in (r, r + 32, r + 64, r + 96):
                    cell = got[0][lane, column + c // 4, c % 4]
                    assert cell == source[block + 16 * r + c]
    # Scale (33, 2) of a 128x4 atom.
    assert got[0][1, SFA + 1, 2] == source[33 % 32 * 16 + 33 // 32 * 4 + 2]


def test_cp_leading_offset_is_ignored():
    def steps(warp):
        tcgen05.cp(warp, SFA, 0x00004008 << 32 | SF_AT >> 4)
        yield from commit_and_wait(warp)
        np.testing.assert_array_equal(
            warp.tmem.cells[:32, SFA : SFA + 4],
            MEMORY[SF_AT - TILE :][:512].view("<u4").reshape(32, 4),
        )

    launch(machine(), with_tmem(steps), setup=put_memory)


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        *(
            (NotModelled, shape, (SFA, SF_WORD | SF_AT >> 4, shape))
            for shape in (
                "128x256b",
                "4x256b",
                "128x128b",
                "64x128b.warpx2::02_13",
                "64x128b.warpx2::01_23",
            )
        ),
        (NotModelled, "cta_group::2", (SFA, SF_WORD, "32x128b.warpx4", 2)),
        (NotModelled, "B128 layout", (SFA, descriptor(SF_AT))),
        (DescriptorFault, "to lane 32", (32 << 16 | SFA, SF_WORD | SF_AT >> 4)),
        (TmemAllocationFault, "not all allocated", (510, SF_WORD | SF_AT >> 4)),
        (UninitialisedRead, "never written", (SFA, SF_WORD | 0x30000 >> 4)),
    ],
)
def test_refused_cp(error, says, arguments):
    with pytest.raises(error, match=says):
        launch(
            machine(), with_tmem(lambda w: tcgen05.cp(w, *arguments)), setup=put_memory
        )


def test_the_scale_id_bits_of_an_address_are_not_an_address():
    def steps(warp):
        easy_scales(warp)
        tcgen05.cp(warp, 2 << 30 | 0x180, SF_WORD | SF_AT >> 4)
        yield from commit_and_wait(warp)
        assert warp.tmem.written.reshape(128, 512, 4)[:, 0x180:0x184].all()

    launch(machine(), with_tmem(steps), setup=put_memory)


# -- order


def landing_order(*steps, schedule="late", ordering="ptx"):
    on = machine(schedule, ordering=ordering, trace=True)
    launch(on, with_tmem(*steps, commit_and_wait), setup=put_memory)
    return [e.operation for e in on.recorder.trace if e.kind == "land"], on


@pytest.mark.parametrize("schedule", ["late", *range(30)])
def test_commit_comes_after_everything_before_it(schedule):
    def steps(warp):
        for k in range(4):
            tcgen05.cp(warp, SFA + 4 * k, SF_WORD | SF_AT >> 4)
            tcgen05.cp(warp, SFB + 20 + 4 * k, SF_WORD | SF_AT >> 4)
        for k in range(4):
            tcgen05.mma(
                warp,
                0,
                descriptor(A_AT) + 2 * k,
                descriptor(B_AT) + 2 * k,
                idesc(),
                SFA + 4 * k,
                SFB + 20 + 4 * k,
                k > 0,
            )

    order, _ = landing_order(steps, schedule=schedule)
    assert order[-1] == "tcgen05.commit"
    assert order[-5:-1] == ["tcgen05.mma"] * 4
    assert order[:8] == ["tcgen05.cp"] * 8


@pytest.mark.parametrize("schedule", ["late", *range(10)])
def test_commits_of_one_thread_arrive_in_order(schedule):
    second = MBAR + 16

    def steps(warp):
        mbarrier.init(warp, second, 1)
        easy_scales(warp)
        easy_mma(warp)
        tcgen05.commit(warp, second)

    _, on = landing_order(steps, schedule=schedule)
    arrivals = [
        e.operands["mbar"]
        for e in on.recorder.trace
        if e.kind == "land" and e.operation == "tcgen05.commit"
    ]
    assert arrivals[0] == second
    assert len(arrivals) == 2


def test_commit_covers_only_its_own_thread():
    """Another warp's commit does not track this warp's MMA."""
    on = machine("late", trace=True)
    second = MBAR + 16

    def issuer(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.init(warp, second, 1)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        easy_scales(warp)
        easy_mma(warp)
        yield from named_barrier.sync(warp, 1, 64)
        yield from commit_and_wait(warp)
        tmem.dealloc(warp, 0, 512)

    def other(warp):
        yield from named_barrier.sync(warp, 1, 64)
        tcgen05.commit(warp, second)
        yield from mbarrier.try_wait(warp, second, 0)

    launch(on, issuer, other, setup=put_memory)
    landed = [
        (e.operation, e.operands.get("mbar"))
        for e in on.recorder.trace
        if e.kind == "land"
    ]
    assert landed.index(("tcgen05.commit", second)) < landed.index(
        ("tcgen05.mma", None)
    )


def test_commit_to_several_ctas():
    on = machine("late", sms=2)

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 0:
            tcgen05.commit(warp, base, 0b11)
        yield from mbarrier.try_wait(warp, base, 0)

    launch(on, body, grid=(2, 1, 1), cluster=(2, 1, 1))


def test_commit_of_two_ctas_is_not_modelled():
    with pytest.raises(NotModelled, match="cta_group::2"):
        launch(machine(), lambda w: tcgen05.commit(w, MBAR, cta_group=2))


def cp_over_live_scales(warp):
    easy_scales(warp)
    easy_mma(warp)
    tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)


def test_cp_over_columns_that_an_mma_reads():
    says = r"tcgen05\.cp touches.*tcgen05\.mma in flight reads"
    with pytest.raises(ReadWhileInFlight, match=says):
        landing_order(cp_over_live_scales)
    # Some random order finds it too.
    found = 0
    for seed in range(20):
        try:
            landing_order(cp_over_live_scales, schedule=seed)
        except ReadWhileInFlight:
            found += 1
    assert found


@pytest.mark.parametrize("schedule", ["late", *range(10)])
def test_shipped_ordering_keeps_mma_and_cp_in_order(schedule):
    order, on = landing_order(
        cp_over_live_scales, schedule=schedule, ordering="shipped"
    )
    assert order == ["tcgen05.mma", "tcgen05.cp", "tcgen05.commit"]
    if schedule == "late":
        assert on.advisories == {"tcgen05.cp over columns that an earlier MMA reads": 1}


@pytest.mark.parametrize(
    "second", [{"n": 64}, {"d": 64}, {"n": 256, "accumulate": True}]
)
def test_mmas_of_another_shape_or_start_are_not_ordered(second):
    def steps(warp):
        easy_scales(warp, 256)
        easy_mma(warp)
        easy_mma(warp, **second)

    with pytest.raises(ReadWhileInFlight, match="same shape and accumulator"):
        landing_order(steps)
    if "d" not in second and second["n"] == 64:
        landing_order(steps, ordering="shipped")


def test_mmas_into_two_accumulators():
    def steps(warp):
        put_scales(warp, 400, np.full((128, 4), 0x38))
        for d in (0, 128):
            for k in range(2):
                tcgen05.mma(
                    warp,
                    d,
                    descriptor(A_AT),
                    descriptor(B_AT),
                    idesc(),
                    400,
                    400,
                    k > 0,
                )

    landing_order(steps)


def load_map(on):
    source = on.gmem.upload("A", random_bytes(16384))
    return TensorMap(
        DataType.U4_ALIGN8B, source, (256, 128), (128,), (256, 128), swizzle=B128
    )


def test_tma_load_into_a_stage_that_an_mma_reads():
    on = machine("late")
    a = load_map(on)

    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        mbarrier.expect_tx(warp, MBAR, 16384)
        tma.load(warp, a, (0, 0), A_AT, MBAR)

    with pytest.raises(ReadWhileInFlight, match=r"load touches.*mma in flight reads"):
        launch(on, with_tmem(steps), setup=put_memory)


def test_mma_before_its_stage_has_landed():
    on = machine("late")
    a = load_map(on)

    def steps(warp):
        easy_scales(warp)
        mbarrier.expect_tx(warp, MBAR, 16384)
        tma.load(warp, a, (0, 0), A_AT, MBAR)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match=r"mma touches.*load in flight writes"):
        launch(on, with_tmem(steps), setup=put_memory)


def test_ld_of_an_accumulator_in_flight():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        tmem.ld(warp, 0, "32x32b", 32)

    with pytest.raises(ReadWhileInFlight, match=r"ld touches.*mma in flight writes"):
        landing_order(steps)


def test_mma_over_an_accumulator_that_is_being_loaded():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)
        yield from commit_and_wait(warp)
        tmem.ld(warp, 0, "32x32b", 32)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match=r"mma touches.*ld in flight reads"):
        launch(machine("late"), with_tmem(steps), setup=put_memory)


def test_dealloc_under_an_mma():
    def steps(warp):
        easy_scales(warp)
        easy_mma(warp)

    with pytest.raises(ReadWhileInFlight, match="an access touches"):
        launch(machine("late"), with_tmem(steps), setup=put_memory)


@pytest.mark.parametrize("what", ["cp", "mma"])
def test_generic_stores_need_a_proxy_fence(what):
    def steps(fenced):
        def run(warp):
            easy_scales(warp)
            at = SF_AT + 500 if what == "cp" else B_AT + 12345
            smem.st(warp, at, random_bytes(1))
            if fenced:
                smem.fence_proxy_async(warp)
            if what == "cp":
                tcgen05.cp(warp, 400, SF_WORD | SF_AT >> 4)
            else:
                for k in range(4):
                    tcgen05.mma(
                        warp,
                        0,
                        descriptor(A_AT) + 2 * k,
                        descriptor(B_AT) + 2 * k,
                        idesc(),
                        SFA,
                        SFB,
                        False,
                    )

        return run

    launch(machine(), with_tmem(steps(True)), setup=put_memory)
    with pytest.raises(MissingProxyFence, match=r"1 bytes written by st\.shared"):
        launch(machine(), with_tmem(steps(False)), setup=put_memory)


def test_fences_change_nothing():
    on = machine(trace=True)

    def body(warp):
        tcgen05.fence_before_thread_sync(warp)
        tcgen05.fence_after_thread_sync(warp)

    launch(on, body)
    assert all(not e.reads and not e.writes for e in on.recorder.trace)
