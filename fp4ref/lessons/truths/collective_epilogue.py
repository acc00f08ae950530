"""Document 001. collective_epilogue: sizes, layouts and types of an epilogue.

Most are read from the record of CUTLASS 4.2.0; two come from this package's builder.
The constants are the document's own figures.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fp4ref.errors import TensorMapError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.epilogue_builder import EpilogueRequest, build_epilogue
from fp4ref.gemm.epilogue_builder.tma_epilogue import TmaEpilogue
from fp4ref.gemm.partition import subtile_coords
from fp4ref.gemm.plan import plan
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.tensor_map import MAX_RANK, DataType, TensorMap
from fp4ref.layout import Layout, zipped_divide
from fp4ref.lessons.record import compiled, is_assembled, is_built, line, lines
from fp4ref.lessons.truths.runs import opcode

_EXTENT, _ELEMENT_NBYTES = 2048, 2
_DIMS, _BOX = (2048, 2048, 1), (64, 64, 1)
_M_MAJOR_EXTENT = 1024
_TILE, _ACCUMULATOR_SHAPE = (128, 128), (8, 16)
_ODD_EXTENT = 2050
_FOUR_BIT_SUBTILE = (128, 32)
_SECOND_TILE = (0, 1)
_POSITION_OF_BOX = 4
_FIRST_EXAMPLE = EpilogueRequest(
    arch="sm90", tile=(128, 128, 64), c="f16", schedule="TmaWarpSpecialized"
)
_COLUMN_MAJOR_EXAMPLE = replace(_FIRST_EXAMPLE, c_layout="column", d_layout="column")
_ALIGNMENTS = (1, 2, 4, 8, 16)


def subtile_nbytes() -> int:
    """Bytes of one TMA load of a 64 x 64 subtile of half."""
    return int(compiled("sm90_epilogue", "square_transaction_nbytes"))


def subtiles() -> int:
    """What ``get_load_pipe_increment`` returns for 64 x 64 in 128 x 128."""
    return int(compiled("sm90_epilogue", "square_load_pipe_increment"))


def line_stride_nbytes() -> int:
    """Bytes from one column of a 2048 x 2048 half matrix to the next."""
    return _EXTENT * _ELEMENT_NBYTES


def _is_map(strides: int, box: int) -> bool:
    """Whether a map of the document's tensor takes so many strides and extents."""
    try:
        TensorMap(DataType.FLOAT16, 0, _DIMS, (1 << 12,) * strides, (16,) * box)
    except TensorMapError:
        return False
    return True


def strides_of_a_map() -> int:
    """Strides that a map of the tensor's rank holds: the one number it takes."""
    rank = len(_DIMS)
    (found,) = (n for n in range(MAX_RANK + 1) if _is_map(n, rank))
    return found


def box_extents() -> int:
    """Extents that the box of a map of the tensor's rank has."""
    rank = len(_DIMS)
    (found,) = (n for n in range(1, MAX_RANK + 1) if _is_map(rank - 1, n))
    return found


def map_rank() -> int:
    """Numbers of a coordinate of C's TMA tensor: its third dimension is the batch."""
    return len(compiled("sm90_epilogue", "tma_tensor_at_128_256"))


def swizzle_alignment() -> int:
    """Bytes to which a buffer with the 128-byte swizzle is aligned."""
    return int(compiled("cute_types", "swizzle_128b_alignment"))


def d_stages_with_reuse() -> int:
    """Stages of D where it reuses C's memory: those of C. Example 72b."""
    return int(compiled("sm100_72b", "d_layout_stages"))


def padded_cosize() -> int:
    """Cosize of a 64 x 64 layout whose columns are 72 apart."""
    return int(compiled("cute_types", "padded_cosize"))


def _step_along_n(tag: str, extent: int) -> int:
    """Distance of (0, 0) and (0, 1), from the mode that has the constant stride 1."""
    strides = [extent, extent]
    strides[compiled("cute_types", f"{tag}_unit_mode")] = 1
    return Layout((extent, extent), tuple(strides))((0, 1))


def m_major_step() -> int:
    """Distance of (0, 0) and (0, 1) in an M-major matrix of 1024 x 1024."""
    return _step_along_n("column_major", _M_MAJOR_EXTENT)


def row_major_step() -> int:
    """Distance of (0, 0) and (0, 1) in a row-major matrix of 2048 x 2048."""
    return _step_along_n("row_major", _EXTENT)


