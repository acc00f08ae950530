"""rules: each architecture's rule in words, side by side: what a reason quotes."""

from __future__ import annotations

from typing import NamedTuple


class Rules(NamedTuple):
    """The rules in which the architectures differ."""

    automatic: str
    epilogue_tile: str
    fragment: str
    reuse: str
    delay: str
    atom: str
    store: str
    accumulator: str


RULES = {
    "sm90": Rules(
        automatic="auto stores without shared memory, which every mainloop can take",
        epilogue_tile=(
            "64 rows, 128 if cooperative, and gcd(32, N) columns; 64 of 8-bit D where "
            "64 divides N"
        ),
        fragment="128 threads, 256 if cooperative",
        reuse="C is as wide as D, and wider than 8 bits",
        delay="C is void, and there are no arrays of pointers",
        atom="the widest of 128, 64, 32 and 16 bytes that divides the subtile",
        store="stmatrix for 16-bit elements, vectors for others",
        accumulator="in registers",
    ),
    "sm100": Rules(
        automatic=(
            "auto takes a pair of CTAs if an even cluster has the tile of one, else a "
            "CTA"
        ),
        epilogue_tile=(
            "32 rows for each warp; without C 4,096 elements (8,192 of 4 bits), with C "
            "16 to 64 columns by the widest element; 128 columns for a block-scaled "
            "N = 256"
        ),
        fragment="128 threads",
        reuse="C is wider than 8 bits, whatever D is",
        delay=(
            "C is void, there are no arrays of pointers, and the loop of subtiles is "
            "unrolled, which it is not around a heavy activation"
        ),
        atom="SM90's, but 32 x 4 for 32-bit M-major elements",
        store="what the TMEM load gave each thread: matrices after 16dp, vectors after "
        "32dp",
        accumulator="in TMEM, read by tcgen05.ld",
    ),
}
"""By architecture."""
