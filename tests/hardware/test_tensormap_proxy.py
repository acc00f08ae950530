"""tensormap_proxy: fields that are replaced, copies of maps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, TILE, launch, machine
from tensor_copies import tensor_map

from fp4ref.errors import (
    ClusterFault,
    MisalignedAddress,
    OutOfBounds,
    UninitialisedRead,
)
from fp4ref.hardware import mbarrier, smem, tma
from fp4ref.hardware import tensormap_proxy as maps
from fp4ref.hardware.tensor_map import DataType
from probes.tensor_map import table
from probes.transcript import load

PTX_TYPE = dict(zip(DataType, (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12), strict=False))
"""Numbers of ``.elemtype`` in PTX, by the driver's type."""

KEPT = {2: 0b11 << 17, 16: -1, 18: -1}
"""Bits that no instruction replaces: L2 promotion, what box and swizzle imply."""


def fields_of(m):
    """Every replacement that turns any map into that of the arguments `m`."""
    yield "rank", len(m.dims) - 1, 0
    yield "global_address", ADDRESS + m.offset, 0
    for i in range(5):
        inside = i < len(m.dims)
        yield "global_dim", m.dims[i] if inside else 1, i
        yield "box_dim", m.box[i] if inside else 1, i
        yield "element_stride", (m.element_strides or (1,) * 5)[i] if inside else 1, i
    for i in range(4):
        yield "global_stride", m.strides[i] if i < len(m.strides) else 0, i
    yield "elemtype", PTX_TYPE[DataType(m.data_type)], 0
    yield "interleave_layout", m.interleave, 0
    yield "swizzle_mode", m.swizzle, 0
    yield "fill_mode", int(m.oob_nan), 0


ADDRESS = 0x7F00_0000_0000


TF32 = (11, 12)


def recorded_maps():
    """What the driver took, and the words that it made."""
    found = load("tensor_map").arrays
    columns = table(), found["words"], found["status"]
    return [(m, words) for m, words, bad in zip(*columns, strict=True) if not bad]


def difference(m, words, wanted):
    """Words that are not those of the driver once all fields of `m` are put in."""
    data = words.tobytes()
    for field, value, ordinal in fields_of(m):
        data = maps.replaced(data, field, value, ordinal)
    differs = np.frombuffer(data, np.uint32).astype(np.int64) ^ wanted.astype(np.int64)
    for word, bits in KEPT.items():
        differs[word] &= ~bits
    return np.flatnonzero(differs).tolist()


def test_a_map_whose_fields_are_all_replaced_is_the_one_that_the_driver_made():
    rows = [(m, words) for m, words in recorded_maps() if m.data_type not in TF32]
    rng = np.random.default_rng(5)
    for m, wanted in (rows[i] for i in rng.integers(0, len(rows), 300)):
        _, before = rows[int(rng.integers(len(rows)))]
        assert difference(m, before, wanted) == [], m


def test_tf32_sets_a_bit_that_the_driver_sets_too():
    rows = recorded_maps()
    others = [words for m, words in rows if m.data_type not in TF32]
    wanted = [(m, words) for m, words in rows if m.data_type in TF32]
    assert len(wanted) > 20
    for (m, words), before in zip(wanted[:100], others, strict=False):
        assert difference(m, before, words) == [], m


def placed(on):
    m = tensor_map(on, "UINT8", (128, 8), (128, 1))[1]
    on.at = on.gmem.upload("map", np.frombuffer(m.to_bytes(), np.uint8))
    on.other = on.gmem.upload("other", np.arange(1024, dtype=np.uint32).view(np.uint8))
    return m


@pytest.mark.parametrize("schedule", ["eager", "late", 3])
def test_a_copy_uses_the_map_as_it_was_when_it_was_issued(schedule):
    on = machine(schedule)
    m = placed(on)
    old = on.gmem.contents(m.address, 128)

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, MBAR, 256)
        for i in range(2):
            maps.fence_acquire(warp, on.at, "gpu")
            found = maps.use(warp, on.at, "cp.async.bulk.tensor.2d.load")
            tma.load(warp, found, (0, 0), TILE + 128 * i, MBAR)
            maps.replace(warp, "global", on.at, "global_address", on.other)
            maps.fence_release(warp, "gpu")
        yield from mbarrier.try_wait(warp, MBAR, 0)
        body.got = smem.ld(warp, TILE, 256)

    launch(on, body)
    assert body.got[:128].tolist() == old.tolist()
    assert body.got[128:].tolist() == on.gmem.contents(on.other, 128).tolist()


@pytest.mark.parametrize(
    ("act", "fault", "says"),
    [
        (lambda w, at: maps.fence_acquire(w, at + 32, "gpu"), MisalignedAddress, "64"),
        (lambda w, at: maps.use(w, at + 32, "load"), MisalignedAddress, "64 bytes"),
        (
            lambda w, at: maps.fence_acquire(w, at + (1 << 20), "gpu"),
            OutOfBounds,
            "allocation",
        ),
        (
            lambda w, at: maps.cp_fenceproxy(w, at, TILE, "gpu"),
            UninitialisedRead,
            "never written",
        ),
        (
            lambda w, at: maps.replace(w, "shared::cta", TILE, "rank", 1),
            UninitialisedRead,
            "never written",
        ),
    ],
)
def test_what_is_no_map_is_refused(act, fault, says):
    on = machine()
    placed(on)
    with pytest.raises(fault, match=says):
        launch(on, lambda warp: act(warp, on.at))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("rank", 6, "this is no tensor map"),
        ("global_address", 8, "multiple of 16 bytes"),
        ("swizzle_atomicity", 1, "swizzle atom"),
        ("box_dim", 8, "a box row is a multiple of 16 bytes"),
    ],
)
def test_a_map_with_a_wrong_field_is_refused_where_it_is_used(field, value, says):
    on = machine()
    placed(on)

    def body(warp):
        maps.replace(warp, "global", on.at, field, value)
        maps.use(warp, on.at, "cp.async.bulk.tensor.2d.load")

    with pytest.raises(maps.TensorMapFault, match=says) as caught:
        launch(on, body)
    assert "(map + 0)" in str(caught.value)


def test_a_map_of_the_peer_is_refused():
    on = machine(sms=2)
    placed(on)

    def body(warp):
        maps.cp_fenceproxy(warp, on.at, TILE | (1 - warp.cta.rank) << 24, "gpu")

    with pytest.raises(ClusterFault, match="shared::cta"):
        launch(on, body, grid=(2, 1, 1), cluster=(2, 1, 1))
