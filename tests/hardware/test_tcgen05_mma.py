"""tcgen05: MMAs, element by element, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from mma_by_element import check_elements, mma_k64, random_c, random_scales
from mma_tiles import (
    A_AT,
    B32,
    B64,
    B128,
    B_AT,
    MEMORY,
    NONE,
    SFA,
    SFB,
    UE4M3,
    commit_and_wait,
    descriptor,
    easy_mma,
    easy_scales,
    idesc,
    put_memory,
    put_scales,
    tile_codes,
    with_tmem,
)
from on_machine import TILE, launch, machine, xor_swizzle

from fp4ref.errors import (
    ClusterFault,
    DescriptorFault,
    NotModelled,
    OutOfBounds,
    ScaleFactorFault,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware import tcgen05
from fp4ref.hardware.advisory import Advisory
from fp4ref.numerics import mma_block_scaled


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
    form = (swizzle, *(layout or (None, 16)))
    word = idesc(
        n,
        ue8m0=int(ue8m0),
        a_id=ids[0],
        b_id=ids[1],
        negate_a=negate[0],
        negate_b=negate[1],
    )
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
            descriptor(A_AT + advance, *form),
            descriptor(B_AT + advance, *form),
            *(word, SFA, SFB, accumulate),
            kind=kind,
            scale_vec=scale_vec,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :n].copy())

    launch(machine(schedule), with_tmem(steps), setup=put_memory)
    codes_a = tile_codes(128, A_AT + advance, *form)
    codes_b = tile_codes(n, B_AT + advance, *form)
    signed = codes_a ^ 8 * negate[0], codes_b ^ 8 * negate[1]
    check_elements(got[0], *signed, sfa, sfb, c, ue8m0=ue8m0)
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
    [
        *((B32, a) for a in (0, 32, 7 * 32)),
        *((B64, a) for a in (0, 32, 7 * 64)),
        *((B128, a) for a in (0, 32, 64, 96, 128, 7 * 128, 3 * 128 + 32)),
    ],
)
def test_every_swizzle_and_the_advance_along_k(swizzle, advance):
    """+2 in units of 16 bytes for each K=64, on the unswizzled address.

    With the 128-byte swizzle +8 is the next row, with 64 +4: the pattern stays.
    """
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
        (ClusterFault, "has executed tcgen05.alloc.cta_group::1", {"cta_group": 2}),
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
        # 32 bytes from 112 cross the 128-byte row.
        (DescriptorFault, "stays inside its 128", {"b_desc": descriptor(B_AT + 112)}),
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
