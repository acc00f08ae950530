"""tcgen05.ld.pack::16b and st.unpack::16b: a register is the low halves of two cells.

The oracle is CuTe's: of each operation it has a layout of threads and one of the bits
of a thread's registers, which lead to a bit of the lanes, 16 of every cell.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import launch, machine
from test_tmem import allocated

from fp4ref.errors import (
    MisalignedAddress,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware import tmem

# Shape and repeat: columns, then (extent, stride) of the threads and of the bits.
CUTE = {
    ("32x32b", 1): (2, [(32, 32)], [(32, 1)]),
    ("32x32b", 2): (4, [(32, 64)], [(64, 1)]),
    ("16x32bx2", 1): (4, [(16, 64), (2, 32)], [(32, 1)]),
    ("16x32bx2", 2): (8, [(16, 128), (2, 64)], [(64, 1)]),
    ("16x64b", 1): (4, [(2, 512), (2, 32), (8, 64)], [(32, 1)]),
    ("16x64b", 2): (8, [(2, 1024), (2, 32), (8, 128)], [(32, 1), (2, 64)]),
    ("16x128b", 1): (8, [(4, 32), (8, 128)], [(32, 1), (2, 1024)]),
    ("16x128b", 2): (16, [(4, 32), (8, 256)], [(32, 1), (2, 2048), (2, 128)]),
    ("16x256b", 1): (16, [(4, 64), (8, 256)], [(64, 1), (2, 2048)]),
    ("16x256b", 2): (32, [(4, 64), (8, 512)], [(64, 1), (2, 4096), (2, 256)]),
}


def offset(index, layout):
    found = 0
    for extent, stride in layout:
        found += index % extent * stride
        index //= extent
    return found


def halves(shape, repeat):
    """Thread, register, half of it; lane and column: of every 16 bits, by CuTe."""
    columns, threads, bits = CUTE[shape, repeat]
    count = int(np.prod([extent for extent, _ in bits])) // 16
    for t in range(32):
        for i in range(count):
            line, column = divmod(
                offset(t, threads) + offset(16 * i, bits), 16 * columns
            )
            assert column % 16 == 0
            yield t, i // 2, i % 2, line, column // 16


@pytest.mark.parametrize(("shape", "repeat"), CUTE)
@pytest.mark.parametrize("warp_index", [0, 3])
def test_a_register_is_two_low_halves(shape, repeat, warp_index):
    table = list(halves(shape, repeat))
    registers = 1 + max(each[1] for each in table)
    rng = np.random.default_rng(repeat)
    words = rng.integers(0, 1 << 32, (32, registers), np.uint32)
    split = 2 * repeat if shape == "16x32bx2" else 0

    def step(warp, taddr):
        at = 32 * warp_index << 16 | 3
        tmem.st(warp, at, words, shape, repeat, split, packed=True)
        yield from tmem.wait_st(warp)
        low = warp.tmem.cells[32 * warp_index :, 3:] & 0xFFFF
        for t, register, half, lane, column in table:
            assert low[lane, column] == words[t, register] >> 16 * half & 0xFFFF
        # Other values in their place, and whatever stands above them.
        cells = rng.integers(0, 1 << 32, (32, 64), np.uint32)
        for lane in range(32):
            where = (32 * warp_index + lane) * 2048 + 3 * 4
            warp.tmem.poke(where, cells[lane].view(np.uint8))
        found = tmem.ld(warp, at, shape, repeat, split, packed=True)
        yield from tmem.wait_ld(warp)
        want = np.zeros_like(words)
        for t, register, half, lane, column in table:
            want[t, register] |= (cells[lane, column] & 0xFFFF) << 16 * half
        np.testing.assert_array_equal(found.words, want)

    bodies = [lambda w: None] * warp_index + [allocated(512, step)]
    launch(machine("late"), *bodies)


@pytest.mark.parametrize(
    ("shape", "repeat"), [("32x32b", 128), ("16x256b", 32), ("16x64b", 128)]
)
def test_the_widest_accesses_come_back(shape, repeat):
    per_repeat = {"16x256b": 4}.get(shape, 1)
    words = np.arange(32 * repeat * per_repeat, dtype=np.uint32) * 0x9E3779B1

    def step(warp, taddr):
        block = words.astype(np.uint32).reshape(32, -1)
        tmem.st(warp, taddr, block, shape, repeat, packed=True)
        yield from tmem.wait_st(warp)
        found = tmem.ld(warp, taddr, shape, repeat, packed=True)
        yield from tmem.wait_ld(warp)
        np.testing.assert_array_equal(found.words, block)

    launch(machine("late"), allocated(512, step))


def stored(warp, taddr):
    tmem.st(warp, taddr, np.full((32, 1), 0x12345678, np.uint32), packed=True)
    return tmem.wait_st(warp)


def test_the_high_halves_have_no_value():
    def step(warp, taddr):
        warp.tmem.poke(0, np.zeros(8, np.uint8))  # both cells of lane 0
        yield from stored(warp, taddr)
        tmem.ld(warp, taddr, "32x32b", 2)
        yield from tmem.wait_ld(warp)

    with pytest.raises(UninitialisedRead, match="128 of 256 bytes"):
        launch(machine(), allocated(32, step))


def test_a_packed_load_needs_the_low_halves_only():
    def step(warp, taddr):
        yield from stored(warp, taddr)
        tmem.ld(warp, taddr, packed=True)
        yield from tmem.wait_ld(warp)
        tmem.ld(warp, taddr, "32x32b", 2, packed=True)
        yield from tmem.wait_ld(warp)

    with pytest.raises(UninitialisedRead, match="lane 0 column 0x2"):
        launch(machine(), allocated(32, step))


@pytest.mark.parametrize("split", [1, 3])
def test_the_second_half_begins_after_whole_pairs(split):
    def step(warp, taddr):
        tmem.ld(warp, taddr, "16x32bx2", 1, split, packed=True)

    with pytest.raises(MisalignedAddress, match="even half split"):
        launch(machine(), allocated(512, step))


def test_a_packed_access_takes_twice_the_columns():
    def step(warp, taddr):
        tmem.ld(warp, taddr, "32x32b", 32, packed=True)

    with pytest.raises(TmemAllocationFault, match="0x0 to 0x3f"):
        launch(machine(), allocated(32, step))
