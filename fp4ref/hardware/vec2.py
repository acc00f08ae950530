"""vec2: accesses of two words a thread, ``.v2.b32``: a warp has 256 bytes of a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware import gmem, smem
from fp4ref.hardware.sm import Warp
from fp4ref.trace import Bytes

NBYTES = 8
"""Of a thread."""
LANES = 32


def ld_shared(warp: Warp, address: int) -> Bytes:
    """Load 256 bytes in a row: ``ld.shared.v2.b32``; (32, 8)."""
    return smem.ld(warp, address, LANES * NBYTES).reshape(LANES, NBYTES)


def st_global(warp: Warp, addresses: NDArray[np.int64], data: Bytes) -> None:
    """Store eight bytes of each active lane: ``st.global.v2.b32``.

    Parameters
    ----------
    addresses
        (lanes,) byte addresses.
    data
        (lanes, 8).
    """
    gmem.st(warp, addresses, data)
