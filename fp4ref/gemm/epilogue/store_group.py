"""store_group: how many halves may still be read when the next one is written."""

from __future__ import annotations

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS


def pending_halves(e: Epilogue) -> int:
    """Return how many groups of copies a half need not wait for.

    A warp with all halves writes one while the others are read. Where two warps share a
    quarter some have one half alone, which they wait for, and the others do so too.
    """
    plan = e.storage.plan
    return plan.staging_halves - 1 if plan.epilogue_warps == EPILOGUE_WARPS else 0
