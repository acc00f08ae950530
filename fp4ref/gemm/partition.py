"""Part 3. partition: tensor maps of the problem, and this tile's box of each tensor.

A TMA "tensor" is a grid of coordinates; only the map holds the pointer. Coordinates are
element offsets, fastest dimension first. Scale factors are copied as 16-bit elements:
256 of them are one 512-byte atom of 128 rows and four scales.
"""

from __future__ import annotations

from collections.abc import Mapping

from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.plan.epilogue_values import subtile_swizzle
from fp4ref.gemm.tile_grid import TileGrid, WorkTile
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import Layout, SwizzleMode, local_tile, sf_nbytes, sf_offset
from fp4ref.layout.scale_factors import ATOM_ROWS
from fp4ref.numerics import ScaleFormat

ATOM_ELEMENTS = 256
"""UINT16 elements of one scale atom."""

Coords = tuple[int, ...]


def gemm_params(
    plan: Plan,
    shape: tuple[int, int, int, int],
    at: Mapping[str, int],
    scale_format: ScaleFormat,
    alpha: float,
) -> GemmParams:
    """Return the kernel's parameters for tensors at these addresses.

    Parameters
    ----------
    shape
        (L, M, N, K).
    at
        Global address by tensor name; SFD, bias and the workspace of split-K may be
        missing, and C where the kernel has none.
    """
    batches, m, n, k = shape
    config = plan.config
    has_c = config.epilogue.c_format is not None
    return GemmParams(
        m=m,
        n=n,
        k=k,
        l=batches,
        tile_k=plan.tile_k,
        scale_format=scale_format,
        alpha=alpha,
        a=operand_map(
            at["A"], m, k, batches, (plan.tile_k, plan.tile_m // plan.a_parts)
        ),
        b=operand_map(
            at["B"], n, k, batches, (plan.tile_k, plan.b_rows // plan.b_parts)
        ),
        sfa=scale_map(at["SFA"], m, k, batches, plan, plan.sf_rows_a, plan.a_parts),
        sfb=scale_map(at["SFB"], n, k, batches, plan, plan.sf_rows_b, plan.sfb_parts),
        c=output_map(at["C"], m, n, batches, plan.c_type, plan) if has_c else None,
        d=output_map(at["D"], m, n, batches, plan.d_type, plan),
        sfd=at.get("SFD", 0),
        bias=at.get("bias", 0),
        grid=TileGrid.of(m, n, batches, config),
        workspace=at.get("workspace", 0),
    )


def operand_map(
    address: int, rows: int, k: int, batches: int, box: tuple[int, int]
) -> TensorMap:
    """Tensor map of A or B: packed E2M1, K-major; `box` is (K, rows). Frame 3.1."""
    return TensorMap(
        DataType.U4_ALIGN8B,
        address,
        (k, rows, batches),
        (k // 2, rows * k // 2),
        (*box, 1),
        swizzle=SwizzleMode.B128,
    )


def scale_map(
    address: int,
    rows: int,
    k: int,
    batches: int,
    plan: Plan,
    box_rows: int,
    parts: int = 1,
) -> TensorMap:
    """Tensor map of SFA or SFB: whole atoms along K, blocks of 128 rows. Frame 3.4."""
    atoms_k, blocks = -(-k // plan.sf_atom_k), -(-rows // ATOM_ROWS)
    atom = 2 * ATOM_ELEMENTS
    return TensorMap(
        DataType.UINT16,
        address,
        (ATOM_ELEMENTS, atoms_k, blocks, batches),
        (atom, atom * atoms_k, atom * atoms_k * blocks),
        (ATOM_ELEMENTS, plan.sf_atoms // parts, box_rows // ATOM_ROWS, 1),
    )


def pitch_elements(n: int, data_type: DataType) -> int:
    """Row pitch of C or D: TMA's strides are multiples of 16 bytes."""
    per_16_bytes = 128 // data_type.bits
    return -(-n // per_16_bytes) * per_16_bytes


def output_map(
    address: int, m: int, n: int, batches: int, data_type: DataType, plan: Plan
) -> TensorMap:
    """Tensor map of C or D: row-major with a padded pitch, boxes of a subtile."""
    pitch_nbytes = pitch_elements(n, data_type) * data_type.bits // 8
    columns = n + n % 2 if data_type is DataType.U4_ALIGN8B else n
    return TensorMap(
        data_type,
        address,
        (columns, m, batches),
        (pitch_nbytes, m * pitch_nbytes),
        (plan.subtile_n, plan.tile_m, 1),
        swizzle=subtile_swizzle(data_type),
    )


def tile_operand(
    rows: int, k: int, row_tile: int, k_tile: int, box: tuple[int, int]
) -> Layout:
    """Layout of one (rows, K) box of a K-major operand. Frames 3.3 and 5.2."""
    tensor = Layout((rows, k), (k, 1))
    tile, _ = local_tile(tensor, box, (row_tile, k_tile))
    return tile


def multicast_masks(
    rank_m: int, rank_n: int, cluster_m: int, cluster_n: int
) -> tuple[int, int]:
    """CTAs that share this CTA's box of A, and of B, as bit masks. Frames 1.5 and 3.7.

    CTA number = m + cluster_m * n. The CTAs of one row of tiles share A and SFA, those
    of one column B and SFB; a stage is released to both at once. Without a cluster both
    masks are 1. Source: CUTLASS ``create_tma_multicast_mask``.
    """
    mask_a = sum(1 << rank_m + cluster_m * n for n in range(cluster_n))
    mask_b = sum(1 << m + cluster_m * rank_n for m in range(cluster_m))
    return mask_a, mask_b


def a_coords(work: WorkTile, k_tile: int, plan: Plan) -> Coords:
    """Corner of A's box. Frame 5.4.4."""
    return k_tile * plan.tile_k, work.m * plan.tile_m, work.l


def b_coords(work: WorkTile, k_tile: int, plan: Plan, half: int = 0) -> Coords:
    """Corner of B's box; of a pair, of the leader's half or the peer's. Frame 5.4.5."""
    row = work.n * plan.tile_n + half * plan.b_rows
    return k_tile * plan.tile_k, row, work.l


def sfa_coords(work: WorkTile, k_tile: int, plan: Plan) -> Coords:
    """Corner of SFA's box, in atoms. Frame 5.4.6."""
    return 0, k_tile * plan.sf_atoms, work.m, work.l


def sfb_coords(work: WorkTile, k_tile: int, plan: Plan) -> Coords:
    """Corner of SFB's box: the 128-row block that holds the tile. Frame 5.4.7."""
    block = work.n * plan.tile_n // ATOM_ROWS
    return 0, k_tile * plan.sf_atoms, block, work.l


def subtile_coords(work: WorkTile, subtile: int, plan: Plan) -> Coords:
    """Corner of a subtile's box of C or D. Frame 7.8."""
    column = work.n * plan.tile_n + subtile * plan.subtile_n
    return column, work.m * plan.tile_m, work.l


def sfd_address(params: GemmParams, row: int, column: int, batch: int) -> int:
    """Global address of the scale of (row, 16-column block) of D."""
    columns = params.sfd_columns
    per_batch = sf_nbytes(params.m, columns)
    return params.sfd + batch * per_batch + sf_offset(row, column, columns)
