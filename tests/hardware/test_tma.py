"""tma: boxes in and out, element by element, groups, bytes, and refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.errors import (
    ClusterFault,
    DeadlockError,
    ExitFault,
    MbarrierFault,
    MisalignedAddress,
    NotModelled,
    OutOfBounds,
    ReadWhileInFlight,
    UninitialisedRead,
)
from fp4ref.hardware import cluster, mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.hardware.tma import TmaFault
from fp4ref.layout import SwizzleMode

NONE, B32, B64, B128 = SwizzleMode
BITS = {"UINT8": 8, "UINT16": 16, "FLOAT32": 32, "FLOAT64": 64, "U4_ALIGN8B": 4}


def elements(m, coords):
    """For each element of the box: bit in the tile, bit in the tensor or None."""
    bits = BITS[m.data_type.name]
    for number, reversed_index in enumerate(product(*[range(b) for b in m.box[::-1]])):
        index = reversed_index[::-1]
        at = [c + i for c, i in zip(coords, index, strict=True)]
        inside = all(0 <= a < d for a, d in zip(at, m.dims, strict=True))
        start = at[0] * bits + 8 * sum(
            a * s for a, s in zip(at[1:], m.strides, strict=True)
        )
        yield number * bits, start if inside else None, bits


def tile_bit(m, dst, bit):
    """Bit of the tile's bytes after the swizzle of its shared address."""
    address = dst + bit // 8
    return 8 * (xor_swizzle(address, m.swizzle) - dst) + bit % 8


def bits_of(data):
    return np.unpackbits(data, bitorder="little")


def expected_tile(m, tensor, coords, dst, fill=0):
    source = bits_of(tensor)
    nbytes = prod(m.box) * BITS[m.data_type.name] // 8
    out = np.zeros(8 * nbytes, np.uint8)
    for at, origin, bits in elements(m, coords):
        to = tile_bit(m, dst, at)
        if origin is None:
            out[to : to + bits] = [fill >> i & 1 for i in range(bits)]
        else:
            out[to : to + bits] = source[origin : origin + bits]
    return np.packbits(out, bitorder="little")


def expected_tensor(m, before, tile, coords, src):
    source, out = bits_of(tile), bits_of(before)
    end = 0
    for at, target, bits in elements(m, coords):
        if target is not None:
            from_ = tile_bit(m, src, at)
            out[target : target + bits] = source[from_ : from_ + bits]
            end = target + bits
        elif end and end % 128:
            # The last chunk of a row is written whole.
            from_ = tile_bit(m, src, at)
            out[end : end + bits] = source[from_ : from_ + bits]
            end += bits
        else:
            end = 0
    return np.packbits(out, bitorder="little")


