"""order: what the packed accesses, the copies and an MMA with A in TMEM touch."""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import A_AT, B_AT, SFA, SFB, descriptor, idesc, put_memory
from order_cases import every, failures
from test_order_tcgen05 import committed, with_columns

from fp4ref.hardware import tcgen05, tmem

A_COLUMN = 320


def filled(warp, columns=8):
    """A's cells hold zeros, in the lanes of all four warps."""
    for lane in range(128):
        warp.tmem.poke(lane * 2048 + 4 * A_COLUMN, np.zeros(4 * columns, np.uint8))


def multiply(warp):
    operands = A_COLUMN, descriptor(B_AT), idesc(32), SFA, SFB
    tcgen05.mma(warp, 0, *operands, False, a_in_tmem=True)


def store(warp, column=A_COLUMN, packed=False):
    tmem.st(warp, column, np.zeros((32, 1), np.uint32), packed=packed)
    return tmem.wait_st(warp)


def found(steps, schedule):
    return failures(with_columns(steps), schedule=schedule, setup=put_memory)


@every
@pytest.mark.parametrize("column", [A_COLUMN, A_COLUMN + 7, A_COLUMN + 8])
@pytest.mark.parametrize("waits", [True, False])
def test_an_mma_reads_eight_columns_of_a(schedule, column, waits):
    def steps(warp):
        filled(warp)
        multiply(warp)
        if waits:
            yield from committed(warp)
            tcgen05.fence_after_thread_sync(warp)
        yield from store(warp, column)
        if not waits:
            yield from committed(warp)

    outside = column >= A_COLUMN + 8
    assert bool(found(steps, schedule)) is not (waits or outside)


@every
@pytest.mark.parametrize(
    ("shape", "column", "touched"),
    [
        ("128x256b", 7, True),
        ("128x256b", 8, False),
        ("128x128b", 3, True),
        ("128x128b", 4, False),
        ("64x128b.warpx2::02_13", 3, True),
        ("4x256b", 7, True),
        ("4x256b", 8, False),
    ],
)
def test_a_copy_writes_the_columns_of_its_shape(schedule, shape, column, touched):
    def steps(warp):
        filled(warp, 16)
        tcgen05.cp(warp, A_COLUMN, descriptor(A_AT), shape)
        yield from store(warp, A_COLUMN + column)
        yield from committed(warp)

    assert bool(found(steps, schedule)) is touched


@every
def test_four_rows_leave_the_other_lanes_alone(schedule):
    """Warp 0 stores to its lanes; only lane 8 of the quarter is copied to."""

    def steps(warp):
        filled(warp)
        tcgen05.cp(warp, 8 << 16 | A_COLUMN, descriptor(A_AT), "4x256b")
        words = np.zeros((32, 1), np.uint32)
        tmem.st(warp, 16 << 16 | A_COLUMN, words, "16x64b")
        yield from tmem.wait_st(warp)
        yield from committed(warp)

    assert not found(steps, schedule)


@every
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("column", "touched"), [(0, True), (1, True), (2, False)])
def test_a_packed_store_writes_two_columns(schedule, column, touched, waits):
    def steps(warp):
        filled(warp)
        tmem.st(warp, A_COLUMN, np.zeros((32, 1), np.uint32), packed=True)
        if waits:
            yield from tmem.wait_st(warp)
        tmem.ld(warp, A_COLUMN + column, packed=column < 2)
        yield from tmem.wait_ld(warp)
        yield from tmem.wait_st(warp)

    assert bool(found(steps, schedule)) is (touched and not waits)
