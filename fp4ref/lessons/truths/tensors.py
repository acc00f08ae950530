"""Part 3. tensors: strides, coordinates, scale tensors, the MMA atom, multicast."""

from __future__ import annotations

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.partition import a_coords, multicast_masks
from fp4ref.gemm.plan import plan
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.lessons.record import compiled
from fp4ref.lessons.truths.runs import TILE, shown

_CTA, _CLUSTER_M, _CLUSTER_N = (2, 1), 4, 4


def strides_of_a() -> list[int]:
    """Strides of A (M, K) in elements."""
    bits_of_row = 8 * int(shown("3.1")["A"]["stride_bytes"][0])
    return [bits_of_row // 4, 1]


def corner_of_k_tile_1() -> list[int]:
    """What A's TMA tensor gives at the corner of k-tile 1."""
    return list(a_coords(WorkTile(*TILE, 0), 1, plan(GemmConfig())))


def scales_of_a() -> list[int]:
    """Rows and columns of SFA."""
    return list(shown("3.4")["SFA"]["scales"])


def scales_of_a_tile() -> list[int]:
    """Rows and columns of SFA in one tile of one k-tile."""
    return list(shown("3.4")["SFA"]["tile"])


def mma_atom() -> list[int]:
    """M, N and K of one MMA."""
    return list(shown("3.5")["mma"])


def mask_a() -> int:
    """CTAs that share A with CTA (2, 1) of a 4 x 4 cluster."""
    return multicast_masks(*_CTA, _CLUSTER_M, _CLUSTER_N)[0]


def mask_b() -> int:
    """CTAs that share B with CTA (2, 1) of a 4 x 4 cluster."""
    return multicast_masks(*_CTA, _CLUSTER_M, _CLUSTER_N)[1]


def mode_2_runs_along() -> str:
    """Along what the CTAs of ``create_tma_multicast_mask<2>`` lie, M or N."""
    mask = compiled("cute_types", "mask_of_mode_2")
    ctas = [cta for cta in range(_CLUSTER_M * _CLUSTER_N) if mask >> cta & 1]
    return "M" if len({cta % _CLUSTER_M for cta in ctas}) > 1 else "N"
