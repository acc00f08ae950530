"""smem: stores, loads, the proxy fence, and the matrix descriptor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_machine import (
    BASE,
    MBAR,
    TILE,
    launch,
    machine,
    random_bytes,
    xor_swizzle,
)

from fp4ref.errors import (
    DescriptorFault,
    MissingProxyFence,
    NotModelled,
    OutOfBounds,
    UninitialisedRead,
)
from fp4ref.hardware import mbarrier, named_barrier, smem, tma
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

SIZE = 232_448
LOW_A = (TILE >> 4) | 0x10000


def store_map(on, nbytes=128):
    address = on.gmem.allocate("D", nbytes)
    return TensorMap(DataType.UINT8, address, (nbytes,), (), (nbytes,))


def test_store_and_load():
    data = random_bytes(64)

    def body(warp):
        smem.st(warp, TILE, data)
        np.testing.assert_array_equal(smem.ld(warp, TILE + 8, 16), data[8:24])

    launch(machine(), body)


def test_bounds_are_227_kilobytes_from_0x400():
    def body(warp):
        smem.st(warp, BASE, random_bytes(1))
        smem.st(warp, BASE + SIZE - 1, random_bytes(1))

    launch(machine(), body)
    for address in (BASE - 1, BASE + SIZE):
        with pytest.raises(OutOfBounds):
            launch(machine(), lambda w, a=address: smem.st(w, a, random_bytes(1)))


def test_bounds_are_what_the_launch_asked_for():
    def at(address):
        return lambda w: smem.st(w, address, random_bytes(16))

    launch(machine(), at(BASE + 1008), smem_nbytes=1024)
    with pytest.raises(OutOfBounds, match="smem0"):
        launch(machine(), at(BASE + 1009), smem_nbytes=1024)


def test_never_written_bytes_are_poison():
    def body(warp):
        smem.st(warp, TILE, random_bytes(8))
        smem.ld(warp, TILE, 16)

    with pytest.raises(UninitialisedRead, match="8 of 16 bytes") as caught:
        launch(machine(), body)
    assert f"{TILE + 8:#x}" in caught.value.where


def test_the_next_cta_sees_none_of_the_last_ones_bytes():
    def body(warp):
        if warp.cta.ctaid[0] == 0:
            smem.st(warp, TILE, random_bytes(8))
        else:
            smem.ld(warp, TILE, 8)

    with pytest.raises(UninitialisedRead):
        launch(machine(), body, grid=(2, 1, 1))


def test_labels_name_the_object_below():
    def body(warp):
        warp.smem.labels |= {BASE: "barriers", TILE: "A[0]"}
        assert warp.smem.describe(TILE) == f"smem0 {TILE:#x} (A[0])"
        assert warp.smem.describe(TILE + 5) == f"smem0 {TILE + 5:#x} (A[0] + 5)"
        assert "barriers + 1" in warp.smem.describe(BASE + 1)

    launch(machine(), body)


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_tma_reads_what_st_shared_wrote_only_after_a_fence(schedule):
    def body(fenced):
        def run(warp):
            smem.st(warp, TILE, random_bytes(128))
            if fenced:
                smem.fence_proxy_async(warp)
            tma.store(warp, on_map, (0,), TILE)

        return run

    on = machine(schedule)
    on_map = store_map(on)
    launch(on, body(True))
    on = machine(schedule)
    on_map = store_map(on)
    with pytest.raises(MissingProxyFence, match=r"128 bytes.*read by the async proxy"):
        launch(on, body(False))


@pytest.mark.parametrize("late", [True, False])
def test_a_fence_comes_after_the_stores(late):
    """Of any warp: whether it is on the way, the order of accesses tells."""
    on = machine()
    d = store_map(on)

    def writer(warp):
        yield from named_barrier.sync(warp, 1, 64)
        smem.st(warp, TILE, random_bytes(128))
        yield from named_barrier.sync(warp, 1, 64)

    def issuer(warp):
        smem.fence_proxy_async(warp)
        yield from named_barrier.sync(warp, 1, 64)
        yield from named_barrier.sync(warp, 1, 64)
        if late:
            smem.fence_proxy_async(warp)
        tma.store(warp, d, (0,), TILE)

    if late:
        launch(on, writer, issuer)
        return
    with pytest.raises(MissingProxyFence, match="written by warp 0"):
        launch(on, writer, issuer)


def test_tma_over_unfenced_stores():
    on = machine()
    source = on.gmem.upload("A", random_bytes(128))
    a = TensorMap(DataType.UINT8, source, (128,), (), (128,))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        smem.st(warp, TILE, random_bytes(16))
        tma.load(warp, a, (0,), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(MissingProxyFence, match=r"16 bytes.*overwritten"):
        launch(on, body)


def test_repeated_stores_to_one_place_do_not_pile_up():
    def body(warp):
        for _ in range(100):
            smem.st(warp, TILE, random_bytes(16))
        assert len(warp.unfenced) == 1

    launch(machine(), body)


# -- the descriptor


@pytest.mark.parametrize(
    ("descriptor", "word"),
    [
        # A and B: 128B swizzle, SBO 1,024, LBO field 1. CUTLASS's kernel in SASS.
        (
            SmemDescriptor(TILE, 16, 1024, SwizzleMode.B128),
            0x40004040 << 32 | LOW_A,
        ),
        # Scales: no swizzle, SBO 128.
        (SmemDescriptor(TILE, 16, 128, SwizzleMode.NONE), 0x00004008 << 32 | LOW_A),
        (
            SmemDescriptor(0x3FFF0, 0, 256, SwizzleMode.B64),
            4 << 61 | 1 << 46 | 16 << 32 | 0x3FFF,
        ),
        (
            SmemDescriptor(0x400, 0, 256, SwizzleMode.B32),
            6 << 61 | 1 << 46 | 16 << 32 | 0x40,
        ),
    ],
)
def test_golden_words(descriptor, word):
    assert descriptor.encode() == word
    assert SmemDescriptor.decode(word) == descriptor


@given(
    st.integers(0, 0x3FFF),
    st.integers(0, 0x3FFF),
    st.integers(0, 0x3FFF),
    st.sampled_from(list(SwizzleMode)[:4]),
    st.integers(0, 7),
)
def test_descriptor_round_trip(start, leading, stride, swizzle, base_offset):
    base_offset *= swizzle is not SwizzleMode.NONE
    fields = (start << 4, leading << 4, stride << 4, swizzle, base_offset)
    descriptor = SmemDescriptor(*fields)
    assert SmemDescriptor.decode(descriptor.encode()) == descriptor


GOOD = 0x40004040 << 32 | LOW_A


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        # Hopper: swizzle 1 = 128B in bits 62-63, nothing at bit 46.
        (1 << 62 | 64 << 32 | LOW_A, DescriptorFault, "not the Hopper encoding"),
        (GOOD | 1 << 47, DescriptorFault, "bits 46-48 are 0b011"),
        *((GOOD | 1 << bit, DescriptorFault, "reserved") for bit in (14, 15, 30, 31)),
        *((GOOD | 1 << bit, DescriptorFault, "reserved") for bit in range(53, 61)),
        *(
            (GOOD & ~(7 << 61) | code << 61, DescriptorFault, f"swizzle code {code}")
            for code in (3, 5, 7)
        ),
        (GOOD & ~(7 << 61) | 1 << 61, NotModelled, "32-byte-atom"),
        *(
            (GOOD & ~(7 << 61) | 1 << bit, NotModelled, "base offset . without")
            for bit in (49, 50, 51)
        ),
        (GOOD | 1 << 52, NotModelled, "absolute leading dimension"),
    ],
)
def test_refused_words(word, error, says):
    with pytest.raises(error, match=says):
        SmemDescriptor.decode(word)


@pytest.mark.parametrize("start", [TILE, TILE + 0x3C00])
@pytest.mark.parametrize("mode", list(SwizzleMode)[1:4])
def test_offsets_of_swizzled_tiles(mode, start):
    """K-major ((8,m),(T,2k)):((span,SBO),(1,T)), with the XOR on the final address."""
    span, sbo = 16 << mode, 8 * (16 << mode) + 1024
    for advance in range(0, span, 32):
        got = SmemDescriptor(start + advance, 16, sbo, mode).offsets(24, 32)
        for row in range(24):
            for byte in range(32):
                linear = start + advance + row // 8 * sbo + row % 8 * span + byte
                assert got[row, byte] == xor_swizzle(linear, mode)


def test_offsets_of_core_matrices():
    """((8,m),(T,2k)):((1T,SBO),(1,LBO)): 8 rows of 16 bytes lie together."""
    got = SmemDescriptor(TILE, 128, 256, SwizzleMode.NONE).offsets(16, 32)
    for row in range(16):
        for byte in range(32):
            want = TILE + row // 8 * 256 + row % 8 * 16 + byte // 16 * 128 + byte % 16
            assert got[row, byte] == want
