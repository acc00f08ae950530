"""tcgen05.cp: each shape's rows land in CuTe's lanes, from every K-major layout."""

from __future__ import annotations

import itertools

import mma_tiles
import numpy as np
import pair_tiles
import pytest
from on_machine import TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.errors import DescriptorFault, TmemAllocationFault, UninitialisedRead
from fp4ref.hardware import tcgen05
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode

NONE, B32, B64, B128, _ = SwizzleMode
MEMORY = random_bytes(0x8000, seed=21)
COLUMN = 40

# CuTe's ValID, as extents and strides: rows of 16 bytes or 32; then lane strides of
# (row, repeat, broadcast) in that order, and which of them move the source.
CUTE = {
    "128x256b": (32, [(128, 1, True)]),
    "128x128b": (16, [(128, 1, True)]),
    "64x128b.warpx2::02_13": (16, [(64, 1, True), (2, 64, False)]),
    "64x128b.warpx2::01_23": (16, [(32, 1, True), (2, 64, True), (2, 32, False)]),
    "32x128b.warpx4": (16, [(32, 1, True), (4, 32, False)]),
    "4x256b": (32, [(4, 32, True)]),
}


def cute_rows(shape):
    """Source row of every lane."""
    found, modes = {}, CUTE[shape][1]
    for at in itertools.product(*(range(extent) for extent, _, _ in modes)):
        lane = row = 0
        weight = 1
        for index, (extent, stride, moves) in zip(at, modes, strict=True):
            lane += index * stride
            if moves:
                row += index * weight
                weight *= extent
        found[lane] = row
    return found