def tensor_map(on, name, dims, box, swizzle=NONE, oob_nan=False, pad=0, seed=0):
    """A random tensor with `pad` bytes after each row, and its map."""
    bits = BITS[name]
    pitch = -(-dims[0] * bits // 8 // 16) * 16 + pad
    strides, stride = [], pitch
    for dim in dims[1:]:
        strides.append(stride)
        stride *= dim
    tensor = random_bytes(stride, seed)
    address = on.gmem.upload("T", tensor)
    m = TensorMap(
        DataType[name],
        address,
        dims,
        tuple(strides),
        box,
        swizzle=swizzle,
        oob_nan=oob_nan,
    )
    return tensor, m


def load(on, m, coords, dst=TILE, expect=None):
    nbytes = prod(m.box) * BITS[m.data_type.name] // 8

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, nbytes if expect is None else expect)
        tma.load(warp, m, coords, dst, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    launch(on, body)
    return on.sms[0].smem.data[dst - 0x400 :][:nbytes]


def store(on, m, coords, tile, src=TILE):
    def body(warp):
        smem.st(warp, src, tile)
        smem.fence_proxy_async(warp)
        tma.store(warp, m, coords, src)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    launch(on, body)


CASES = [
    # data type, dims, box, swizzle, pad
    ("UINT8", (96,), (32,), NONE, 0),
    ("UINT8", (64, 20), (32, 9), B32, 16),
    ("UINT8", (128, 20), (64, 12), B64, 0),
    ("UINT8", (256, 20), (128, 17), B128, 32),
    ("UINT16", (256, 4, 3, 2), (256, 2, 1, 1), NONE, 0),
    ("UINT16", (64, 12), (32, 10), B64, 16),
    ("FLOAT32", (40, 10, 3), (32, 8, 2), B128, 0),
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


# -- bulk groups


def storing(steps, groups=3):
    """Store `groups` tiles, one group each; then `steps`. Returns the machine."""
    on = machine("late", trace=True)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        for i in range(groups):
            smem.st(warp, TILE + 128 * i, random_bytes(128, i))
        smem.fence_proxy_async(warp)
        for i in range(groups):
            tma.store(warp, m, (0, i), TILE + 128 * i)
            tma.commit_group(warp)
        result = steps(warp)
        if result is not None:
            yield from result

    launch(on, body)
    return on


def landed_before(on, operation):
    """(unit, row) of each landing before the first event called `operation`."""
    events = on.recorder.trace.events
    stop = next(e.step for e in events if e.operation == operation)
    return [
        (e.agent, e.operands["coords"][1]) for e in events[:stop] if e.kind == "land"
    ]


def test_wait_group_leaves_the_newest_groups_pending():
    on = storing(lambda w: tma.wait_group(w, 1))
    landed = landed_before(on, "cp.async.bulk.wait_group")
    assert ("tma", 0) in landed
    assert ("tma", 1) in landed


def test_wait_group_read_waits_only_for_the_sources():
    on = storing(lambda w: tma.wait_group(w, 0, read=True))
    landed = landed_before(on, "cp.async.bulk.wait_group.read")
    assert {("tma.read", i) for i in range(3)} <= set(landed)
    assert not {("tma", i) for i in range(3)} <= set(landed)


def test_wait_group_for_more_than_there_are_does_not_wait():
    on = storing(lambda w: tma.wait_group(w, 5))
    assert landed_before(on, "cp.async.bulk.wait_group") == []


def test_wait_group_0_waits_for_an_old_group_though_a_newer_one_is_done():
    """Only the newest N may be pending; an older one is waited for all the same."""
    on = machine(trace=True, schedule="late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        for i in range(3):
            smem.st(warp, TILE + 128 * i, random_bytes(128, i))
        smem.fence_proxy_async(warp)
        ops = []
        for i in range(3):
            tma.store(warp, m, (0, i), TILE + 128 * i)
            ops.append(warp.bulk_open[-1])
            if i == 2:
                warp.machine.land_now(ops[1])
            tma.commit_group(warp)
        yield from tma.wait_group(warp, 2)
        assert ops[0].landed

    launch(on, body)


def test_source_may_be_reused_only_after_wait_group_read():
    def reuse(wait):
        def steps(warp):
            if wait:
                yield from tma.wait_group(warp, 0, read=True)
            smem.st(warp, TILE, random_bytes(16))
            yield from ()

        return steps

    storing(reuse(True))
    with pytest.raises(ReadWhileInFlight, match="store in flight reads"):
        storing(reuse(False))


def test_stores_outlive_their_cta():
    on = storing(lambda w: None)
    for i in range(3):
        got = on.gmem.contents(on.gmem.allocations[0].address + 128 * i, 128)
        np.testing.assert_array_equal(got, random_bytes(128, i))


def test_a_load_does_not_outlive_its_cta():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128,), (128,))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, m, (0,), TILE, MBAR)

    with pytest.raises(ExitFault, match="load is in flight"):
        launch(on, body)


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_groups_do_not_pile_up(schedule):
    on = machine(schedule)
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        smem.st(warp, TILE, random_bytes(128))
        smem.fence_proxy_async(warp)
        seen = []
        for i in range(50):
            tma.store(warp, m, (0, i % 8), TILE)
            seen.append(warp.bulk_open[-1])
            tma.commit_group(warp)
            yield from tma.wait_group(warp, 0)
        assert len(warp.bulk_groups) <= 1
        assert not warp.bulk_open
        assert all(not op.after for op in seen)

    launch(on, body)


def test_two_stores_to_the_same_place_in_flight():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        smem.st(warp, TILE, random_bytes(128))
        smem.fence_proxy_async(warp)
        tma.store(warp, m, (0, 0), TILE)
        tma.store(warp, m, (0, 0), TILE)

    with pytest.raises(ReadWhileInFlight):
        launch(on, body)


def test_loads_into_one_place_in_flight():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 256)
        tma.load(warp, m, (0, 0), TILE, MBAR)
        tma.load(warp, m, (0, 1), TILE, MBAR)

    with pytest.raises(ReadWhileInFlight, match="load in flight writes"):
        launch(on, body)


def test_reading_a_tile_before_its_barrier():
    on = machine("late")
    _, m = tensor_map(on, "UINT8", (128, 8), (128, 1))

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, 128)
        tma.load(warp, m, (0, 0), TILE, MBAR)
        smem.ld(warp, TILE + 127, 1)

    with pytest.raises(ReadWhileInFlight, match="load in flight writes"):
        launch(on, body)


# -- refusals


def one_load(m, coords=(0, 0), dst=TILE):
    return lambda w: tma.load(w, m, coords, dst, MBAR)


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
        replace(m, data_type=DataType.U4_ALIGN16B, box=(128, 8, 1)),
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
