"""Parts 1 to 4. setup: what the frames of the set-up hold, as JSON values.

Each function computes one frame's values from the same configuration, tensor maps and
address maps that the warps use; nothing is written down twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fp4ref.gemm import partition
from fp4ref.gemm.config import SF_VEC_SIZE, TILE_K, TILE_M, GemmConfig
from fp4ref.gemm.descriptors import (
    K_BLOCK_STEP,
    K_BLOCKS,
    SF_COLUMNS,
    operand_descriptor,
)
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.pipeline import Ring
from fp4ref.gemm.plan import Plan, plan
from fp4ref.gemm.plan.warps import WarpRole
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import tmem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Cluster, Cta, Warp
from fp4ref.hardware.tcgen05 import MMA_K, MMA_M
from fp4ref.hardware.tensor_map import TensorMap
from fp4ref.hardware.tensor_memory import SLOT_COLUMNS
from fp4ref.layout import Layout, local_tile
from fp4ref.numerics import ScaleFormat

Values = dict[str, Any]

TENSOR_SPACING = 1 << 32
"""Distance of the nominal tensor addresses."""

TENSORS = ("A", "B", "SFA", "SFB", "C", "D", "SFD")


@dataclass(frozen=True)
class Problem:
    """A configuration, its parameters at nominal addresses, and one CTA's storage."""

    plan: Plan
    params: GemmParams
    storage: SharedStorage
    warp: Warp
    work: WorkTile

    @property
    def config(self) -> GemmConfig:
        """What was asked."""
        return self.plan.config


def problem_of(config: GemmConfig | None, m: int, n: int, k: int) -> Problem:
    """Return the problem, at nominal addresses, as tile (5, 0) sees it."""
    if config is None:
        config = GemmConfig.example_72b()
    planned = plan(config)
    at = {name: TENSOR_SPACING * (i + 1) for i, name in enumerate(TENSORS)}
    params = partition.gemm_params(planned, (1, m, n, k), at, ScaleFormat.UE4M3, 1.0)
    grid = params.grid
    work = WorkTile(min(5, grid.tiles_m - 1), 0, 0)
    machine = Machine(1)
    ctaid = grid.ctaid(work.m, work.n)
    cta = Cta(machine, machine.sms[0], ctaid, grid.dims, Cluster((1, 1, 1)))
    storage = SharedStorage.of(cta, planned, params)
    return Problem(planned, params, storage, Warp(cta, 0), work)


def _stages(p: Problem) -> Values:
    plan = p.plan
    return {
        "stages": plan.mainloop_stages,
        "most_stages": plan.most_stages,
        "a_bytes": plan.a_nbytes,
        "b_bytes": plan.b_nbytes,
        "sfa_bytes": plan.sfa_nbytes,
        "sfb_bytes": plan.sfb_nbytes,
        "stage_tx_bytes": plan.stage_tx_bytes,
        "stage_bytes": plan.stage_nbytes,
        "epilogue_bytes": plan.epilogue_nbytes,
        "smem_bytes": plan.smem.end,
    }


def _counts(ring: Ring, producer: WarpRole, consumer: WarpRole) -> Values:
    return {
        "stages": ring.stages,
        "full_count": ring.full_count,
        "empty_count": ring.empty_count,
        "producer_warp": producer.value,
        "consumer_warp": consumer.value,
    }


def _mainloop_params(p: Problem) -> Values:
    counts = _counts(p.storage.ring("mainloop"), WarpRole.MAINLOOP_LOAD, WarpRole.MMA)
    return counts | {"transaction_bytes": p.plan.stage_tx_bytes}


def _mainloop_barriers(p: Problem) -> Values:
    ring = p.storage.ring("mainloop")
    base = p.storage.base
    return {
        "full": [address - base for address in ring.full],
        "empty": [address - base for address in ring.empty],
    }


def _release_masks(p: Problem) -> Values:
    a, b = partition.multicast_masks(0, 0, 1, 1)
    a4, b4 = partition.multicast_masks(2, 1, 4, 4)
    return {"cluster_1x1": a | b, "cta_2_1_of_4x4": a4 | b4}


def _accumulator_ring(p: Problem) -> Values:
    ring = p.storage.ring("accumulator")
    return _counts(ring, WarpRole.MMA, WarpRole.EPILOGUE)


def _grid(p: Problem) -> Values:
    grid = p.params.grid
    return {
        "tiles_m": grid.tiles_m,
        "tiles_n": grid.tiles_n,
        "batches": grid.batches,
        "tiles": grid.count,
        "grid": list(grid.dims),
        "raster": grid.raster,
    }


def map_values(tensor_map: TensorMap) -> Values:
    """Return what a tensor map says."""
    return {
        "type": tensor_map.data_type.name,
        "dims": list(tensor_map.dims),
        "stride_bytes": list(tensor_map.strides),
        "box": list(tensor_map.box),
        "swizzle": tensor_map.swizzle.name,
        "box_bytes": tensor_map.box_nbytes,
    }


