"""gmem: allocations, gaps, generic loads and stores."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import launch, machine, random_bytes

from fp4ref.errors import InputError, OutOfBounds, UninitialisedRead
from fp4ref.hardware import gmem
from fp4ref.trace import Range


def test_allocations_are_aligned_apart_and_named():
    on = machine()
    first = on.gmem.allocate("A", 1)
    second = on.gmem.upload("B", np.arange(3, dtype="<u4"))
    assert first % 512 == second % 512 == 0
    assert second >= first + 1 + 512
    assert on.gmem.find(second + 11).name == "B"
    assert on.gmem.find(second + 12) is None
    assert on.gmem.find(first - 1) is None
    assert "(B + 4)" in on.gmem.describe(second + 4)
    assert "in no allocation" in on.gmem.describe(second + 12)
    np.testing.assert_array_equal(
        on.gmem.contents(second, 12), [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]
    )


@pytest.mark.parametrize("nbytes", [0, -4])
def test_empty_allocation(nbytes):
    with pytest.raises(InputError, match="at least 1"):
        machine().gmem.allocate("A", nbytes)


def test_lanes_store_where_they_say():
    on = machine()
    address = on.gmem.allocate("D", 256)
    data = random_bytes(64).reshape(16, 4)
    order = np.random.default_rng(0).permutation(16)
    addresses = address + np.where(order < 8, order, order + 20) * 4

    launch(on, lambda w: gmem.st(w, addresses, data))
    for lane in range(16):
        np.testing.assert_array_equal(
            on.gmem.contents(int(addresses[lane]), 4), data[lane]
        )
    known = on.gmem.written[address - on.gmem.base :][:256]
    assert known.sum() == 64


def test_load_of_rows():
    on = machine()
    data = random_bytes(64).reshape(4, 16)
    address = on.gmem.upload("A", data)

    def body(warp):
        rows = gmem.ld(warp, Range("gmem", address + 16, 8, 2, 32))
        np.testing.assert_array_equal(rows, data[[1, 3], :8])

    launch(on, body)


@pytest.mark.parametrize("offset", [-4, 254, 300, 1 << 20])
def test_a_stray_store_names_its_neighbour(offset):
    on = machine()
    address = on.gmem.allocate("D", 256)
    where = np.array([address + offset])
    with pytest.raises(OutOfBounds, match="not inside one allocation") as caught:
        launch(on, lambda w: gmem.st(w, where, random_bytes(4).reshape(1, 4)))
    assert ("D + 254" in caught.value.where) == (offset == 254)


def test_never_written_global_memory():
    on = machine()
    address = on.gmem.allocate("D", 256)
    with pytest.raises(UninitialisedRead, match="D \\+ 0"):
        launch(on, lambda w: gmem.ld(w, Range("gmem", address, 4)))
