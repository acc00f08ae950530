"""An MMA on the bytes where they lie: the bits of a traced run, which reads copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import BlockScaled
from fp4ref.hardware import mma_in_place
from fp4ref.numerics import compiled
from tests.numerics.assert_bits import assert_bits_equal

pytestmark = pytest.mark.skipif(
    not compiled.AVAILABLE, reason="without Numba no MMA is computed in place"
)


def operands(scales: tuple[int, int]) -> tuple[BlockScaled, BlockScaled]:
    """Any codes, and scales in a range of codes."""
    rng = np.random.default_rng(scales[1])
    a, b = (
        BlockScaled(
            rng.integers(0, 16, (rows, 128), np.uint8),
            rng.integers(*scales, (rows, 8), np.uint8),
        )
        for rows in (130, 70)
    )
    return a, b


@pytest.mark.parametrize("scales", [(0x40, 0x48), (0, 0x7F), (0, 256)])
def test_the_bits_are_those_of_a_traced_run(scales: tuple[int, int]) -> None:
    """With rows that are exact in float32, with some that are not, and with NaN."""
    a, b = operands(scales)
    assert_bits_equal(fp4ref.run(a, b, trace=False).d, fp4ref.run(a, b).d)


def test_a_wrong_sum_in_place_is_seen(monkeypatch: Any) -> None:
    a, b = operands((0x40, 0x48))
    add_placed = mma_in_place.add_placed

    def one_more(step, d, at) -> Any:
        left = add_placed(step, d, at)
        d[at[0] :, at[1] :] += np.float32(1)
        return left

    right = fp4ref.run(a, b, trace=False).d
    monkeypatch.setattr(mma_in_place, "add_placed", one_more)
    assert not np.array_equal(fp4ref.run(a, b, trace=False).d, right)
