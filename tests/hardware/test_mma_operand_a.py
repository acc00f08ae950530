"""A in TMEM gives what A in shared memory gives; TF32 takes the upper 19 bits."""

from __future__ import annotations

import mma_tiles
import numpy as np
import pair_tiles
import pytest
from on_machine import launch, machine
from test_mma_unscaled import (
    A_AT,
    B_AT,
    commit_and_wait,
    descriptor,
    idesc,
    put_memory,
    tile,
    with_tmem,
)

from fp4ref.errors import DescriptorFault, NotModelled, TmemAllocationFault
from fp4ref.hardware import mma_mxf8f6f4, mma_unscaled, tcgen05
from fp4ref.numerics import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat

A_COLUMN, N = 256, 32
KINDS = {"tf32": (ElementFormat.F32, 2), "f16": (ElementFormat.F16, 0),
         "f8f6f4": (ElementFormat.E4M3, 0)}  # fmt: skip


def multiply(
    kind, *, in_tmem, negate=0, taddr=A_COLUMN, m=128, code=None, rows=None, d=0
):
    """Bits of D of one MMA, and its operands in codes; `rows` of A by lane."""
    element, known = KINDS[kind]
    code = known if code is None else code
    cells = tile(128, A_AT)
    rows = dict(enumerate(cells)) if rows is None else rows
    got = []

    def steps(warp):
        for lane, row in rows.items():
            warp.tmem.poke(lane * 2048 + 4 * A_COLUMN, row)
        word = idesc(N, a=code, b=code, negate_a=negate, m=m)
        mma_unscaled.mma(
            warp,
            d,
            taddr if in_tmem else descriptor(A_AT),
            descriptor(B_AT),
            word,
            False,
            kind=kind,
            a_in_tmem=in_tmem,
        )
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :N].copy())

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    dtype = element.element.code_dtype
    a, b = (np.ascontiguousarray(x).view(dtype) for x in (cells, tile(N, B_AT)))
    return got[0], a ^ dtype.type(negate << element.bits - 1), b, element


