"""tma: boxes in and out, element by element, bytes, and refusals."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine, random_bytes
from tensor_copies import (
    B32,
    B64,
    B128,
    BITS,
    NONE,
    PAIRS,
    expected_tensor,
    expected_tile,
    load,
    one_load,
    store,
    tensor_map,
)

from fp4ref.errors import (
    ClusterFault,
    DeadlockError,
    ExitFault,
    MbarrierFault,
    MisalignedAddress,
    NotModelled,
    OutOfBounds,
    UninitialisedRead,
)
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.tma import TmaFault

CASES = [
    # data type, dims, box, swizzle, pad
    ("UINT8", (96,), (32,), NONE, 0),
    ("UINT8", (64, 20), (32, 9), B32, 16),
    ("UINT8", (128, 20), (64, 12), B64, 0),
    ("UINT8", (256, 20), (128, 17), B128, 32),
    ("UINT16", (256, 4, 3, 2), (256, 2, 1, 1), NONE, 0),
    ("UINT16", (64, 12), (32, 10), B64, 16),
    ("FLOAT32", (40, 10, 3), (32, 8, 2), B128, 0),
    ("FLOAT32", (40, 10, 3), (32, 8, 2), PAIRS, 0),
    ("FLOAT32", (20, 6, 3, 2, 3), (4, 3, 2, 2, 2), NONE, 16),
    ("FLOAT64", (16, 6), (4, 5), B32, 0),
    ("U4_ALIGN8B", (512, 12, 1), (256, 10, 1), B128, 0),
    ("U4_ALIGN8B", (192, 9, 2), (128, 8, 2), B64, 16),
    ("U4_ALIGN8B", (96, 9), (64, 9), B32, 16),
    ("U4_ALIGN8B", (96, 5), (32, 5), NONE, 16),
]


def corners(name, dims, box):
    """Inside, overhanging at both ends, and wholly outside; on 16-byte chunks."""
    chunk = 128 // BITS[name]
    inside = tuple(
        2 * ((d - b) // 4) if d > b else 0 for d, b in zip(dims, box, strict=True)
    )
    low = tuple(-2 * (b // 3) if b > 2 else 0 for b in box)
    high = tuple(d - max(1, b // 2) for d, b in zip(dims, box, strict=True))
    outside = (dims[0] + chunk - 1, *[0] * (len(dims) - 1))
    before = (*[0] * (len(dims) - 1), -box[-1] // 2 * 2)
    everywhere = {inside, low, high, outside, before}
    return {(c[0] // chunk * chunk, *c[1:]) for c in everywhere}


@pytest.mark.parametrize("offset", [0, 128, 0x380])
@pytest.mark.parametrize(("name", "dims", "box", "swizzle", "pad"), CASES)
def test_load_element_by_element(name, dims, box, swizzle, pad, offset):
    for coords in sorted(corners(name, dims, box)):
        on = machine()
        tensor, m = tensor_map(on, name, dims, box, swizzle, pad=pad)
        got = load(on, m, coords, TILE + offset)
        want = expected_tile(m, tensor, coords, TILE + offset)
        np.testing.assert_array_equal(got, want, err_msg=f"{coords}")


@pytest.mark.parametrize("offset", [0, 0x280])
@pytest.mark.parametrize(("name", "dims", "box", "swizzle", "pad"), CASES)
def test_store_element_by_element(name, dims, box, swizzle, pad, offset):
    for coords in sorted(corners(name, dims, box)):
        if min(coords) < 0:
            continue
        on = machine("late")
        before, m = tensor_map(on, name, dims, box, swizzle, pad=pad)
        tile = random_bytes(prod(box) * BITS[name] // 8, seed=1)
        store(on, m, coords, tile, TILE + offset)
        want = expected_tensor(m, before, tile, coords, TILE + offset)
        np.testing.assert_array_equal(on.gmem.contents(m.address, before.size), want)


@pytest.mark.parametrize(
    ("name", "nan"),
    [("FLOAT32", 0x7FF77FF7), ("FLOAT64", 0x7FF77FF77FF77FF7)],
)
def test_nan_fill(name, nan):
    on = machine()
    tensor, m = tensor_map(on, name, (16, 6), (8, 4), oob_nan=True)
    got = load(on, m, (12, 4))
    np.testing.assert_array_equal(got, expected_tile(m, tensor, (12, 4), TILE, nan))
    values = got.view("<f4" if name == "FLOAT32" else "<f8").reshape(4, 8)
    assert np.isnan(values[:, 4:]).all()
    assert np.isnan(values[2:]).all()


def test_never_written_source():
    on = machine()
    address = on.gmem.allocate("A", 128)
    with pytest.raises(UninitialisedRead, match="A \\+ 0"):
        load(on, TensorMap(DataType.UINT8, address, (128,), (), (128,)), (0,))


def test_a_map_beyond_its_allocation():
    on = machine()
    address = on.gmem.upload("A", random_bytes(64))
    with pytest.raises(OutOfBounds, match="not inside one allocation"):
        load(on, TensorMap(DataType.UINT8, address, (128,), (), (128,)), (0,))


@pytest.mark.parametrize("coords", [(0, 0), (96, 0), (-16, -3), (1008, 1000)])
def test_the_full_box_is_credited_wherever_it_lies(coords):
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8), (32, 8))
    load(on, m, coords, expect=256)
    with pytest.raises((DeadlockError, ExitFault)):
        load(machine_with(m), m, coords, expect=255)


def machine_with(m):
    on = machine("late")
    on.gmem.upload("T", random_bytes(4096))
    return on


def test_a_load_never_arrives():
    on = machine()
    _, m = tensor_map(on, "UINT8", (128,), (128,))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.expect_tx(warp, MBAR, 128)
        tma.load(warp, m, (0,), TILE, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    with pytest.raises(DeadlockError, match="1 of 1 arrivals pending, tx-count 0"):
        launch(on, body)


@pytest.mark.parametrize("schedule", ["eager", "late", 1, 2, 3])
def test_load_before_expect(schedule):
    """Legal: the tx-count is negative on the way."""
    on = machine(schedule)
    tensor, m = tensor_map(on, "UINT8", (128,), (128,))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        tma.load(warp, m, (0,), TILE, MBAR)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        yield from mbarrier.try_wait(warp, MBAR, 0)
        np.testing.assert_array_equal(smem.ld(warp, TILE, 128), tensor)

    launch(on, body)


def test_multicast_writes_the_same_offsets_everywhere():
    on = machine("late", sms=2)
    tensor, m = tensor_map(on, "U4_ALIGN8B", (256, 16), (256, 16), B128)

    def body(warp):
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        mbarrier.arrive_expect_tx(warp, base, 2048)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 1:
            tma.load(warp, m, (0, 0), base + 0x400, base, 0b11)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    launch(on, body, grid=(2, 1, 1), cluster=(2, 1, 1))
    want = expected_tile(m, tensor, (0, 0), TILE)
    for sm in (0, 1):
        np.testing.assert_array_equal(on.sms[sm].smem.data[0x400:][:2048], want)


@pytest.mark.parametrize("offset", [16, 64, 127])
def test_misaligned_tile(offset):
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8), (32, 8))
    with pytest.raises(MisalignedAddress, match="multiple of 128"):
        launch(on, one_load(m, dst=TILE + offset))
    on = machine()
    with pytest.raises(MisalignedAddress):
        launch(on, lambda w: tma.store(w, m, (0, 0), TILE + offset))


@pytest.mark.parametrize(
    ("coords", "says"),
    [
        ((0,), "1 coordinates for a tensor of rank 2"),
        ((0, 0, 0), "3 coordinates"),
        ((1, 0), "starts on a multiple of 16 bytes"),
        ((16, 0), "multiples of 32 elements"),
        ((-24, 0), "illegal instruction"),
        ((1 << 31, 0), "signed 32-bit"),
        ((0, -(1 << 31) - 1), "signed 32-bit"),
    ],
)
def test_bad_coordinates(coords, says):
    on = machine()
    _, m = tensor_map(on, "U4_ALIGN8B", (256, 8), (64, 8))
    with pytest.raises(TmaFault, match=says):
        launch(on, one_load(m, coords))


@pytest.mark.parametrize("coords", [(-32, 0), (0, -1)])
def test_a_store_does_not_start_below_the_tensor(coords):
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8), (32, 8))
    with pytest.raises(TmaFault, match="not negative"):
        launch(on, lambda w: tma.store(w, m, coords, TILE))


def test_a_store_writes_the_last_chunk_of_a_row_whole():
    on = machine()
    before, m = tensor_map(on, "UINT8", (35, 2), (64, 2), pad=32)
    tile = random_bytes(128, seed=1)
    store(on, m, (0, 0), tile)
    after = on.gmem.contents(m.address, before.size)
    for row in range(2):
        start = row * m.strides[0]
        got, old = (each[start:][: m.strides[0]] for each in (after, before))
        np.testing.assert_array_equal(got[:48], tile[64 * row :][:48])
        np.testing.assert_array_equal(got[48:], old[48:])


def test_what_is_not_modelled_is_refused():
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8, 4), (32, 8, 1))
    for other in (
        replace(m, element_strides=(1, 2, 1)),
        replace(m, interleave=1),
        replace(m, swizzle=B128),
    ):
        with pytest.raises(NotModelled):
            launch(machine(), one_load(other, (0, 0, 0)))


def test_a_tile_outside_shared_memory():
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 8))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        tma.load(warp, m, (0, 0), 0x400 + 232_448 - 512, MBAR)

    with pytest.raises(OutOfBounds, match="reach outside smem0"):
        launch(on, body)


def test_a_barrier_that_was_never_initialised():
    on = machine()
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 8))
    with pytest.raises(MbarrierFault, match="not an initialised"):
        launch(on, one_load(m))


def test_a_store_reads_its_own_cta():
    on = machine(sms=2)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 8))

    def body(warp):
        tma.store(warp, m, (0, 0), cluster.mapa(warp, TILE, 1))

    with pytest.raises(ClusterFault, match=r"source is \.shared::cta"):
        launch(on, body, grid=(2, 1, 1), cluster=(2, 1, 1))


def test_prefetch_changes_nothing():
    on = machine(trace=True)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 8))
    launch(on, lambda w: tma.prefetch_tensormap(w, m))
    [event] = on.recorder.trace.events
    assert (event.operation, event.reads, event.writes) == (
        "prefetch.tensormap",
        (),
        (),
    )
