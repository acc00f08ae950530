"""Part 1. half_rows: which MMAs have 64 rows in an SM, and why this kernel may not.

PTX's data path layouts: with 128 rows a pair has 64 in each CTA and the halves of N in
lanes 0 to 63 and 64 to 127 (B); one SM with 64 rows has 16 in each lane quarter (F).
"""

from __future__ import annotations

from fp4ref.gemm.plan.values import Plan

HALF = 64
"""Rows of an SM, of 128."""


def scaled_rows(p: Plan) -> str | None:
    """No block-scaled MMA of one SM has 64 rows."""
    if p.config.tile.m != HALF or not p.sf_atoms:
        return None
    return (
        f"tile_m={HALF} with {p.a_format}: kind::{p.kind} has M=128 with one SM, and "
        "128 or 256 with a pair. Use tile_m=128"
    )


def pair_scales(p: Plan) -> str | None:
    """CuTe's ``ScaleFactorDuplicated2by2`` needs what ``tcgen05.cp`` cannot cut.

    The two halves of SFB lie in different lane quarters and the same columns, and so
    would the halves of an atom of 128 rows, whose rows of 16 bytes have both. SFA of
    the peer starts in the middle of an atom.
    """
    if p.column_parts == 1 or not p.sf_atoms:
        return None
    return (
        f"tile_m=128 with cta_group=2 and {p.a_format}: tcgen05.cp copies scale atoms "
        "of 128 rows whole, and such a pair needs each half in lanes of its own; "
        "CUTLASS's builder takes 256 rows too. Use tile_m=256"
    )


def half_lanes(p: Plan) -> str | None:
    """Layout F leaves half of each lane quarter empty."""
    if p.config.tile.m != HALF or p.sf_atoms:
        return None
    return (
        f"tile_m={HALF} with {p.a_format}: the MMA writes 16 lanes of each quarter, "
        "and this kernel's epilogue reads all 32. Use tile_m=128"
    )