@pytest.mark.parametrize("negate", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_in_tmem_is_row_by_row_in_eight_columns(kind, negate):
    found, a, b, element = multiply(kind, in_tmem=True, negate=negate)
    want = matmul_unscaled(a, b, a_format=element, b_format=element)
    np.testing.assert_array_equal(found, want.view(np.uint32))
    same, *_ = multiply(kind, in_tmem=False, negate=negate)
    np.testing.assert_array_equal(found, same)


def test_tf32_ignores_the_low_13_bits():
    found, a, b, element = multiply("tf32", in_tmem=False)
    upper = np.uint32(0xFFFFE000)
    assert (a != a & upper).any()
    rounded = matmul_unscaled(a & upper, b & upper, a_format=element, b_format=element)
    np.testing.assert_array_equal(found, rounded.view(np.uint32))
    finite = np.isfinite(rounded)
    with np.errstate(all="ignore"):
        x, y = ((codes & upper).view(np.float32).astype(float) for codes in (a, b))
        exact, size = x @ y.T, np.abs(x) @ np.abs(y).T
    near = np.abs(rounded - exact) <= size * 2.0**-20 + 2.0**-126
    assert finite.sum() > N
    assert near[finite].all()


def test_where_a_may_not_be():
    with pytest.raises(DescriptorFault, match="A at lane 32 and D at lane 0"):
        multiply("f16", in_tmem=True, taddr=32 << 16 | A_COLUMN)
    with pytest.raises(DescriptorFault, match="A at lane 16 and D at lane 0"):
        multiply("f16", in_tmem=True, m=64, taddr=16 << 16 | A_COLUMN)
    with pytest.raises(TmemAllocationFault):
        multiply("f16", in_tmem=True, taddr=508)
    with pytest.raises(NotModelled, match="A from TMEM in E2M1"):
        multiply("f8f6f4", in_tmem=True, code=5)


@pytest.mark.parametrize("half", [0, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_are_where_those_of_d_are(kind, half):
    """M = 64: 16 rows in one half of each lane quarter, for A as for D."""
    lanes = [32 * (row // 16) + row % 16 + half for row in range(64)]
    taddr = half << 16 | A_COLUMN
    rows = dict(zip(lanes, tile(64, A_AT), strict=True))
    found = multiply(kind, in_tmem=True, m=64, taddr=taddr, rows=rows, d=half << 16)[0]
    want = multiply(kind, in_tmem=False, m=64, d=half << 16)[0]
    np.testing.assert_array_equal(found[lanes], want[lanes])


# -- kinds with scales


def block_scaled(kind, in_tmem):
    """Bits of D of one MMA with random scales."""
    got = []

    def steps(warp):
        rng = np.random.default_rng(3)
        for column in (mma_tiles.SFA, mma_tiles.SFB):
            mma_tiles.put_scales(warp, column, rng.integers(110, 126, (128, 4)))
        a = mma_tiles.descriptor(mma_tiles.A_AT)
        if in_tmem:
            rows = mma_rows(mma_tiles.MEMORY, 128)
            for lane in range(128):
                warp.tmem.poke(lane * 2048 + 4 * 300, rows[lane])
            a = 300
        b = mma_tiles.descriptor(mma_tiles.B_AT)
        scales = mma_tiles.SFA, mma_tiles.SFB
        if kind == "mxf8f6f4":
            word = 1 << 23 | N >> 3 << 17 | 1 << 27
            mma_mxf8f6f4.mma(warp, 0, a, b, word, *scales, False, a_in_tmem=in_tmem)
        else:
            word = mma_tiles.idesc(N, ue8m0=int(kind == "mxf4"))
            options = {"kind": kind, "scale_vec": "2X" if kind == "mxf4" else "4X"}
            tcgen05.mma(
                warp, 0, a, b, word, *scales, False, a_in_tmem=in_tmem, **options
            )
        yield from mma_tiles.commit_and_wait(warp)
        got.append(warp.tmem.cells[:, :N].copy())

    body = mma_tiles.with_tmem(steps)
    launch(machine("late"), body, setup=mma_tiles.put_memory)
    return got[0]


def mma_rows(memory, rows, at=0):
    """32 bytes of each row of a tile with the 128-byte swizzle."""
    linear = at + 128 * np.arange(rows)[:, None] + np.arange(32)
    return memory[linear ^ (linear >> 7 & 7) << 4]


@pytest.mark.parametrize("kind", ["mxf4nvf4", "mxf4", "mxf8f6f4"])
def test_a_block_scaled_in_tmem(kind):
    found = block_scaled(kind, True)
    np.testing.assert_array_equal(found, block_scaled(kind, False))
    assert np.unique(found).size > found.size // 2


# -- CTA pairs


def pair(kind, m, in_tmem, *, copies=2):
    """D of both CTAs of one MMA; A in TMEM is poked there row by row."""
    memory = pair_tiles.memories()

    def steps(warp):
        mine = mma_rows(memory[warp.cta.rank], m // 2)
        for lane in range(128):
            warp.tmem.poke(lane * 2048 + 4 * pair_tiles.SFA, np.full(64, 0x38, "u1"))
        for copy in range(copies if m == 128 else 1):
            for row in range(m // 2):
                lane = row + 64 * copy
                warp.tmem.poke(lane * 2048 + 4 * 300, mine[row])
        if copies == 1:
            rest = np.zeros((64, 32), np.uint8)
            for row in range(64):
                warp.tmem.poke((64 + row) * 2048 + 4 * 300, rest[row])
        yield from pair_tiles.sync(warp)
        yield from issue(warp)

    def mma(warp):
        a = 300 if in_tmem else pair_tiles.descriptor(pair_tiles.A_AT)
        b = pair_tiles.descriptor(pair_tiles.B_AT)
        options = {"a_in_tmem": in_tmem, "cta_group": 2}
        if kind == "mxf4nvf4":
            word = mma_tiles.idesc(N, m)
            scales = pair_tiles.SFA, pair_tiles.SFB
            tcgen05.mma(warp, 0, a, b, word, *scales, False, **options)
        else:
            word = idesc(N, m=m)
            mma_unscaled.mma(warp, 0, a, b, word, False, kind=kind, **options)

    issue = pair_tiles.by_leader(mma)
    on = pair_tiles.run_pair(pair_tiles.in_pair(steps), memory=memory)
    return [sm.tmem.cells[:, : N * m // 256].copy() for sm in on.sms]


@pytest.mark.parametrize("m", [256, 128])
@pytest.mark.parametrize("kind", ["f16", "f8f6f4", "mxf4nvf4"])
def test_each_cta_of_a_pair_has_its_rows_in_its_tmem(kind, m):
    found = pair(kind, m, True)
    np.testing.assert_array_equal(found, pair(kind, m, False))
    assert not np.array_equal(*found)


@pytest.mark.parametrize("kind", ["f16", "mxf4nvf4"])
def test_a_pair_of_64_rows_has_a_twice(kind):
    with pytest.raises(DescriptorFault, match="in lane 0 and 0x00 in lane 64"):
        pair(kind, 128, True, copies=1)
