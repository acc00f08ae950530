"""variants: what each switch of document 003's kernel is to the model of its trace.

A switch is another trace, or an instruction that the emulator has not. Where the
document says what a change costs or saves, that is taken; none is fitted to what the
change gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.gemm.plan import plan
from fp4ref.lab.document_003 import variant, work
from fp4ref.parameters import published

COPY_CLOCKS: Final = 70.0
"""Clocks to issue a bulk copy, as the document has them."""
NARROW: Final = "TN=128"
SIX_STAGES: Final = "F12, TN=128, 6 stages"


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the model knows of a kernel.

    Attributes
    ----------
    variant
        Of `fp4ref.lab.document_003`, whose trace it is.
    six_stages
        Whether the ring has six stages, which fit with 128 columns only.
    two_warps
        Whether two warps of each SM do the rows of four.
    saved
        Instructions that phase 1 of a warp's 32 rows no longer has, for each column.
    to_first_mma, to_last_mma
        Instructions from a stage's barrier to its first MMA, and on to its commit.
    copies
        Of its staged rows, whether a warp issues copies: of ``"both"`` halves, of the
        ``"second"`` one, or of none.
    ring_restarts
        Whether each tile begins in stage 0, as the document's stage of a k-iteration
        says; else the ring runs on, as in this kernel.
    """

    variant: str = "baseline"
    six_stages: bool = False
    two_warps: bool = False
    saved: float = 0.0
    to_first_mma: float = 26.0
    to_last_mma: float = 42.5
    copies: str = ""
    ring_restarts: bool = True

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return SIX_STAGES if self.six_stages else self.variant

    @property
    def tile_n(self) -> int:
        """Columns of a tile."""
        return int(variant(self.trace).tile.n)

    @property
    def stages(self) -> int:
        """Stages of the ring."""
        return plan(variant(self.trace)).mainloop_stages

    @property
    def tiles(self) -> int:
        """Tiles of a pair, which has two of the chip's SMs."""
        pairs = (published()["sms"].value or 0) // work().cta_group
        return int(work().tiles * work().tile_n // self.tile_n // pairs)


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
        {"saved": 1.5},
        "each of 128 pairs of columns saves two unpackings and an addition",
    ),
    "two_epilogue_warps": Variant(
        {"two_warps": True}, "each warp does the steps of two, one after the other"
    ),
    "swizzled_staging": Variant(
        {"variant": "F24, swizzled", "copies": "both"},
        "the trace with tensor copies of 64 columns, each issued in 70 cycles",
    ),
    "bulk_stores": Variant(
        {"variant": "F19b, bulk copies", "copies": "second"},
        "the trace with copies of 256 bytes, of phase 2B each issued in 70 cycles; the "
        "first half's cost what a row did",
    ),
    "tile_of_128_columns": Variant(
        {"variant": NARROW}, "the trace with half the columns, twice the tiles"
    ),
    "six_stages": Variant(
        {"six_stages": True}, "the trace with six stages of 128 columns"
    ),
    "direct_stores": Variant(
        {"variant": "F17, direct stores"},
        "the trace in which nothing is staged: a store touches a line of each row",
    ),
    "late_barrier": Variant(
        {"variant": "F19a, late release"},
        "the trace in which phase 2B comes before the accumulator is given back",
    ),
    "early_barrier": Variant(
        {}, "the baseline has it: what was before is late_barrier"
    ),
    "prefetch": Variant(
        {"variant": "F20, next tile ahead"},
        "the trace with the next tile asked for first",
    ),
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
    found = Kernel()
    for name in switches:
        if name not in VARIANTS:
            raise InputError(
                f"switch {name!r}: there is none; there are {', '.join(VARIANTS)}"
            )
        changes = VARIANTS[name].changes
        if changes is None:
            return None
        found = replace(found, **changes)
    if found.six_stages and found.variant != NARROW:
        return None
    return found
