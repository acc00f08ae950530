"""staged_rows: the halves of a warp, and where their rows lie in shared memory."""

from __future__ import annotations

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS, WarpRole
from fp4ref.gemm.tile_grid import WorkTile


def halves_of(e: Epilogue) -> range:
    """Return the halves that this warp brings: all, or one of two.

    Two warps of a lane quarter share its rows: each has one half.
    """
    plan = e.storage.plan
    number = e.warp.index - plan.first_warp(WarpRole.EPILOGUE)
    turn, quarter = divmod(number, EPILOGUE_WARPS)
    shared = quarter + EPILOGUE_WARPS < plan.epilogue_warps
    return range(turn, plan.staging_halves, 2 if shared else 1)


def half_buffer(e: Epilogue, half: int) -> int:
    """Shared address of this warp's rows of a half."""
    nbytes = e.lane * e.storage.plan.staging_row_nbytes
    return e.storage.address("d_subtile", half) + nbytes


def half_column(e: Epilogue, work: WorkTile, half: int) -> int:
    """Return the first column of D of a half."""
    return e.columns(work, half * e.storage.plan.half_subtiles).start
