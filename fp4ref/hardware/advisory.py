"""advisory: what shipped kernels rely on although the PTX text does not promise it.

With ``ordering="ptx"`` each of these is a fault. With ``ordering="shipped"`` the
machine does what the kernels expect and counts the use in `Machine.advisories`. Every
advisory has one row in the fidelity table.
"""

from __future__ import annotations

from enum import Enum


class Advisory(Enum):
    """A reliance, in words."""

    COPY_OVER_MMA = "tcgen05.cp over columns that an earlier MMA reads"
    """CUTLASS and DeepGEMM reuse one scale buffer without a wait."""

    LOAD_WITHOUT_WAIT = "tcgen05.ld result used without tcgen05.wait::ld"
    """SASS holds the first use by its scoreboard; tutorials have no wait at all."""

    BARRIER_FOR_PROXY_FENCE = (
        "tcgen05.mma reads st.shared behind a barrier, without fence.proxy.async"
    )
    """CuTe tutorial 01 copies its tiles by ordinary stores."""