def source(rows, nbytes, swizzle, stride, leading=0, start=TILE):
    """Bytes (rows, nbytes) of a K-major tile in `MEMORY`, from PTX's layouts."""
    found = np.empty((rows, nbytes), np.uint8)
    span = 16 << swizzle
    for row, byte in np.ndindex(rows, nbytes):
        at = start + row // 8 * stride + byte % 16
        if swizzle is NONE:
            at += row % 8 * 16 + byte // 16 * leading
        else:
            at = xor_swizzle(at + row % 8 * span + byte // 16 * 16, swizzle)
        found[row, byte] = MEMORY[at - TILE]
    return found


def copied(shape, descriptor, *, lane=0, schedule="late"):
    """TMEM after a copy, (128, 2048) bytes, and which of them are written."""
    got = []

    def steps(warp):
        taddr = lane << 16 | COLUMN
        tcgen05.cp(warp, taddr, descriptor.encode(), shape)
        yield from mma_tiles.commit_and_wait(warp)
        tmem = warp.tmem
        got.extend((tmem.data.reshape(128, -1).copy(), tmem.written.copy()))

    launch(
        machine(schedule),
        mma_tiles.with_tmem(steps),
        setup=lambda cta: cta.smem.poke(TILE, MEMORY),
    )
    return got[0], got[1].reshape(128, -1)


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
@pytest.mark.parametrize("shape", CUTE)
def test_rows_land_where_cute_has_them(shape, schedule):
    nbytes, lanes = CUTE[shape][0], cute_rows(shape)
    assert sorted(lanes) == list(range(0, 128, 128 // len(lanes)))
    descriptor = SmemDescriptor(TILE, 128, 256, NONE)
    found, written = copied(shape, descriptor, schedule=schedule)
    rows = source(max(lanes.values()) + 1, nbytes, NONE, 256, 128)
    first = 4 * COLUMN
    for lane, row in lanes.items():
        np.testing.assert_array_equal(found[lane, first : first + nbytes], rows[row])
    assert written.sum() == len(lanes) * nbytes
    assert written[sorted(lanes), first : first + nbytes].all()


@pytest.mark.parametrize("lane", [0, 5, 31])
def test_four_rows_land_in_one_lane_of_each_quarter(lane):
    descriptor = SmemDescriptor(TILE, 128, 256, NONE)
    found, written = copied("4x256b", descriptor, lane=lane)
    rows = source(4, 32, NONE, 256, 128)
    cells = slice(4 * COLUMN, 4 * COLUMN + 32)
    np.testing.assert_array_equal(found[lane::32, cells], rows)
    assert written.sum() == 4 * 32
    assert written[lane::32, cells].all()


@pytest.mark.parametrize("swizzle", [B32, B64, B128])
@pytest.mark.parametrize("shape", CUTE)
def test_rows_of_a_swizzled_tile(shape, swizzle):
    nbytes, lanes = CUTE[shape][0], cute_rows(shape)
    stride = 8 * (16 << swizzle)
    # The second half of the span, where there is one.
    start = TILE + (32 if swizzle > B32 else 0)
    found, _ = copied(shape, SmemDescriptor(start, 16, stride, swizzle))
    rows = source(max(lanes.values()) + 1, nbytes, swizzle, stride, start=start)
    cells = slice(4 * COLUMN, 4 * COLUMN + nbytes)
    for lane, row in lanes.items():
        np.testing.assert_array_equal(found[lane, cells], rows[row])


@pytest.mark.parametrize(
    ("error", "says", "shape", "lane"),
    [
        (DescriptorFault, "cp.64x128b", "64x128b", 0),
        *((DescriptorFault, "to lane 32", shape, 32) for shape in CUTE),
    ],
)
def test_where_a_copy_may_not_go(error, says, shape, lane):
    with pytest.raises(error, match=says):
        copied(shape, SmemDescriptor(TILE, 128, 256, NONE), lane=lane)


def test_a_wide_copy_needs_all_its_columns_and_bytes():
    def to_the_end(warp):
        tcgen05.cp(warp, 508, SmemDescriptor(TILE, 128, 256, NONE).encode(), "128x256b")

    with pytest.raises(TmemAllocationFault, match="0x1fc to 0x203"):
        launch(machine(), mma_tiles.with_tmem(to_the_end))
    beyond = SmemDescriptor(TILE + 0x8000 - 256, 128, 256, NONE)
    with pytest.raises(UninitialisedRead):
        copied("128x256b", beyond)


def test_a_copied_operand_is_an_operand():
    """A by 128x256b into TMEM gives the D of A in shared memory."""

    def product(in_tmem):
        got = []

        def steps(warp):
            mma_tiles.easy_scales(warp)
            a = mma_tiles.descriptor(mma_tiles.A_AT)
            if in_tmem:
                tcgen05.cp(warp, 320, a, "128x256b")
                a = 320
            b = mma_tiles.descriptor(mma_tiles.B_AT)
            scales = mma_tiles.SFA, mma_tiles.SFB
            word = mma_tiles.idesc(64)
            tcgen05.mma(warp, 0, a, b, word, *scales, False, a_in_tmem=in_tmem)
            yield from mma_tiles.commit_and_wait(warp)
            got.append(warp.tmem.cells[:, :64].copy())

        body = mma_tiles.with_tmem(steps)
        launch(machine("late", races="raise"), body, setup=mma_tiles.put_memory)
        return got[0]

    np.testing.assert_array_equal(product(True), product(False))


def test_the_copy_for_scales_of_b_of_a_pair_with_64_rows():
    """By 64x128b.warpx2::01_23 each half of N has its scales beside it."""
    memory = pair_tiles.memories()
    n = 128

    def product(by_copy):
        def steps(warp):
            for lane in range(128):
                ones = np.full(16, 0x38, np.uint8)
                warp.tmem.poke(lane * 2048 + 4 * pair_tiles.SFA, ones)
                if not by_copy:
                    at = pair_tiles.SF_AT - TILE
                    rows = memory[warp.cta.rank][at : at + 1024].reshape(64, 16)
                    row = lane // 64 * 32 + lane % 32
                    scales = rows[row] & 0x7E
                    warp.tmem.poke(lane * 2048 + 4 * pair_tiles.SFB, scales)
            yield from pair_tiles.sync(warp)
            yield from issue(warp)

        def copy(warp):
            if by_copy:
                at = SmemDescriptor(pair_tiles.SF_AT, 16, 128, NONE).encode()
                tcgen05.cp(warp, pair_tiles.SFB, at, "64x128b.warpx2::01_23", 2)

        def mma(warp):
            tcgen05.mma(
                warp,
                0,
                pair_tiles.descriptor(pair_tiles.A_AT),
                pair_tiles.descriptor(pair_tiles.B_AT),
                mma_tiles.idesc(n, 128),
                pair_tiles.SFA,
                pair_tiles.SFB,
                False,
                cta_group=2,
            )

        issue = pair_tiles.by_leader(copy, mma)
        on = pair_tiles.run_pair(pair_tiles.in_pair(steps), memory=memory)
        return [sm.tmem.cells[:, : n // 2].copy() for sm in on.sms]

    for each in memory:
        each[pair_tiles.SF_AT - TILE :] &= 0x7E  # no scale is a NaN
    np.testing.assert_array_equal(product(True), product(False))