def mma_tiles_along_m() -> int:
    """MMA tiles along M of a tile whose accumulator has the shape (_, 8, 16)."""
    one = [t // s for t, s in zip(_TILE, _ACCUMULATOR_SHAPE, strict=True)]
    return zipped_divide(Layout(_TILE), tuple(one))[1][0].size


def valid_corner() -> int:
    """Elements of the last tile that lie inside 2050 x 2050."""
    return prod(_ODD_EXTENT % extent for extent in _TILE)


def delays_store() -> bool:
    """DelayTmaStore that the builder computes for the first example."""
    return bool(compiled("sm90_epilogue", "delay_tma_store"))


def fragment_size() -> int:
    """FragmentSize that the builder computes for subtiles of 64 x 32."""
    return int(compiled("sm90_epilogue", "fragment_size"))


def least_alignment() -> int:
    """Least AlignmentC of half that the builder's check takes."""
    names = {n: f"half_is_aligned_{n}" for n in _ALIGNMENTS}
    return min(n for n, name in names.items() if compiled("cute_types", name))


def row_swizzle_nbytes() -> int:
    """Span of the swizzle that the builder chooses for rows of 32 half elements."""
    bits, base, _ = compiled("sm90_epilogue", "swizzle")
    return int(1 << bits + base)


def prefetch_opcode() -> str:
    """PTX that prefetches a tensor map."""
    return opcode("prefetch")


def map_holds_multicast() -> bool:
    """Whether the encoder of tensor maps takes the CTAs of a multicast."""
    names = [name.lower() for name in lines("tensor_map_arguments")]
    return any("cast" in name or "mask" in name for name in names)


def producer_phase() -> int:
    """Phase of a producer before its first stage."""
    return int(lines("producer_start_state")[1])


def four_bit_subtile_nbytes() -> int:
    """Bytes of a 128 x 32 subtile of 4-bit elements in shared memory."""
    return (
        prod(_FOUR_BIT_SUBTILE) * int(compiled("cute_types", "int4_bits_in_smem")) // 8
    )


def corner_of_subtile() -> list[int]:
    """M and N of the first subtile of tile (0, 1)."""
    n, m, _ = subtile_coords(WorkTile(*_SECOND_TILE, 0), 0, plan(GemmConfig()))
    return [m, n]


def epilogue_parameters() -> int:
    """Template parameters of the specialisation for TMA on SM90."""
    return len(lines("epilogue_parameters"))


def map_in_params_nbytes() -> int:
    """Bytes of ``Params::tma_load_c``, which holds the tensor map."""
    return int(compiled("sm90_epilogue", "tma_load_c_nbytes"))


def maps_are_made_on() -> str:
    """Where ``make_tma_copy_C_sm90`` runs: host or device."""
    macro, outside_nvrtc = line("tensor_map_maker"), line("host_function_outside_nvrtc")
    qualifier = line("host_function") if macro == f"{outside_nvrtc}_RTC" else macro
    return qualifier.strip("_")


def workspace_function() -> str:
    """The function of the epilogue that is given a stream to fill the workspace."""
    return line("takes_the_stream")


def fifth_argument() -> str:
    """What ``cuTensorMapEncodeTiled`` takes fifth, after the address."""
    return lines("tensor_map_arguments")[_POSITION_OF_BOX]


def prefetch_depends_on_the_block() -> bool:
    """Whether CUTLASS's condition for the prefetch asks which CTA this is."""
    return "block" in line("prefetch_condition").lower()


def coalesced_rank() -> int:
    """Rank of mC after ``coalesce`` with a tiler of two modes."""
    return len(compiled("sm90_epilogue", "coalesced_tma_tensor_extents"))


def tma_tensor_value() -> list[int]:
    """What C's TMA tensor gives at (128, 256, 0)."""
    return list(compiled("sm90_epilogue", "tma_tensor_at_128_256"))


def commit_method() -> str:
    """Method of the full barrier by which the load pipeline commits."""
    return line("producer_commit")


def acquire_instruction() -> str:
    """PTX by which ``producer_acquire`` waits, without what follows the name."""
    assert line("producer_acquire") == "wait"
    return ".".join(line("barrier_wait").split(".")[:2])


def elect_instruction() -> str:
    """PTX of ``elect_one_sync``."""
    return line("elect_one_sync")


def stsm_opcode() -> str:
    """PTX of the copy atom that stores C's or D's fragments."""
    return ".".join(line("stsm_n").split(".")[:1])


def n_of_stsm() -> str:
    """What the N of ``STSM_N`` stands for, from what ``STSM_T`` has and it has not."""
    only_in_t = set(line("stsm_t").split(".")) - set(line("stsm_n").split("."))
    return f"not {' '.join(sorted(only_in_t))}" if only_in_t else "along n"


def group_stride_pointers() -> int:
    """Pointers that the stride of a group's layout tag has."""
    return int(compiled("cute_types", "group_stride_pointers"))


def one_bit_trait() -> str:
    """Trait whose value is 1 for an auxiliary tensor of bits."""
    return line("one_bit_auxiliary_tensor")


def named_barriers_need_hopper() -> bool:
    """Whether ptxas refuses a named barrier below sm_90."""
    return not is_assembled("barrier_15")


def second_example_builds() -> bool:
    """Whether CUTLASS takes subtiles of 64 x 64 with a cooperative schedule."""
    return is_built("sm90_cooperative_64x64")


def prefetch_is_hoppers_alone() -> bool:
    """Whether ptxas refuses ``prefetch.tensormap`` for sm_100."""
    return not is_assembled("prefetch_tensormap_sm_100")


def subtile_index_is_of() -> str:
    """What the kernel's subtile index belongs to."""
    return line("subtile_of_a_work_tile").partition("_")[0]


def batches_of_a_group() -> int:
    """L of one group of a grouped GEMM."""
    return int(line("batches_of_a_group"))


def _built(asked: EpilogueRequest) -> TmaEpilogue:
    """Return the epilogue of an example that goes by TMA."""
    epilogue = build_epilogue(asked)
    assert isinstance(epilogue, TmaEpilogue)
    return epilogue


def column_major_store() -> str:
    """Copy operation by which the builder stores D of the column-major example."""
    return _built(_COLUMN_MAJOR_EXAMPLE).copy_r2s


def first_example_load() -> str:
    """Copy operation by which C of the first example is read from shared memory."""
    return _built(_FIRST_EXAMPLE).copy_s2r
