"""tcgen05: the MMA of a CTA pair equals two MMAs of one CTA, bit for bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from mma_by_element import random_c, random_scales
from mma_tiles import idesc, put_scales
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

from fp4ref.hardware import mbarrier, mma_mxf8f6f4, mma_unscaled, tcgen05, tmem
from fp4ref.numerics import (
    ElementFormat,
    matmul_unscaled,
)

KINDS = {
    "nvfp4": ("mxf4nvf4", "4X", 4, False),
    "mxfp4": ("mxf4", "2X", 2, True),
    "mxfp8": ("mxf8f6f4", "1X", 1, True),
    "mxfp6 and 4": ("mxf8f6f4", "1X", 1, True),
}
TYPES = {"mxfp8": (0, 0), "mxfp6 and 4": (4, 5)}
"""Types of A and B in kind::mxf8f6f4: E4M3, and E3M2 with E2M1."""
UNSCALED = {"bf16": ("f16", 1), "e4m3": ("f8f6f4", 0)}


def unscaled_idesc(n, m, code):
    return 1 << 4 | code << 7 | code << 10 | n >> 3 << 17 | m >> 4 << 24


def scaled_mma(warp, kind, n, m, accumulate, **options):
    """The MMA of tiles and scales where all of these tests have them."""
    name, vec, _, ue8m0 = KINDS[kind]
    word, tiles = idesc(n, m, ue8m0=int(ue8m0)), (descriptor(A_AT), descriptor(B_AT))
    if name != "mxf8f6f4":
        mma = partial(tcgen05.mma, kind=name)
    else:
        mma, (a, b) = mma_mxf8f6f4.mma, TYPES[kind]
        word = word & ~(0o77 << 7) | a << 7 | b << 10
    mma(warp, 0, *tiles, word, SFA, SFB, accumulate, scale_vec=vec, **options)


def lanes_of(d, m):
    """Cells of the TMEM of one CTA that D's rows (M / 2, N) fill: PTX, A and B."""
    if m == 256:
        return d
    half = d.shape[1] // 2
    return np.concatenate([d[:, :half], d[:, half:]])


