"""scales: the scale factors of A and B, from their tensor maps to TMEM."""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell
import cutlass.utils.blockscaled_layout as scale_layouts
from cutlass.cute.nvgpu import cpasync, tcgen05
from operands import EVERY, Load, partition
from tiling import BLOCK, STAGES

KIND = cutlass.Float8E4M3FN


class Copy(NamedTuple):
    """A copy of scales to TMEM, and the field of the MMA that is told of them."""

    copy: Any
    source: Any
    target: Any
    field: Any
    tmem: Any


def tensor_maps(tiling, tiling_of_sfb, ctas, shapes, pointers):
    """Return the atom, coordinates and layout of SFA and SFB, and a stage's bytes."""
    mma, tile, ranks = tiling
    layouts = [scale_layouts.tile_atom_to_shape_SF(shape, BLOCK) for shape in shapes]
    sfa, sfb = map(cute.make_tensor, pointers, layouts)
    smem_sfa = scale_layouts.make_smem_layout_sfa(mma, tile, BLOCK, STAGES)
    smem_sfb = scale_layouts.make_smem_layout_sfb(mma, tile, BLOCK, STAGES)
    stage_sfa, stage_sfb = (cute.slice_(x, (*EVERY, 0)) for x in (smem_sfa, smem_sfb))
    load_sfa, from_sfa = cute.nvgpu.make_tiled_tma_atom_A(
        blackwell.cluster_shape_to_tma_atom_A((ctas, 1), mma.thr_id),
        *(sfa, stage_sfa, tile, mma, ranks.shape),
        internal_type=cutlass.Int16,
    )
    of_sfb = tiling_of_sfb
    load_sfb, from_sfb = cute.nvgpu.make_tiled_tma_atom_B(
        blackwell.cluster_shape_to_tma_atom_SFB((ctas, 1), mma.thr_id),
        *(sfb, stage_sfb, of_sfb.tile, of_sfb.mma, of_sfb.ranks.shape),
        internal_type=cutlass.Int16,
    )
    nbytes = cute.size_in_bytes(KIND, stage_sfa) + cute.size_in_bytes(KIND, stage_sfb)
    return (load_sfa, from_sfa, smem_sfa, load_sfb, from_sfb, smem_sfb), nbytes


def stages(smem, maps):
    """Allocate the stages of SFA and of SFB in shared memory."""
    return [
        smem.allocate_tensor(element_type=KIND, layout=layout, byte_alignment=128)
        for layout in (maps[2], maps[5])
    ]


def loads(tilings, places, maps, into, mask_a):
    """Return the loads of SFA and of SFB, by the tiling and place of A and of SFB."""
    load_sfa, from_sfa, _, load_sfb, from_sfb, _ = maps
    (mma, (rows, columns, depth), _), (mma_of_sfb, _, ranks_of_sfb) = tilings
    place, place_of_sfb = places
    parts_sfa = mma.get_slice(place.peer).partition_A(
        cute.local_tile(from_sfa, (rows, depth), EVERY)
    )
    parts_sfb = mma_of_sfb.get_slice(place.peer).partition_B(
        cute.local_tile(from_sfb, (columns, depth), EVERY)
    )
    to_sfa, tiles_sfa = partition(
        load_sfa, place.rank[2], cute.make_layout(1), into[0], parts_sfa
    )
    ranks = cute.make_layout(cute.slice_(ranks_of_sfb, (0, None, 0, 0)).shape)
    to_sfb, tiles_sfb = partition(
        load_sfb, place_of_sfb.rank[1], ranks, into[1], parts_sfb
    )
    to_sfa, to_sfb = cute.filter_zeros(to_sfa), cute.filter_zeros(to_sfb)
    tiles_sfa = cute.filter_zeros(tiles_sfa)[(None, place.tile_m, None, 0)]
    tiles_sfb = cute.filter_zeros(tiles_sfb)[(None, place.tile_n, None, 0)]
    mask = None
    if mask_a is not None:
        mask = cpasync.create_tma_multicast_mask(
            ranks_of_sfb, place_of_sfb.rank, mcast_mode=1
        )
    return (
        Load(load_sfa, tiles_sfa, to_sfa, mask_a),
        Load(load_sfb, tiles_sfb, to_sfb, mask),
    )


def copies(tiling, group, maps, stages, base, sums):
    """Return the copies of SFA and of SFB to TMEM, to the columns after the sums."""
    shape, one = (tiling.mma, tiling.tile, BLOCK), (*EVERY, 0)
    beyond = tcgen05.find_tmem_tensor_col_offset(sums)
    tmem_sfa = cute.make_tensor(
        cute.recast_ptr(base + beyond, dtype=KIND),
        scale_layouts.make_tmem_layout_sfa(*shape, cute.slice_(maps[2], one)),
    )
    beyond = beyond + tcgen05.find_tmem_tensor_col_offset(tmem_sfa)
    tmem_sfb = cute.make_tensor(
        cute.recast_ptr(base + beyond, dtype=KIND),
        scale_layouts.make_tmem_layout_sfb(*shape, cute.slice_(maps[5], one)),
    )
    atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(group), KIND)
    return (
        _copy(atom, stages[0], tcgen05.Field.SFA, tmem_sfa),
        _copy(atom, stages[1], tcgen05.Field.SFB, tmem_sfb),
    )


def _copy(atom, stages, field, tmem):
    copy = tcgen05.make_s2t_copy(atom, cute.filter_zeros(tmem))
    alone = copy.get_slice(0)
    source = tcgen05.get_s2t_smem_desc_tensor(
        copy, alone.partition_S(cute.filter_zeros(stages))
    )
    return Copy(copy, source, alone.partition_D(cute.filter_zeros(tmem)), field, tmem)
