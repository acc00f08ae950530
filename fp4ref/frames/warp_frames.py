"""Parts 5 to 8. warp_frames: what the frames of the warps hold, as JSON values.

With `setup`, all constructed and conditional frames.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.errors import InputError
from fp4ref.frames.setup import SETUP, Problem, Values, map_values, problem_of
from fp4ref.gemm import partition
from fp4ref.gemm.config import SF_VEC_SIZE, SUBTILE_N, TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.descriptors import K_BLOCKS
from fp4ref.gemm.pipeline import Consumer, PipelineState, Producer
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.warps import (
    EPILOGUE_WARPS,
    WARP_THREADS,
    WarpRole,
)
from fp4ref.hardware import tmem
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tcgen05 import MMA_K, MMA_M
from fp4ref.layout import sfb_column_shift
from fp4ref.numerics import ScaleFormat, mma_block_scaled


def values_of(id: str, config: GemmConfig | None, m: int, n: int, k: int) -> Values:
    """Values of one constructed or conditional frame."""
    if min(m, n, k) < 1 or k % 32:
        raise InputError(
            f"problem {m} x {n} x {k}: sizes are at least 1, and K is a multiple of 32"
        )
    return _VALUES[id](problem_of(config, m, n, k))


def _state(state: PipelineState) -> Values:
    return {"index": state.index, "phase": state.phase, "count": state.count}


def _do_nothing(warp: Warp, stage: object) -> None:
    """Leave a ring that is only looked at."""


def _load_entry(p: Problem) -> Values:
    producer = Producer(p.warp, p.storage.ring("mainloop"), _do_nothing)
    return _state(producer.state) | {
        "tile": [p.work.m, p.work.n, p.work.l],
        "k_tiles": p.params.k_tiles,
        "prologue": min(p.plan.mainloop_stages, p.params.k_tiles),
    }


def _region(p: Problem) -> Values:
    m, n, tile_n = p.work.m, p.work.n, p.config.tile.n
    return {
        "A_rows": [m * TILE_M, m * TILE_M + TILE_M],
        "B_rows": [n * tile_n, n * tile_n + tile_n],
        "k": [[i * TILE_K, (i + 1) * TILE_K] for i in range(p.params.k_tiles)],
    }


def _mma_entry(p: Problem) -> Values:
    mainloop = Consumer(p.warp, p.storage.ring("mainloop"), _do_nothing)
    accumulator = Producer(p.warp, p.storage.ring("accumulator"), _do_nothing)
    return {
        "mainloop": _state(mainloop.state),
        "accumulator": _state(accumulator.state),
    }


def _mma_operands(p: Problem) -> Values:
    return {
        "kind": "mxf4nvf4",
        "scale_vec": "4X",
        "shape": [MMA_M, p.config.tile.n, MMA_K],
        "idesc": p.plan.idesc(p.params.scale_format),
        "k_blocks": K_BLOCKS,
        "sfa": [TILE_M, TILE_K // SF_VEC_SIZE],
        "sfb": [p.plan.sf_rows_b, TILE_K // SF_VEC_SIZE],
    }


def _scale_meaning(p: Problem) -> Values:
    """All elements 1, and a scale of its own for each 16 of them."""
    ones = np.full((1, MMA_K), 2, np.uint8)
    sfa = np.array([[0x38, 0x40, 0x48, 0x50]], np.uint8)
    sfb = np.full((1, MMA_K // SF_VEC_SIZE), 0x38, np.uint8)
    d = mma_block_scaled(
        ones, ones, sfa, sfb, None, scale_format=ScaleFormat.UE4M3, vec_size=SF_VEC_SIZE
    )
    return {
        "elements_per_scale": SF_VEC_SIZE,
        "scales_per_row": MMA_K // SF_VEC_SIZE,
        "scales_of_row_0": ScaleFormat.UE4M3.decode(sfa)[0].tolist(),
        "d": float(d[0, 0]),
    }


def _dispatch(p: Problem) -> Values:
    return {
        "issuing_threads": 1,
        "warp": WarpRole.MMA.value,
        "tile": [MMA_M, p.config.tile.n],
        "instructions_per_k_tile": K_BLOCKS,
    }


def _lanes(p: Problem) -> Values:
    first = WarpRole.EPILOGUE.value
    owners = range(first, first + EPILOGUE_WARPS)
    lane = {w: WARP_THREADS * (w % 4) for w in owners}
    return {
        "lanes": {str(w): [lane[w], lane[w] + WARP_THREADS - 1] for w in owners},
        "addresses": {str(w): tmem.address(lane[w], 0) for w in owners},
        "registers": SUBTILE_N,
        "subtiles": p.plan.subtiles,
    }


def _stores(p: Problem) -> Values:
    config = p.config
    corners = [
        partition.subtile_coords(p.work, i, p.plan)
        for i in range(plan(config).subtiles)
    ]
    assert p.params.d is not None, "the frames' kernel stores D"
    return map_values(p.params.d) | {
        "subtiles": plan(config).subtiles,
        "corners": [list(corner) for corner in corners],
    }


def _sfb_shift(p: Problem) -> Values:
    n = p.config.tile.n
    shifts = [sfb_column_shift(n, tile) for tile in range(2)]
    return {"applies": any(shifts), "tile_n": n, "columns_even_odd": shifts}


def _peer(p: Problem) -> Values:
    group = p.plan.cta_group
    if group == 1:
        return {"applies": False, "cta_group": 1, "needs": "cta_group::2"}
    arrivals = p.plan.ring("tmem_dealloc").full
    return {"applies": True, "cta_group": group, "arrivals": arrivals.count}


def _overlapped(p: Problem) -> Values:
    needed = p.config.mainloop.accumulator_stages * p.plan.part_n
    return {
        "applies": p.plan.overlapped,
        "accumulator_columns": needed,
        "columns": tmem.COLUMNS,
        "needs": "tiles of 256 columns, whose two accumulators overlap",
    }


_VALUES: dict[str, Callable[[Problem], Values]] = SETUP | {
    "5.1": _load_entry,
    "5.2": _region,
    "6.1": _mma_entry,
    "6.2": _mma_operands,
    "6.3": _sfb_shift,
    "6.6.7": _scale_meaning,
    "6.6.8": _dispatch,
    "7.3": _lanes,
    "7.8": _stores,
    "8.4": _peer,
    "8.6": _overlapped,
}
