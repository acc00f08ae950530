"""Part 2. scheduler: the first tile, the CLC answer's flag, the next fetch."""

from __future__ import annotations

from dataclasses import replace

from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware import clc
from fp4ref.lessons.truths.runs import EXAMPLE, SIZE, issued, trace

_CTAID, _WORK_TILE = (5, 0, 0), (5, 3)


def tile_of_cta_5() -> list[int]:
    """Tile of CTA 5 by CUTLASS's heuristic: x runs along M only if N has more tiles."""
    grid = TileGrid.of(SIZE, SIZE, 1, EXAMPLE)
    raster = "m" if grid.tiles_n > grid.tiles_m else "n"
    work = replace(grid, raster=raster).tile(_CTAID)
    return [work.m, work.n]


def block_index() -> list[int]:
    """``blockIdx.x`` and ``blockIdx.y`` of tile (5, 3)."""
    x, y, _ = TileGrid.of(SIZE, SIZE, 1, EXAMPLE).ctaid(*_WORK_TILE)
    return [x, y]


def canceled_bit() -> int:
    """Bit of the 128-bit answer that says whether there was a cluster."""
    some, none = (
        int.from_bytes(clc.encode_response(ctaid).tobytes(), "little")
        for ctaid in ((0, 0, 0), None)
    )
    return (some ^ none).bit_length() - 1


def fetches_after_its_tile() -> bool:
    """Whether the MMA warp fetches its next tile after the MMAs of this one."""
    (fetch,) = trace().select(agent="warp0", operation="tile_scheduler.next_work")
    return fetch.step > max(e.step for e in issued("tcgen05.mma"))
