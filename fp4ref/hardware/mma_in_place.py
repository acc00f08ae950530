"""mma_in_place: a block-scaled MMA of one SM on the bytes where they lie.

A loop takes A and B out of shared memory and the scales out of TMEM, and adds to the
accumulator's cells. It does the rows that are exact in float32, and leaves the others
to `tcgen05`, which reads each operand. Each check that such a read makes is made here
too; where one does not pass, nothing is done, and the read finds the fault.
"""

from __future__ import annotations

from fp4ref.hardware.instr_descriptor import InstrDescriptor
from fp4ref.hardware.mma_operands import Scales, Share, Tile
from fp4ref.hardware.tensor_memory import CELL_NBYTES, LANE_NBYTES
from fp4ref.numerics import compiled
from fp4ref.numerics.factors import Bools
from fp4ref.numerics.float32_step import PlacedStep, add_placed


def multiply_in_place(share: Share, i: InstrDescriptor, count: int) -> Bools | None:
    """Add an MMA to D, row by row where that is exact in float32.

    Parameters
    ----------
    count
        Scales of a row.

    Returns
    -------
    (M,) or None
        The rows that are left as they were, or +0 without an input; None if this is
        not for the loop, and nothing was done.
    """
    a, b, d, (sfa, sfb) = share.a, share.b, share.d, share.scales
    if len(d.blocks) > 1 or not all(map(_is_plain, (a, b))):
        return None
    if not (_are_written(sfa) and _are_written(sfb)):
        return None
    cells = d.tmem.in_place(d.blocks[0], d.enable_input)
    if cells is None or not compiled.AVAILABLE:
        return None
    lane, column = _place(d.blocks[0].start)
    if not d.enable_input:
        cells[lane : lane + a.rows, column : column + b.rows] = 0
    of_scales = [_place(each.where.start)[1] for each in (sfa, sfb)]
    step = PlacedStep(
        a.smem.data,
        (a.chunks, b.chunks),
        d.tmem.cells,
        (of_scales[0], of_scales[1]),
        (i.a_sf_id, i.b_sf_id),
        count,
        (i.negate_a, i.negate_b),
        i.scale_format,
    )
    return add_placed(step, cells, (lane, column))


def _is_plain(tile: Tile) -> bool:
    """Whether a tile may be taken as it lies, and no trace wants to see it."""
    smem = tile.smem
    if smem.recorder is not None or smem.may_be_marked(tile.where):
        return False
    smem.guard(tile.where, False)
    return smem.is_written(tile.where)


def _are_written(scales: Scales) -> bool:
    """Whether all four lane quarters have scales."""
    scales.tmem.guard(scales.where, False)
    return scales.parts == 1 and scales.tmem.is_written(scales.where)


def _place(start: int) -> tuple[int, int]:
    """Lane and column of a byte of TMEM."""
    lane, byte = divmod(start, LANE_NBYTES)
    return lane, byte // CELL_NBYTES