def _operands(p: Problem) -> Values:
    a, b = p.params.a, p.params.b
    assert a is not None, "the default kernel loads by TMA"
    assert b is not None, "the default kernel loads by TMA"
    return {"A": map_values(a), "B": map_values(b)}


def _coordinates(p: Problem) -> Values:
    corner = partition.a_coords(p.work, 1, p.plan)
    map_a = p.params.a
    assert map_a is not None, "the default kernel loads by TMA"
    return {
        "coordinates": list(corner),
        "element": {"m": corner[1], "k": corner[0]},
        "address_is_in": "tensor map",
        "byte_offset": corner[0] * map_a.data_type.bits // 8
        + corner[1] * map_a.strides[0],
    }


def _tiled(p: Problem) -> Values:
    k = p.params.k_tiles * TILE_K
    found = {}
    for name, blocks, rows in (
        ("A", p.params.grid.tiles_m, TILE_M),
        ("B", p.params.grid.tiles_n, p.config.tile.n),
    ):
        whole = Layout((blocks * rows, k), (k, 1))
        tiled, _ = local_tile(whole, (rows, TILE_K), (None, None))
        found[name] = [*(mode.size for mode in tiled.modes), p.params.l]
    return found


def _scales(p: Problem) -> Values:
    found = {}
    for name, tensor_map, rows, tile_rows in (
        ("SFA", p.params.sfa, p.params.m, TILE_M),
        ("SFB", p.params.sfb, p.params.n, p.plan.sf_rows_b),
    ):
        assert tensor_map is not None  # the frames are those of scaled operands
        found[name] = map_values(tensor_map) | {
            "scales": [rows, -(-p.params.k // SF_VEC_SIZE)],
            "tile": [tile_rows, TILE_K // SF_VEC_SIZE],
        }
    return found


def _atoms(p: Problem) -> Values:
    grid, n = p.params.grid, p.config.tile.n
    tiles = [p.params.k_tiles, p.params.l]
    return {
        "mma": [MMA_M, n, MMA_K],
        "A": [[MMA_M, MMA_K], TILE_M // MMA_M, K_BLOCKS, grid.tiles_m, *tiles],
        "B": [[n, MMA_K], 1, K_BLOCKS, grid.tiles_n, *tiles],
        "descriptor_high_word": operand_descriptor(p.storage.address("a", 0)) >> 32,
        "k_block_step": K_BLOCK_STEP,
    }


def _boxes(p: Problem) -> Values:
    stages = p.plan.mainloop_stages
    base = p.storage.base
    return {
        "A": [
            list(partition.a_coords(p.work, i, p.plan)) for i in range(p.params.k_tiles)
        ],
        "smem_A": [p.storage.address("a", i) - base for i in range(stages)],
        "stage_of_k_tile": [i % stages for i in range(p.params.k_tiles)],
    }


def _masks(p: Problem) -> Values:
    found = {}
    for name, cta in (("cluster_1x1", (0, 0, 1, 1)), ("cta_2_1_of_4x4", (2, 1, 4, 4))):
        a, b = partition.multicast_masks(*cta)
        found[name] = {"A": a, "SFA": a, "B": b, "SFB": b}
    return found


def _allocator(p: Problem) -> Values:
    return {
        "cta_group": 1,
        "lanes": tmem.LANES,
        "columns": tmem.COLUMNS,
        "granularity": SLOT_COLUMNS,
        "bytes": tmem.LANES * tmem.COLUMNS * tmem.CELL_NBYTES,
    }


def _tmem_sizes(p: Problem) -> Values:
    tmem_map = p.plan.tmem
    return {
        "accumulators": len(tmem_map.accumulators),
        "accumulator_columns": p.plan.part_n,
        "columns_per_k_block": SF_COLUMNS,
        "sfa_columns": SF_COLUMNS * K_BLOCKS,
        "sfb_columns": SF_COLUMNS * K_BLOCKS * p.plan.sf_rows_b // 128,
        "scale_buffers": p.config.mainloop.scale_buffers,
    }


def _tmem_addresses(p: Problem) -> Values:
    tmem_map = p.plan.tmem
    return {
        "accumulators": list(tmem_map.accumulators),
        "sfa": list(tmem_map.sfa),
        "sfb": list(tmem_map.sfb),
        "end": tmem_map.end,
        "second_accumulator_of_warp_5": tmem.address(32, tmem_map.accumulators[-1]),
    }


SETUP: dict[str, Callable[[Problem], Values]] = {
    "1.1": _stages,
    "1.2": _mainloop_params,
    "1.3": _mainloop_barriers,
    "1.5": _release_masks,
    "1.9": _accumulator_ring,
    "2.1": _grid,
    "3.1": _operands,
    "3.2": _coordinates,
    "3.3": _tiled,
    "3.4": _scales,
    "3.5": _atoms,
    "3.6": _boxes,
    "3.7": _masks,
    "4.1": _allocator,
    "4.3": _tmem_sizes,
    "4.4": _tmem_addresses,
}
"""Constructed frames of Parts 1 to 4, by id."""
