"""``grid.sync()``: a grid whose CTAs are all there waits for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import machine
from test_nvrtc import nvrtc_works, run

from fp4ref.errors import DeadlockError

pytestmark = [
    pytest.mark.outside,
    pytest.mark.skipif(
        not nvrtc_works(), reason="needs NVRTC: pip install 'fp4ref[cuda]'"
    ),
]

GRID = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int* out, int* cells) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  if (!grid.is_valid()) return;
  for (int round = 0; round < 3; ++round) {
    int mine = cells[i], other = cells[(i + blockDim.x) % n];
    grid.sync();
    cells[i] = mine + 2 * other;
    grid.sync();
  }
  out[i] = cells[i];
}"""


@pytest.mark.parametrize("schedule", ["eager", "late", 1])
def test_a_grid_waits_for_all_its_ctas(schedule: str | int) -> None:
    """Each CTA reads what the next one wrote before the last wait."""
    cells = np.arange(96, dtype=np.int32)
    want = cells.astype(np.int64)
    for _ in range(3):
        want = want + 2 * np.roll(want, -32)
    on = machine(schedule, sms=3, races="raise")
    found = run(GRID, np.zeros(96, np.int32), cells, threads=32, blocks=3, on=on)
    np.testing.assert_array_equal(found, want)


def test_a_grid_that_does_not_fit_cannot_wait_for_all() -> None:
    with pytest.raises(DeadlockError, match="wait and nothing is in flight"):
        run(
            *(GRID, np.zeros(96, np.int32), np.arange(96, dtype=np.int32)),
            **{"threads": 32, "blocks": 3, "on": machine(sms=2)},
        )
