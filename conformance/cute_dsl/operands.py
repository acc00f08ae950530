"""operands: A and B, from their tensor maps to what an MMA is given."""

from typing import Any, NamedTuple

import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell
from cutlass.cute.nvgpu import cpasync
from tiling import STAGES

EVERY = (None, None, None)


class Load(NamedTuple):
    """TMA loads of one tensor: the tiles along K, the stages, and who gets them."""

    atom: Any
    tiles: Any
    stages: Any
    mask: Any


def matrix(pointer, rows, columns, multiple):
    """Return rows one after the other, of so many numbers, in a batch of one."""
    pitch = cute.assume(columns, multiple)
    layout = cute.make_layout(
        (rows, pitch, 1), stride=(pitch, 1, cute.assume(rows * columns, multiple))
    )
    return cute.make_tensor(pointer, layout)


def tensor_maps(tiling, kind, ctas, a, b):
    """Return the atom, coordinates and layout of A and of B, and a stage's bytes."""
    mma, tile, ranks = tiling
    smem_a = blackwell.make_smem_layout_a(mma, tile, kind, STAGES)
    smem_b = blackwell.make_smem_layout_b(mma, tile, kind, STAGES)
    stage_a, stage_b = (cute.slice_(x, (*EVERY, 0)) for x in (smem_a, smem_b))
    load_a, from_a = cute.nvgpu.make_tiled_tma_atom_A(
        blackwell.cluster_shape_to_tma_atom_A((ctas, 1), mma.thr_id),
        *(a, stage_a, tile, mma, ranks.shape),
    )
    load_b, from_b = cute.nvgpu.make_tiled_tma_atom_B(
        blackwell.cluster_shape_to_tma_atom_B((ctas, 1), mma.thr_id),
        *(b, stage_b, tile, mma, ranks.shape),
    )
    nbytes = cute.size_in_bytes(kind, stage_a) + cute.size_in_bytes(kind, stage_b)
    return (load_a, from_a, smem_a, load_b, from_b, smem_b), nbytes


def stages(smem, kind, maps):
    """Allocate the stages of A and of B in shared memory."""
    return [
        smem.allocate_tensor(
            element_type=kind,
            layout=layout.outer,
            byte_alignment=128,
            swizzle=layout.inner,
        )
        for layout in (maps[2], maps[5])
    ]


def parts(tiling, peer, maps, out):
    """Return a peer's parts of every tile of A, of B and of D."""
    mine, (rows, columns, depth) = tiling.mma.get_slice(peer), tiling.tile
    return (
        mine.partition_A(cute.local_tile(maps[1], (rows, depth), EVERY)),
        mine.partition_B(cute.local_tile(maps[4], (columns, depth), EVERY)),
        mine.partition_C(cute.local_tile(out, (rows, columns), EVERY)),
    )


def loads(place, ranks, maps, parts, into, pair):
    """Return the loads of A and of B; what a CTA of a pair loads, others get too."""
    alone = cute.make_layout(1)
    to_a, tiles_a = partition(maps[0], place.rank[2], alone, into[0], parts[0])
    to_b, tiles_b = partition(maps[3], place.rank[1], alone, into[1], parts[1])
    tiles_a = tiles_a[(None, place.tile_m, None, 0)]
    tiles_b = tiles_b[(None, place.tile_n, None, 0)]
    mask_a, mask_b = (
        cpasync.create_tma_multicast_mask(ranks, place.rank, mcast_mode=mode)
        if pair
        else None
        for mode in (2, 1)
    )
    return Load(maps[0], tiles_a, to_a, mask_a), Load(maps[3], tiles_b, to_b, mask_b)


def partition(atom, rank, ranks, into, parts):
    """Return what of the stages, and of the tensor, one CTA's loads are about."""
    return cpasync.tma_partition(
        atom, rank, ranks, cute.group_modes(into, 0, 3), cute.group_modes(parts, 0, 3)
    )
