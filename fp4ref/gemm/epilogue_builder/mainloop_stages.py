"""mainloop_stages: how many stages of A and B fit beside an epilogue.

::

    SM90   (232,448 - epilogue)            / (A + B + barriers), in steps of 128 bytes
    SM100  (232,448 - kernel - epilogue)   / (A + B + SFA + SFB + barriers)

Source: CUTLASS ``sm90_gmma_builder.inl: compute_stage_count_or_override``;
``sm100_umma_builder.inl``, ``sm100_blockscaled_umma_builder.inl`` and
``sm100_pipeline_carveout.inl`` of 4.2.0, where a stage's barriers take 16 bytes.
"""

from __future__ import annotations

from fp4ref.gemm.epilogue_builder.epilogue_tile import cta_tile
from fp4ref.gemm.epilogue_builder.request import EpilogueRequest
from fp4ref.gemm.epilogue_builder.storage import rounded
from fp4ref.numerics.elements import BLOCKS, element

SMEM_NBYTES = 232_448
"""Shared memory that a CTA of either architecture can have: 227 KiB."""
_BARRIERS_NBYTES = 16
_SM90_STEP = 128
_SCALE_ROWS = 128
"""Rows of an atom of scales: fewer rows of B take a whole one."""
_TILE_ANSWERS = 2
"""Stages of the scheduler's pipeline."""


def mainloop_stages(asked: EpilogueRequest, epilogue_nbytes: int) -> int | None:
    """Return the stages of the mainloop, or None with arrays of pointers.

    A kernel for those keeps tensor maps and a longer queue of tiles besides. 0 is an
    epilogue beside which CUTLASS's mainloop does not compile.
    """
    if asked.chosen.ptr_array:
        return None
    stage = stage_nbytes(asked)
    if asked.arch == "sm90":
        stage = rounded(stage, _SM90_STEP) + _BARRIERS_NBYTES
        free = SMEM_NBYTES - rounded(epilogue_nbytes, _SM90_STEP)
        return max(free, 0) // stage
    free = SMEM_NBYTES - kernel_nbytes(accumulator_stages(asked)) - epilogue_nbytes
    return max(free, 0) // (stage + _BARRIERS_NBYTES)


def stage_nbytes(asked: EpilogueRequest) -> int:
    """Return the bytes of A, B and their scales in one stage.

    With a pair of CTAs each of them has half of A's rows and half of B's. Without
    scales SM100 keeps 4- and 6-bit operands in bytes.
    """
    m, n, k = cta_tile(asked)
    name = asked.format_of_operands
    width = 8 if name == "s8" else element(name).bits
    if name not in BLOCKS and asked.arch == "sm100":
        width = max(width, 8)
    if name in BLOCKS and name.startswith(("mxfp8", "mxfp6")):
        width = 8
    rows_of_b = n // asked.chosen.cta_group
    nbytes = (m + rows_of_b) * k * width // 8
    if name in BLOCKS:
        # A CTA of a pair needs the scales of all of B's rows.
        rows = rounded(m, _SCALE_ROWS) + rounded(n, _SCALE_ROWS)
        nbytes += rows * k // BLOCKS[name].vec_size
    return nbytes


def accumulator_stages(asked: EpilogueRequest) -> int:
    """Return SM100's accumulators in TMEM: 128 lanes of 512 columns."""
    m, n, _ = cta_tile(asked)
    if asked.block_scaled:
        return 1 if n == 256 else 2
    if asked.chosen.cta_group == 2 or m > 64:
        return min(4, 128 * 512 // (m * n))
    return min(4, 512 // n * 2)


def kernel_nbytes(accumulators: int) -> int:
    """Return what SM100's kernel keeps beside mainloop and epilogue.

    Barriers of accumulators, tiles and throttle, the load order, the release of TMEM,
    the scheduler's answers, and an address in TMEM for each of them.
    """
    load_order, dealloc, answer, address = 16, 8, 16, 4
    of_tiles = _TILE_ANSWERS * (2 * _BARRIERS_NBYTES + answer + address)
    return accumulators * _BARRIERS_NBYTES + of_tiles + load_order + dealloc
