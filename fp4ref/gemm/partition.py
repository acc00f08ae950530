"""Part 3. partition: tensor maps of the problem, and this tile's box of each tensor.

A TMA "tensor" is a grid of coordinates; only the map holds the pointer. Coordinates are
element offsets, fastest dimension first. Scale factors are copied as 16-bit elements:
256 of them are one 512-byte atom of 128 rows and four scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.tile_grid import TileGrid, WorkTile
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import (
    PANEL_NBYTES,
    Layout,
    SwizzleMode,
    local_tile,
    sf_nbytes,
    sf_offset,
)
from fp4ref.layout.scale_factors import ATOM_ROWS
from fp4ref.numerics import ScaleFormat

ATOM_ELEMENTS = 256
"""UINT16 elements of one scale atom."""

Coords = tuple[int, ...]


def gemm_params(
    plan: Plan,
    shape: tuple[int, int, int, int],
    at: Mapping[str, int],
    scale_format: ScaleFormat | None,
    alpha: float,
    arguments: Mapping[str, Any] = MappingProxyType({}),
) -> GemmParams:
    """Return the kernel's parameters for tensors at these addresses.

    Parameters
    ----------
    shape
        (L, M, N, K) of what the kernel multiplies.
    at
        Global address by tensor name; SFD, bias and the workspace of split-K may be
        missing, and C, D, SFA and SFB where the kernel has none.
    arguments
        What the formula's nodes are passed, by slot.
    """
    batches, m, n, k = shape
    config = plan.config
    has_c = config.epilogue.c_format is not None
    has_d = config.epilogue.d_format is not None
    box_a = plan.tile_k, plan.tile_m // plan.a_parts
    box_b = plan.tile_k, plan.b_rows // plan.b_parts
    sfa = sfb = None
    if plan.sf_atoms:
        sfa = scale_map(at["SFA"], m, k, batches, plan, plan.sf_rows_a, plan.a_parts)
        sfb = scale_map(at["SFB"], n, k, batches, plan, plan.sf_rows_b, plan.sfb_parts)
    a = b = None
    if not plan.by_cp_async:
        a = operand_map(at["A"], m, k, batches, box_a, plan.a_type)
        b = operand_map(at["B"], n, k, batches, box_b, plan.b_type)
    stored = (n, m) if plan.transposes else (m, n)
    return GemmParams(
        m=m,
        n=n,
        k=k,
        l=batches,
        tile_k=plan.tile_k,
        transposes=plan.transposes,
        scale_format=scale_format,
        alpha=alpha,
        a=a,
        b=b,
        sfa=sfa,
        sfb=sfb,
        c=output_map(at["C"], *stored, batches, plan.c_type, plan) if has_c else None,
        d=output_map(at["D"], *stored, batches, plan.d_type, plan) if has_d else None,
        sfd=at.get("SFD", 0),
        bias=at.get("bias", 0),
        a_address=at["A"],
        b_address=at["B"],
        grid=TileGrid.of(m, n, batches, config),
        workspace=at.get("workspace", 0),
        d_address=at["D"] if plan.addresses_d else 0,
        arguments=arguments,
    )


def operand_map(
    address: int,
    rows: int,
    k: int,
    batches: int,
    box: tuple[int, int],
    data_type: DataType = DataType.U4_ALIGN8B,
) -> TensorMap:
    """Tensor map of A or B, K-major without gaps; `box` is (K, rows). Frame 3.1."""
    pitch = k * data_type.bits // 8
    return TensorMap(
        data_type,
        address,
        (k, rows, batches),
        (pitch, rows * pitch),
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
    """Tensor map of SFA or SFB: atoms along K, blocks of 128 rows. Frame 3.4.

    The box is one of `parts`, made of atoms along K; where these are too few, of row
    blocks, and then of pieces of an atom.
    """
    atoms_k, blocks = -(-k // plan.sf_atom_k), -(-rows // ATOM_ROWS)
    atom = 2 * ATOM_ELEMENTS
    return TensorMap(
        DataType.UINT16,
        address,
        (ATOM_ELEMENTS, atoms_k, blocks, batches),
        (atom, atom * atoms_k, atom * atoms_k * blocks),
        scale_box(plan.sf_atoms, box_rows // ATOM_ROWS, parts),
    )


def scales_of(plan: Plan, blocks: int) -> Coords:
    """Extents of the scales of a stage with `blocks` row blocks, as TMA counts."""
    return ATOM_ELEMENTS, plan.sf_atoms, blocks, 1


def scale_box(atoms: int, blocks: int, parts: int) -> Coords:
    """Box of one of `parts` of a stage's scales: the slowest in memory is cut first.

    Source: CUTLASS ``make_tma_copy``, which cuts the box of a multicast so.
    """
    along_k = min(parts, atoms)
    of_blocks = min(parts // along_k, blocks)
    of_atom = parts // along_k // of_blocks
    return ATOM_ELEMENTS // of_atom, atoms // along_k, blocks // of_blocks, 1


def part_coords(corner: Coords, nth: int, box: Coords, whole: Coords) -> Coords:
    """Corner of the `nth` box of a whole one, as they follow each other in memory.

    Where more than one extent is cut, the first is fastest, then the last, because the
    atoms along K are slowest.
    """
    cuts = [w // b for w, b in zip(whole, box, strict=True)]
    at = [0] * len(box)
    for i in (0, *range(len(box) - 1, 0, -1)):
        nth, at[i] = divmod(nth, cuts[i])
    return tuple(c + a * b for c, a, b in zip(corner, at, box, strict=True))


def pitch_elements(n: int, data_type: DataType) -> int:
    """Row pitch of C or D: TMA's strides are multiples of 16 bytes."""
    per_16_bytes = 128 // data_type.bits
    return -(-n // per_16_bytes) * per_16_bytes


def output_map(
    address: int, m: int, n: int, batches: int, data_type: DataType, plan: Plan
) -> TensorMap:
    """Tensor map of C or D: rows with a padded pitch, boxes of a subtile or a part."""
    pitch_nbytes = pitch_elements(n, data_type) * data_type.bits // 8
    box_row_nbytes = min(plan.store_n * data_type.bits // 8, PANEL_NBYTES)
    columns = n + n % 2 if data_type is DataType.U4_ALIGN8B else n
    return TensorMap(
        data_type,
        address,
        (columns, m, batches),
        (pitch_nbytes, m * pitch_nbytes),
        (box_row_nbytes * 8 // data_type.bits, plan.subtile_box_rows, 1),
        swizzle=SwizzleMode.of_span(box_row_nbytes),
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


def subtile_coords(
    work: WorkTile, subtile: int, plan: Plan, box: int = 0, box_n: int = 0
) -> Coords:
    """Corner of a subtile's box of C or D. Frame 7.8.

    A box is a part of N, or the rows of a warp, which are columns of a transposed tile.
    Where a box has `box_n` columns of a longer row, the boxes of the next columns
    follow.
    """
    panel, box = divmod(box, plan.subtile_boxes)
    part, tile_row = divmod(box * plan.subtile_box_rows, plan.tile_m)
    column = work.n * plan.tile_n + part * plan.part_n + subtile * plan.subtile_n
    row = work.m * plan.tile_m + tile_row
    if plan.transposes:
        return row, column, work.l
    return column + panel * box_n, row, work.l


def sfd_address(params: GemmParams, row: int, column: int, batch: int) -> int:
    """Global address of the scale of (row, 16-column block) of D."""
    columns = params.sfd_columns
    per_batch = sf_nbytes(params.d_rows, columns)
    return params.sfd + batch * per_batch + sf_offset(row, column, columns)
