"""gmem: global memory with named allocations.

The bytes and the allocations are a `GlobalMemory`; here are the loads and stores of the
generic proxy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.sm import Warp
from fp4ref.trace import Bytes, Range


def st(warp: Warp, addresses: NDArray[np.int64], data: Bytes) -> None:
    """Store `data[i]` at `addresses[i]`, one lane each: ``st.global``.

    Neighbouring lanes' bytes are joined into one access.

    Parameters
    ----------
    addresses
        (lanes,) byte addresses of the active lanes.
    data
        (lanes, nbytes).
    """
    gmem = warp.machine.gmem
    cells = addresses[:, None] + np.arange(data.shape[1])
    warp.machine.order.generic(warp.actor, gmem, cells, "st.global", True)
    order = np.argsort(addresses, kind="stable")
    at, rows = addresses[order], data[order]
    breaks = np.flatnonzero(np.diff(at) != data.shape[1]) + 1
    for part in np.split(np.arange(at.size), breaks):
        if part.size:
            run = rows[part].reshape(1, -1)
            gmem.write(Range("gmem", int(at[part[0]]), run.size), run)
    warp.record("st.global", {"lanes": int(at.size), "nbytes": int(data.size)})


def ld(warp: Warp, where: Range) -> Bytes:
    """Load the bytes of `where` by the generic proxy: ``ld.global``."""
    gmem = warp.machine.gmem
    warp.machine.order.generic(warp.actor, gmem, where, "ld.global", False)
    data = gmem.read(where)
    warp.record("ld.global", {"nbytes": where.size})
    return data
