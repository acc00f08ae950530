"""Clusters and pairs: each output tile is stored once, and no virtual one is.

The grid of CTAs is padded to whole clusters. A CTA beyond the problem loads for the
others; what it computes is no tile of D, and it issues no store.
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
from fp4ref.gemm.epilogue.epilogue_state import Epilogue

PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
KINDS: dict[str, dict[str, Any]] = {
    "single": {},
    "pair": PAIR,
    "4x2": {"cluster_m": 4, "cluster_n": 2},
}
ROWS, SUBTILE = 128, 32
"""Rows of a CTA's tile, and columns of one store."""
EVERY_M, EVERY_N = (1, 127, 128, 129, 384, 640), (64, 192, 256, 448)
STORE = "cp.async.bulk.tensor.3d.store"
Corners = Counter[tuple[int, int]]


def run_of(kind: str, m: int, n: int, number: int) -> Run:
    """Run one k-tile, or three from 24 on; tiles, splits and scheduler turn about."""
    splits = 1 + number % 3
    config = GemmConfig.nvfp4(
        scheduler=("clc", "static")[number % 2],
        tile_n=(64, 128, 192, 256)[number // 2 % 4],
        accumulator_stages=1,
        splits=splits,
        **KINDS[kind],
    )
    a, b = wide_pair(number, m, n, 32 if number < 24 else 544)
    sms = fp4ref.plan(config).cluster_size * (1 + number % 2)
    return fp4ref.run(a, b, config=config, sms=sms, schedule=number)


def stores(run: Run) -> tuple[Corners, Corners]:
    """Count by (row, column) corner the stores issued, and those that wrote."""
    assert run.trace is not None
    found = run.trace.select(operation=STORE)
    issued, wrote = (
        Counter(tuple(each.operands["coords"][1::-1]) for each in found if wanted(each))
        for wanted in (lambda each: each.kind == "issue", lambda each: each.writes)
    )
    return issued, wrote


def tiles(m: int, n: int, columns: int) -> set[tuple[int, int]]:
    """Corners of the tiles of 128 rows that have an element of D."""
    return set(itertools.product(range(0, m, ROWS), range(0, n, columns)))


def subtiles(m: int, n: int, tile_n: int) -> set[tuple[int, int]]:
    """Corners of every subtile of these tiles, with those that TMA crops."""
    parts = range(0, tile_n, SUBTILE)
    return {(row, n0 + i) for row, n0 in tiles(m, n, tile_n) for i in parts}


def check_stores(kind: str, m: int, n: int, number: int) -> None:
    run = run_of(kind, m, n, number)
    tile_n, at = run.config.tile.n, (kind, m, n, number)
    issued, wrote = stores(run)
    assert issued == dict.fromkeys(subtiles(m, n, tile_n), 1), at
    assert wrote == dict.fromkeys(tiles(m, n, SUBTILE), 1), at
    assert run.stats[STORE] == issued.total(), at
    assert run.stats["tile"] == len(tiles(m, n, tile_n)), at
    assert run.written.all()
    assert np.isfinite(run.d).any()


@pytest.mark.parametrize("kind", ["pair", "4x2"])
def test_each_tile_is_stored_once_and_no_virtual_one(kind: str) -> None:
    """Every M, in tiles of 64 columns; of two and three splits all but one is empty."""
    for m, number in zip(EVERY_M, (0, 1, 8, 9, 16, 17), strict=True):
        check_stores(kind, m, 64, number)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_each_tile_is_stored_once_for_every_m_n_and_splits(kind: str) -> None:
    sizes = itertools.product(EVERY_M, EVERY_N)
    for number, (m, n) in enumerate(sizes):
        for turn in range(3):
            check_stores(kind, m, n, number + turn * 25)


def test_a_store_of_a_virtual_tile_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Epilogue, "is_inside", lambda *_: True)
    issued, wrote = stores(run_of("pair", 1, 64, 0))
    assert (ROWS, 0) in issued
    assert set(wrote) == tiles(1, 64, SUBTILE)
    with pytest.raises(AssertionError, match="pair"):
        check_stores("pair", 1, 64, 0)


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
