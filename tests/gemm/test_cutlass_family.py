"""The plan of 24 tiles, and the order of 50 grids, are those of CUTLASS's own types.

Two host programs in ``conformance/record`` printed what is compared here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fp4ref import GemmConfig, plan
from fp4ref.gemm.plan import values
from fp4ref.gemm.tile_grid import TileGrid

ROOT = Path(__file__).parents[2]
RECORD: dict[str, Any] = json.loads(
    (ROOT / "tests/data/cutlass_family.json").read_text("utf-8")
)
TILES: dict[str, list[int]] = RECORD["sm100_mainloop"]
GRIDS: dict[str, list[int]] = RECORD["sm100_raster"]
E4M3 = "2 256 128 128 2 1 0 17408"
EPILOGUES: dict[int, dict[str, Any]] = {
    32768: {},
    69632: {"c_format": "f32", "beta": 1.0, "c_stages": 4, "d_format": "nvfp4"},
    16384: {"d_format": "bf16"},
}
"""Ours, by the bytes that CUTLASS's builder was given as its carve-out."""
FORMATS = {16: "nvfp4", 32: "mxfp4"}
SCALED = [key for key in TILES if key != E4M3]


def config_of(asked: str) -> GemmConfig:
    """The configuration; CUTLASS has one set of scale columns."""
    group, m, n, _, cluster_m, cluster_n, vec_size, epilogue = map(int, asked.split())
    return GemmConfig.nvfp4(
        cta_group=group,
        tile_m=m,
        tile_n=n,
        cluster_m=cluster_m,
        cluster_n=cluster_n,
        operand_format=FORMATS[vec_size],
        scale_buffers=1,
        **EPILOGUES[epilogue],
    )


def planned(config: GemmConfig) -> list[int]:
    """What the host program prints, by the plan."""
    p = plan(config)
    return [
        p.mainloop_stages,
        p.stage_tx_bytes,
        p.mainloop_stages * p.k_tile_nbytes,
        p.carveout_nbytes,
        p.accumulator_barriers,
        p.accumulator_stride,
        *(p.tmem.sfa[0], p.tmem.sfb[0], p.tmem.end),
    ]


@pytest.mark.parametrize("asked", SCALED)
def test_a_tile_is_planned_as_the_builder_plans_it(asked: str) -> None:
    config = config_of(asked)
    assert plan(config).epilogue_nbytes == int(asked.split()[-1])
    assert planned(config) == TILES[asked]


def test_the_tiles_are_the_family() -> None:
    """Every N with one SM and with a pair, with three epilogues."""
    assert len(SCALED) == 24
    expected = {(m, n): [] for m in (128, 256) for n in (64, 128, 192, 256)}
    for asked in SCALED:
        _, m, n, *_ = map(int, asked.split())
        expected[m, n].append(TILES[asked][1])
    assert {key: found[0] for key, found in expected.items()} == {
        **{(128, 64): 28672, (128, 128): 36864, (128, 192): 47104, (128, 256): 55296},
        **{(256, 64): 49152, (256, 128): 57344, (256, 192): 69632, (256, 256): 77824},
    }
    assert TILES[E4M3][1] == 49152


def test_another_rule_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without overlap N = 256 is planned otherwise; so is a stage with more bytes."""
    asked = "1 128 256 256 1 1 16 32768"
    with monkeypatch.context() as changed:
        changed.setattr(values.Plan, "overlapped", False)
        assert values.Plan(config_of(asked)).tmem.end != TILES[asked][-1]
    monkeypatch.setattr(values, "STAGE_BARRIER_NBYTES", 8192)
    assert any(planned(config_of(each)) != TILES[each] for each in SCALED)


def order(asked: str, swizzle: int | None = None) -> list[int]:
    """M and N of the tile of every CTA of the launch."""
    *numbers, raster = asked.split()
    tiles_m, tiles_n, cluster_m, cluster_n, size = map(int, numbers)
    size = max(size, 1) if swizzle is None else swizzle
    grid = TileGrid(tiles_m, tiles_n, 1, raster, (cluster_m, cluster_n), size)
    columns, rows, _ = grid.dims
    tiles = (grid.tile((x, y, 0)) for y in range(rows) for x in range(columns))
    return [i for tile in tiles for i in (tile.m, tile.n)]


@pytest.mark.parametrize("asked", GRIDS)
def test_a_grid_is_walked_as_the_scheduler_walks_it(asked: str) -> None:
    assert order(asked) == GRIDS[asked]


def test_fifty_grids_and_most_of_them_tell_a_wrong_swizzle() -> None:
    assert len(GRIDS) == 50
    assert sum(order(asked, 1) != GRIDS[asked] for asked in GRIDS) >= 10
