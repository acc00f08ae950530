"""tmem lanes: those above 127 that kernels of pairs name, and those without values.

``gau-nernst/learn-cuda`` does both, and its products were right on a B200: matmul v5 to
v7 add 128 to the lane in the second CTA of a pair, and the product with M = 64 loads 32
lanes of which 16 hold D, and drops the others.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import BASE, launch, machine

from fp4ref.errors import LaneQuarterViolation, UninitialisedRead
from fp4ref.hardware import tmem
from fp4ref.hardware.advisory import Advisory

WORDS = np.arange(32 * 4, dtype=np.uint32).reshape(32, 4)


def with_columns(step):
    """One warp, of lanes 0 to 31, between alloc and dealloc."""

    def body(warp):
        yield from tmem.alloc(warp, BASE, 32)
        yield from step(warp)
        tmem.dealloc(warp, 0, 32)

    return body


def stored_and_loaded(lane_stored: int, lane_loaded: int, ordering: str):
    found = []

    def step(warp):
        tmem.st(warp, lane_stored << 16, WORDS, repeat=4)
        yield from tmem.wait_st(warp)
        registers = tmem.ld(warp, lane_loaded << 16, repeat=4)
        yield from tmem.wait_ld(warp)
        found.append(registers.words)

    on = launch(machine("eager", ordering=ordering), with_columns(step))
    return found[0], on.advisories.get(Advisory.LANES_OF_A_PAIR.value, 0)


@pytest.mark.parametrize(("stored", "loaded"), [(0, 128), (128, 0), (128, 128)])
def test_shipped_ordering_counts_lanes_above_127_from_0_again(stored, loaded):
    found, count = stored_and_loaded(stored, loaded, "shipped")
    np.testing.assert_array_equal(found, WORDS)
    assert count == (stored + loaded) // 128


@pytest.mark.parametrize("lane", [128, 160, 32])
def test_by_the_text_a_lane_above_127_is_a_fault(lane):
    with pytest.raises(LaneQuarterViolation):
        stored_and_loaded(0, lane, "ptx")


def test_the_quarter_counts_above_127_too():
    with pytest.raises(LaneQuarterViolation):
        stored_and_loaded(0, 160, "shipped")


def half_loaded(use, columns=4, written=4):
    """Load 32 lanes of which the first 16 have values in some columns."""

    def step(warp):
        block = warp.tmem.rectangle(0, 16, 0, written)
        data = WORDS[:16, :written].copy().view(np.uint8)
        warp.tmem.write(block, data)
        registers = tmem.ld(warp, 0, repeat=columns)
        yield from tmem.wait_ld(warp)
        use(registers)

    launch(machine(), with_columns(step))


def test_a_lane_without_values_gives_registers_without_values():
    def use(registers):
        words, known = registers.landed()
        assert known[:16].all()
        assert not known[16:].any()
        np.testing.assert_array_equal(words[:16], WORDS[:16])

    half_loaded(use)


def test_a_use_of_such_registers_is_a_fault():
    with pytest.raises(UninitialisedRead, match="64 of 128 registers"):
        half_loaded(lambda registers: registers.words)


def test_a_lane_with_some_values_is_a_fault_at_the_load():
    with pytest.raises(UninitialisedRead, match="were never written"):
        half_loaded(lambda registers: None, columns=4, written=2)
