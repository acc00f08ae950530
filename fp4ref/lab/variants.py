"""variants: what each switch of document 003's kernel is to the model of two queues.

Where the document says how a change costs or saves, that is taken; else it follows from
the bytes and rows of the change. None is fitted to what the change gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.lab.two_queues import Kernel

COPY_CLOCKS: Final = 70.0
"""Clocks to issue a bulk copy, as the document has them."""
TILES: Final = 147
"""Tiles of a pair: 10,878 over 74 pairs."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One switch.

    Attributes
    ----------
    changes
        Fields of `Kernel` that it sets; None if the model has nothing to say.
    reason
        Why these, or why none.
    """

    changes: dict[str, Any] | None
    reason: str


VARIANTS: Final[dict[str, Variant]] = {
    "bf16_arithmetic": Variant(
        {"saved": 384.0},
        "of 128 pairs of columns each saves two unpackings and an addition",
    ),
    "two_epilogue_warps": Variant(
        {"epilogue_warps": 2}, "each warp has twice the rows, and half the peers"
    ),
    "swizzled_staging": Variant(
        {"bulk_store": 2 * COPY_CLOCKS, "store_passes": 0.5},
        "phase 2B is two tensor copies of 64 columns, which read shared memory once",
    ),
    "bulk_stores": Variant(
        {"bulk_store": 32 * COPY_CLOCKS, "store_passes": 0.5},
        "phase 2B is 32 copies of 70 cycles each, which read shared memory once",
    ),
    "tile_of_128_columns": Variant(
        {"tile_n": 128, "tiles": 2 * TILES}, "half the columns, twice the tiles"
    ),
    "six_stages": Variant({"stages": 6}, "a stage for each k-iteration"),
    "direct_stores": Variant(
        {"passes_through_l1": 5.0, "store_passes": 0.0},
        "nothing is staged; 32 bytes of a row take a slot of 128: a store counts four",
    ),
    "early_barrier": Variant(
        {"early_release": True}, "the accumulator is free after phase 1"
    ),
    "prefetch": Variant({"switch": 0.0}, "the load warp is 20 cycles earlier"),
    "unrolled_k_loop": Variant(
        {"to_first_mma": 12.0, "to_last_mma": 34.0},
        "no descriptors before the first MMA; 135 instructions of a tile fewer in all, "
        "the middle of what the document expects",
    ),
    "l2_promotion": Variant({}, "B comes from L2 either way"),
    "timestamps": Variant({}, "reading a clock is taken to cost nothing"),
    "six_epilogue_warps": Variant(
        None, "which rows six warps share is not said; a quarter belongs to one warp"
    ),
    "added_relaid": Variant(None, "the baseline has it; what was before is not said"),
    "l2_window": Variant({}, "B comes from L2 either way"),
    "running_ring": Variant(
        {"ring_restarts": False},
        "no record: a tile goes on with the stage after the last one's",
    ),
    "stagger": Variant(None, "never run, and no record says what a delay does"),
}


def kernel(switches: Iterable[str]) -> Kernel | None:
    """Return what the model knows of a kernel; None if of one switch it knows nothing.

    Raises
    ------
    InputError
        There is no such switch.
    """
    found = Kernel(tiles=TILES)
    for name in switches:
        if name not in VARIANTS:
            raise InputError(
                f"switch {name!r}: there is none; there are {', '.join(VARIANTS)}"
            )
        changes = VARIANTS[name].changes
        if changes is None:
            return None
        found = replace(found, **changes)
    return found
