"""tma, padded types: 16 elements of 4 or 6 bits in 16 bytes of shared memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from on_machine import BASE, MBAR, TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.errors import DeadlockError, NotModelled, UninitialisedRead
from fp4ref.hardware import mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.tma import TmaFault
from fp4ref.layout import SwizzleMode

NONE, B128 = SwizzleMode.NONE, SwizzleMode.B128
U4, U6 = DataType.U4_ALIGN16B, DataType.U6_ALIGN16B
BITS = {U4: 4, U6: 6}
ROWS = 24


def padded_map(on, dtype, swizzle=B128, columns=256, rows=ROWS):
    """A packed tensor (rows, columns) as bits, and its map with boxes of 128 x 16."""
    pitch = columns * BITS[dtype] // 8 + 32
    data = random_bytes(pitch * rows, seed=2)
    address = on.gmem.upload("T", data)
    m = TensorMap(dtype, address, (columns, rows), (pitch,), (128, 16), swizzle=swizzle)
    bits = np.unpackbits(data, bitorder="little").reshape(rows, -1)
    return bits, m


def load(on, m, coords, expect, then=None):
    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, expect)
        tma.load(warp, m, coords, TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        if then:
            then(warp)

    launch(on, body)


def packed_nbytes(dtype):
    return 128 * 16 * BITS[dtype] // 8


@pytest.mark.parametrize("swizzle", [NONE, B128])
@pytest.mark.parametrize("coords", [(0, 0), (128, 3), (128, 16), (256, 0), (0, -5)])
@pytest.mark.parametrize("dtype", [U4, U6])
def test_sixteen_elements_lie_packed_at_the_start_of_every_16_bytes(
    dtype, coords, swizzle
):
    on = machine()
    tensor, m = padded_map(on, dtype, swizzle)
    load(on, m, coords, packed_nbytes(dtype))
    smem_bits = np.unpackbits(on.sms[0].smem.data[TILE - BASE :], bitorder="little")
    width = BITS[dtype]
    for row in range(16):
        for column in range(128):
            chunk = TILE + 128 * row + column // 16 * 16
            at = (xor_swizzle(chunk, swizzle) - TILE) * 8 + column % 16 * width
            got = smem_bits[at : at + width]
            x, y = coords[0] + column, coords[1] + row
            inside = x < 256 and 0 <= y < ROWS
            want = tensor[y, x * width : (x + 1) * width] if inside else 0
            assert (got == want).all(), (row, column)


@pytest.mark.parametrize("dtype", [U4, U6])
def test_padding_is_not_initialised(dtype):
    data = BITS[dtype] * 2

    def read(at, nbytes):
        on = machine()
        _, m = padded_map(on, dtype, NONE)
        then = lambda warp: smem.ld(warp, TILE + at, nbytes)  # noqa: E731
        load(on, m, (0, 0), packed_nbytes(dtype), then)

    read(16 * 127, data)
    with pytest.raises(UninitialisedRead, match="1 of 1 bytes"):
        read(16 * 127 + data, 1)


@pytest.mark.parametrize("dtype", [U4, U6])
def test_a_box_credits_its_packed_bytes(dtype):
    for expect in (128 * 16, packed_nbytes(dtype) + 16):
        on = machine()
        _, m = padded_map(on, dtype)
        with pytest.raises(DeadlockError, match="phase 0"):
            load(on, m, (0, 0), expect)


@pytest.mark.parametrize("start", [64, 32, -64])
@pytest.mark.parametrize("dtype", [U4, U6])
def test_the_first_coordinate_is_a_multiple_of_128(dtype, start):
    on = machine()
    _, m = padded_map(on, dtype)
    with pytest.raises(TmaFault, match="multiple of 128"):
        load(on, m, (start, 0), packed_nbytes(dtype))


def test_padded_types_are_not_stored():
    def store(dtype):
        on = machine()
        _, m = padded_map(on, dtype)
        launch(on, lambda warp: tma.store(warp, m, (0, 0), TILE))

    with pytest.raises(TmaFault, match="loaded only"):
        store(U4)
    with pytest.raises(NotModelled, match="store of U6_ALIGN16B"):
        store(U6)


def test_a_map_of_a_padded_type_survives_its_128_bytes():
    on = machine()
    for dtype in (U4, U6):
        _, m = padded_map(on, dtype)
        assert TensorMap.from_bytes(m.to_bytes()) == replace(m)
