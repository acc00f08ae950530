"""data_path: D of M=64 and of a pair with M=128, cell by cell, and its scales."""

from __future__ import annotations

import numpy as np
import pytest
from mma_by_element import random_scales
from mma_tiles import UE4M3, idesc, put_scales
from on_machine import MBAR, launch, machine
from pair_tiles import (
    A_AT,
    B_AT,
    SFA,
    SFB,
    by_leader,
    descriptor,
    in_pair,
    memories,
    rows_at,
    run_pair,
    sync,
)
from test_pair_mma import Lanes, unscaled_idesc

from fp4ref.errors import DescriptorFault, ReadWhileInFlight, ScaleFactorFault
from fp4ref.hardware import mbarrier, mma_unscaled, tcgen05, tmem
from fp4ref.numerics import (
    ElementFormat,
    matmul_unscaled,
    mma_block_scaled,
    unpack_e2m1,
)

FORMATS = {
    ("f16", 0): (ElementFormat.F16, np.uint16),
    ("f16", 1): (ElementFormat.BF16, np.uint16),
    ("f8f6f4", 0): (ElementFormat.E4M3, np.uint8),
}


def lane_f(row, lane):
    """Layout F: 16 rows in one half of each quarter [PTX; CuTe tmem_frg, M_MMA 64]."""
    return row % 16 + row // 16 * 32 + lane