def pair_mma(kind, m, n, seed, schedule="late", accumulate=True):
    """Run one MMA of a pair on random bytes.

    Returns the cells of both, and what two MMAs of one CTA make of the same operands.
    """
    memory, rows = memories(seed), m // 2
    scaled = kind in KINDS
    scales = None
    c = [random_c(n, seed + r)[:rows] for r in (0, 1)]
    if scaled:
        _, _, count, ue8m0 = KINDS[kind]
        scales = [
            (
                random_scales(rows, count, ue8m0, seed + 10 * r + 1),
                random_scales(n, count, ue8m0, seed + 2),
            )
            for r in (0, 1)
        ]
    columns = n if m == 256 else n // 2

    def prepare(warp):
        rank = warp.cta.rank
        if scaled:
            put_scales(warp, SFA, scales[rank][0], 0, seed)
            put_b_scales(warp, scales[rank][1], m, seed)
        if accumulate:
            cells = lanes_of(c[rank], m)
            for lane in range(128):
                warp.tmem.poke(lane * 2048, cells[lane].view(np.uint8))

    def multiply(warp):
        tiles = descriptor(A_AT), descriptor(B_AT)
        if scaled:
            scaled_mma(warp, kind, n, m, accumulate, cta_group=2)
        else:
            name_, code = UNSCALED[kind]
            word = unscaled_idesc(n, m, code)
            mma_unscaled.mma(warp, 0, *tiles, word, accumulate, kind=name_, cta_group=2)

    got = {}

    def steps(warp):
        prepare(warp)
        yield from sync(warp)
        yield from by_leader(multiply)(warp)
        got[warp.cta.rank] = warp.tmem.cells[:, :columns].copy()

    run_pair(in_pair(steps), schedule=schedule, memory=memory)
    b = np.concatenate([rows_at(each, B_AT, n // 2) for each in memory])
    for rank in (0, 1):
        a = rows_at(memory[rank], A_AT, rows)
        start = c[rank] if accumulate else None
        want = one_cta(kind, a, b, start, scales and scales[rank])
        np.testing.assert_array_equal(got[rank], lanes_of(want, m))
    return got


def put_b_scales(warp, codes, m, seed):
    """All N in each lane quarter; with M = 128 one half in 0 and 1, one in 2 and 3."""
    if m == 256:
        put_scales(warp, SFB, codes, 0, seed)
        return
    half = codes.shape[0] // 2
    for part in (0, 1):
        put_scales(Lanes(warp, part), SFB, codes[part * half :][:half], 0, seed)


class Lanes:
    """The TMEM of a warp, of which one half of the lanes takes what is poked."""

    def __init__(self, warp, part):
        self.tmem, self.inner, self.part = self, warp.tmem, part

    def poke(self, address, data):
        if address // 2048 // 64 == self.part:
            self.inner.poke(address, data)


def one_cta(kind, a, b, c, scales):
    """D's bits of one CTA with all rows of B, on a machine of one SM."""
    n, rows = len(b), len(a)
    if rows < 128:
        # M = 128 of one CTA on two copies of the rows: the upper half is right.
        a = np.concatenate([a, a])
        c = None if c is None else np.concatenate([c, c])
        scales = scales and (np.concatenate([scales[0]] * 2), scales[1])
    got = []

    def poke_tile(cta, at, tile):
        row = np.arange(len(tile))[:, None]
        linear = at + row * 128 + np.arange(32)[None, :]
        where = linear ^ (linear >> 7 & 7) << 4
        for r in range(len(tile)):
            for half in (0, 16):
                cta.smem.poke(int(where[r, half]), tile[r, half : half + 16])

    def setup(cta):
        poke_tile(cta, A_AT, a)
        poke_tile(cta, B_AT, b)

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        if c is not None:
            for lane in range(128):
                warp.tmem.poke(lane * 2048, c[lane].view(np.uint8))
        tiles = descriptor(A_AT), descriptor(B_AT)
        add = c is not None
        if scales:
            put_scales(warp, SFA, scales[0], 0, 1)
            put_scales(warp, SFB, scales[1], 0, 2)
            scaled_mma(warp, kind, n, 128, add)
        else:
            name, code = UNSCALED[kind]
            word = unscaled_idesc(n, 128, code)
            mma_unscaled.mma(warp, 0, *tiles, word, add, kind=name)
        tcgen05.commit(warp, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        got.append(warp.tmem.cells[:rows, :n].copy())
        tmem.dealloc(warp, 0, 512)

    launch(machine(), body, setup=setup)
    return got[0]


@pytest.mark.parametrize("kind", [*KINDS, *UNSCALED])
@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("n", [16, 64, 256])
def test_a_pair_equals_two_ctas(kind, m, n):
    pair_mma(kind, m, n, seed=m + n)


@pytest.mark.parametrize("schedule", ["eager", 3, 11])
@pytest.mark.parametrize("kind", ["nvfp4", "bf16"])
def test_a_pair_equals_two_ctas_under_every_schedule(kind, schedule):
    pair_mma(kind, 256, 48, seed=5, schedule=schedule, accumulate=False)


def random_case(seed):
    """Kind, M, N, whether D is added, and the bytes, all of one seed."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice([*KINDS, *UNSCALED]))
    m, n = int(rng.choice([128, 256])), 16 * int(rng.integers(1, 17))
    schedule = "eager" if rng.integers(2) else "late"
    pair_mma(kind, m, n, int(seed), schedule, bool(rng.integers(2)))


def test_random_cases(rotating_seed):
    for seed in range(20):
        random_case(rotating_seed + seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_random_cases(part):
    """All bit patterns of operands; D and the scales with zeros, infinities and NaN."""
    for seed in range(500 * part, 500 * part + 500):
        random_case(seed)


def test_the_values_are_those_of_the_arithmetic():
    """Not only alike: the product of the rows as numerics multiplies them."""
    memory = memories(3)
    n, got = 32, {}

    def steps(warp):
        yield from by_leader(
            lambda w: mma_unscaled.mma(
                w,
                0,
                descriptor(A_AT),
                descriptor(B_AT),
                unscaled_idesc(n, 256, 1),
                False,
                cta_group=2,
            )
        )(warp)
        got[warp.cta.rank] = warp.tmem.cells[:, :n].copy()

    run_pair(in_pair(steps), memory=memory)
    b = np.concatenate([rows_at(each, B_AT, n // 2) for each in memory])
    for rank in (0, 1):
        a = rows_at(memory[rank], A_AT, 128)
        want = matmul_unscaled(
            a.view(np.uint16),
            b.view(np.uint16),
            None,
            a_format=ElementFormat.BF16,
            b_format=ElementFormat.BF16,
        )
        np.testing.assert_array_equal(got[rank], want.view(np.uint32))
