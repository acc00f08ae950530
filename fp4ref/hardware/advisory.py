"""advisory: what a kernel relies on although the PTX text does not promise it.

The machine does what the kernel expects and counts the use in `Machine.advisories`.
What the text's order rules leave out counts with ``ordering="shipped"`` only; with
``ordering="ptx"`` it is a fault. What the text does not forbid, and a person should
look at all the same, counts with both. Every advisory has a row in the fidelity table.
"""

from __future__ import annotations

from enum import Enum


class Advisory(Enum):
    """A reliance, in words."""

    COPY_OVER_MMA = "tcgen05.cp over columns that an earlier MMA reads"
    """CUTLASS and DeepGEMM reuse one scale buffer without a wait."""

    LOAD_WITHOUT_WAIT = "tcgen05.ld completed by the use of its registers only"
    """PTX 9.7.16.6.4.5: the values are right with both orderings, and nothing else is
    ordered by them. CuTe tutorials have no ``tcgen05.wait::ld`` at all."""

    LOAD_AFTER_STORE = "tcgen05.ld after a tcgen05.st of its warp, without wait::st"
    """CUTLASS's stream-K sums leave an accumulator by ``tcgen05.st``, and the epilogue
    of the same warp loads it."""

    BARRIER_FOR_PROXY_FENCE = (
        "tcgen05.mma reads st.shared behind a barrier, without fence.proxy.async"
    )
    """CuTe tutorial 01 copies its tiles by ordinary stores."""

    UNSET_BRANCH = "a branch on a register never written, whose values are dropped"
    """After a refused CLC query CUTLASS maps the coordinates that it did not get. What
    the branch may have written has no value where its sides meet; effects between are
    a fault."""

    LANES_OF_A_PAIR = "tcgen05.ld or st of a lane above 127, as of lane - 128"
    """The second CTA of a pair counts on from the first: kernels of learn-cuda."""

    ODD_SCALE_COLUMN = "tcgen05.mma with scales at an odd TMEM column"
    """Reported to fail on a card with N = 32; with both orderings no fault here,
    because the PTX text does not forbid it."""


SILENT = frozenset({Advisory.ODD_SCALE_COLUMN, Advisory.LOAD_WITHOUT_WAIT})
"""What the text does not forbid: allowed with both orderings."""