def run_m64(n, kind, code, lane, schedule="late", accumulate=True):
    """One MMA of one CTA with M=64; every cell of TMEM is compared."""
    memory = memories(n)[0]
    element, dtype = FORMATS[kind, code]
    rng = np.random.default_rng(n)
    before = rng.standard_normal((128, 512)).astype(np.float32)
    got = []

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        warp.tmem.poke(0, before.view(np.uint8).ravel())
        mma_unscaled.mma(
            warp,
            lane << 16 | 8,
            descriptor(A_AT),
            descriptor(B_AT),
            unscaled_idesc(n, 64, code),
            accumulate,
            kind=kind,
        )
        tcgen05.commit(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        got.append(warp.tmem.cells.copy())
        tmem.dealloc(warp, 0, 512)

    launch(machine(schedule), body, setup=lambda cta: cta.smem.poke(0x800, memory))
    a, b = rows_at(memory, A_AT, 64), rows_at(memory, B_AT, n)
    lanes = [lane_f(row, lane) for row in range(64)]
    want = before.copy()
    want[lanes, 8 : 8 + n] = matmul_unscaled(
        np.ascontiguousarray(a).view(dtype),
        np.ascontiguousarray(b).view(dtype),
        before[lanes, 8 : 8 + n] if accumulate else None,
        a_format=element,
        b_format=element,
    )
    np.testing.assert_array_equal(got[0], want.view(np.uint32))


@pytest.mark.parametrize(("kind", "code"), FORMATS)
@pytest.mark.parametrize("n", [8, 16, 64, 256])
@pytest.mark.parametrize("lane", [0, 16])
def test_m64_fills_half_of_each_lane_quarter(n, kind, code, lane):
    run_m64(n, kind, code, lane, accumulate=n != 16)


@pytest.mark.parametrize("lane", [8, 32, 48])
def test_m64_starts_at_lane_0_or_16(lane):
    with pytest.raises(DescriptorFault, match="layout F starts at lane 0 or 16"):
        run_m64(16, "f16", 0, lane)


def test_two_accumulators_of_m64_lie_side_by_side():
    """One in the lower and one in the upper half of the quarters, in flight at once."""

    def steps(warp, second):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        for d, n in ((0, 32), second):
            mma_unscaled.mma(
                warp,
                d,
                descriptor(A_AT),
                descriptor(B_AT),
                unscaled_idesc(n, 64, 1),
                False,
            )
        tcgen05.commit(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        tmem.dealloc(warp, 0, 512)

    memory = memories()[0]

    def run(second):
        launch(
            machine("late"),
            lambda w: steps(w, second),
            setup=lambda cta: cta.smem.poke(0x800, memory),
        )

    run((16 << 16, 32))
    with pytest.raises(ReadWhileInFlight, match="another shape or start"):
        run((0, 16))


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("n", [16, 64, 256])
def test_m128_of_a_pair_folds_the_halves_of_n(n, schedule):
    """Layout B, every cell: the first half of N in lane i, the second in i + 64."""
    memory = memories(n)
    before = np.random.default_rng(n).standard_normal((2, 128, 512)).astype(np.float32)
    got = {}

    def steps(warp):
        rank = warp.cta.rank
        warp.tmem.poke(0, before[rank].view(np.uint8).ravel())
        yield from sync(warp)
        yield from by_leader(
            lambda w: mma_unscaled.mma(
                w,
                4,
                descriptor(A_AT),
                descriptor(B_AT),
                unscaled_idesc(n, 128, 1),
                True,
                cta_group=2,
            )
        )(warp)
        got[rank] = warp.tmem.cells.copy()

    run_pair(in_pair(steps), memory=memory, schedule=schedule)
    b = np.concatenate([rows_at(each, B_AT, n // 2) for each in memory])
    for rank in (0, 1):
        a = rows_at(memory[rank], A_AT, 64)
        i, j = np.meshgrid(np.arange(64), np.arange(n), indexing="ij")
        lane, column = i + 64 * (j >= n // 2), 4 + j % (n // 2)
        want = before[rank].copy()
        want[lane, column] = matmul_unscaled(
            a.view(np.uint16),
            b.view(np.uint16),
            np.ascontiguousarray(before[rank][lane, column]),
            a_format=ElementFormat.BF16,
            b_format=ElementFormat.BF16,
        )
        np.testing.assert_array_equal(got[rank], want.view(np.uint32))


def scaled_pair(n, put_b, m=128):
    """An NVFP4 MMA of a pair with M = 128; returns the cells and the model's."""
    memory, got = memories(n), {}
    sfa = [random_scales(m // 2, 4, False, 3 + r) for r in (0, 1)]
    sfb = random_scales(n, 4, False, 9)

    def steps(warp):
        put_scales(warp, SFA, sfa[warp.cta.rank], 0, 5)
        put_b(warp, sfb)
        yield from sync(warp)
        yield from by_leader(
            lambda w: tcgen05.mma(
                w,
                0,
                descriptor(A_AT),
                descriptor(B_AT),
                idesc(n, m),
                SFA,
                SFB,
                False,
                cta_group=2,
            )
        )(warp)
        got[warp.cta.rank] = warp.tmem.cells[:, : n * m // 256].copy()

    run_pair(in_pair(steps), memory=memory)
    b = np.concatenate([rows_at(each, B_AT, n // 2) for each in memory])
    want = {
        r: mma_block_scaled(
            unpack_e2m1(rows_at(memory[r], A_AT, m // 2)),
            unpack_e2m1(b),
            sfa[r].astype(np.uint8),
            sfb.astype(np.uint8),
            None,
            scale_format=UE4M3,
            vec_size=16,
        ).view(np.uint32)
        for r in (0, 1)
    }
    return got, want


@pytest.mark.parametrize("n", [16, 32, 96, 256])
def test_m128_takes_the_scales_of_b_by_halves(n):
    """CuTe, ScaleFactorDuplicated2by2: half h in lane quarters 2h and 2h + 1."""

    def put_b(warp, codes):
        for part in (0, 1):
            half = codes[part * n // 2 :][: n // 2]
            put_scales(Lanes(warp, part), SFB, half, 0, 6)

    got, want = scaled_pair(n, put_b)
    for rank in (0, 1):
        folded = np.concatenate([want[rank][:, : n // 2], want[rank][:, n // 2 :]])
        np.testing.assert_array_equal(got[rank], folded)


@pytest.mark.parametrize(("m", "lane"), [(256, 64), (128, 32), (128, 96)])
def test_lane_quarters_that_differ_are_a_fault(m, lane):
    def put_b(warp, codes):
        put_scales(warp, SFB, codes if m == 256 else codes[:16], 0, 6)
        if warp.cta.rank:
            at = lane * 2048 + 4 * SFB
            warp.tmem.poke(at, ~warp.tmem.data[at : at + 1])

    with pytest.raises(ScaleFactorFault, match=f"lane {lane}"):
        scaled_pair(32, put_b, m)


def test_each_cta_takes_the_scales_of_b_from_its_own_memory():
    """M = 256: SFB is whole in both; here they are not the same."""
    n, other = 32, random_scales(32, 4, False, 77)

    def put_b(warp, codes):
        put_scales(warp, SFB, other if warp.cta.rank else codes, 0, 6)

    got, want = scaled_pair(n, put_b, 256)
    np.testing.assert_array_equal(got[0], want[0])
    assert (got[1] != want[1]).any()
