"""Clusters and pairs: each output tile is written once, and no virtual one is.

The grid of CTAs is padded to whole clusters. A CTA beyond the problem loads for the
others; what it computes is no tile of D, and TMA crops all of it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig, Run

PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
KINDS: dict[str, dict[str, Any]] = {
    "single": {},
    "pair": PAIR,
    "4x2": {"cluster_m": 4, "cluster_n": 2},
}
ROWS, SUBTILE = 128, 32
"""Rows of a CTA's tile, and columns of one store."""
SIZES = list(itertools.product((1, 127, 128, 129, 384, 640), (64, 192, 256, 448)))


def run_of(kind: str, m: int, n: int, number: int) -> Run:
    """Run a problem of one k-tile; tiles and scheduler turn about."""
    config = GemmConfig.nvfp4(
        scheduler=("clc", "static")[number % 2],
        tile_n=(64, 128, 192, 256)[number // 2 % 4],
        accumulator_stages=1,
        **KINDS[kind],
    )
    a, b = wide_pair(number, m, n, 32)
    sms = fp4ref.plan(config).cluster_size * (1 + number % 2)
    return fp4ref.run(a, b, config=config, sms=sms, schedule=number)


def stored(run: Run) -> Counter[tuple[int, int]]:
    """Count by (row, column) corner the stores that wrote something."""
    assert run.trace is not None
    stores = run.trace.select(operation="cp.async.bulk.tensor.3d.store")
    corners = [each.operands["coords"] for each in stores if each.writes]
    return Counter((row, column) for column, row, _ in corners)


def subtiles(m: int, n: int) -> set[tuple[int, int]]:
    """Corners of the subtiles that have an element of D."""
    return set(itertools.product(range(0, m, ROWS), range(0, n, SUBTILE)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_each_tile_is_stored_once_and_no_virtual_one(kind: str, part: int) -> None:
    for number, (m, n) in list(enumerate(SIZES))[part::4]:
        run = run_of(kind, m, n, number)
        assert stored(run) == dict.fromkeys(subtiles(m, n), 1), (m, n)
        assert run.written.all()
        assert np.isfinite(run.d).any()


def test_a_store_of_a_virtual_tile_would_be_seen() -> None:
    run = run_of("4x2", 129, 64, 0)
    more = stored(run) + Counter({(256, 0): 1})
    assert more != dict.fromkeys(subtiles(129, 64), 1)


K_TILE_NBYTES = (128 + 128) * 256 // 2 + (128 + 128) * 256 // 16
"""A, B, SFA and SFB of a k-tile of 128 x 128 x 256: 36,864."""


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_seven_k_tiles_in_groups_of_two_are_four_rounds(kind: str) -> None:
    """The last round has one k-tile, and expects the bytes of one."""
    config = GemmConfig.nvfp4(k_group=2, stages=2, **KINDS[kind])
    a, b = wide_pair(7, 128, 128, 7 * 256)
    size = fp4ref.plan(config).cluster_size
    run = fp4ref.run(a, b, config=config, sms=size)
    assert run.trace is not None
    nbytes = K_TILE_NBYTES if kind == "single" else 2 * (K_TILE_NBYTES - 128 * 64)
    expected = [
        event.operands["tx_bytes"]
        for event in run.trace.select(operation="mbarrier.arrive.expect_tx")
        if "5.4.8" in event.frames
    ]
    assert expected == [2 * nbytes, 2 * nbytes, 2 * nbytes, nbytes]
    loads = run.stats["cp.async.bulk.tensor.3d.load"] // 2
    assert loads == 7 * size


def test_groups_change_no_bit() -> None:
    a, b = wide_pair(8, 128, 128, 7 * 256)
    plain = fp4ref.run(a, b, trace=False)
    for k_group in (2, 4):
        config = GemmConfig.nvfp4(**PAIR, k_group=k_group, tile_n=64)
        run = fp4ref.run(a, b, config=config, sms=2, trace=False)
        assert run.d.tobytes() == plain.d.tobytes()
