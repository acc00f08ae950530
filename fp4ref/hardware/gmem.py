"""gmem: global memory with named allocations.

The bytes and the allocations are a `GlobalMemory`; here are the loads and stores of the
generic proxy.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.order.access import SCOPES
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.hardware.timing import Timed
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


def ld_each(warp: Warp, addresses: NDArray[np.int64], nbytes: int) -> Bytes:
    """Load `nbytes` at each lane's address: ``ld.global``; (lanes, nbytes)."""
    gmem = warp.machine.gmem
    cells = addresses[:, None] + np.arange(nbytes)
    warp.machine.order.generic(warp.actor, gmem, cells, "ld.global", False)
    data = np.empty((addresses.size, nbytes), np.uint8)
    breaks = np.flatnonzero(np.diff(addresses) != nbytes) + 1
    for part in np.split(np.arange(addresses.size), breaks):
        run = Range("gmem", int(addresses[part[0]]), part.size * nbytes)
        data[part] = gmem.read(run).reshape(-1, nbytes)
    warp.record("ld.global", {"lanes": int(addresses.size), "nbytes": data.size})
    return data


# -- a word by which CTAs wait for each other --------------------------------------

WORD_NBYTES = 4


def wait_eq(warp: Warp, address: int, value: int) -> Generator[Blocked, None, None]:
    """Load the word at `address` until it is `value`: ``ld.acquire.gpu.global.b32``.

    One thread spins. What the releases of this value came after is ordered before what
    the thread does next. Source: PTX, memory consistency model; CUTLASS
    ``GenericBarrier::wait_eq``.
    """
    gmem = warp.machine.gmem
    yield from warp.wait(WordWait(gmem, address, value))
    order, at = warp.machine.order, (gmem.space, address)
    order.strong_read(warp.actor, warp.actor.first, at, True, "gpu")
    where = Range("gmem", address, WORD_NBYTES)
    strong = SCOPES["gpu"], WORD_NBYTES
    order.generic(warp.actor, gmem, where, "ld.global", False, (), *strong)
    gmem.read(where)
    warp.record("ld.global", {"lanes": 1, "nbytes": WORD_NBYTES})


def red_release(warp: Warp, address: int, value: int) -> None:
    """Add `value` to the word at `address`: ``red.release.gpu.global.add.u32``.

    Whoever acquires the sum comes after all that this thread has done and seen.
    """
    gmem, order = warp.machine.gmem, warp.machine.order
    actor, at = warp.actor, (gmem.space, address)
    where = Range("gmem", address, WORD_NBYTES)
    strong = SCOPES["gpu"], WORD_NBYTES
    order.strong_read(actor, actor.first, at, False, "gpu")
    order.generic(actor, gmem, where, "red.add", True, (), *strong)
    order.strong_write(actor, actor.first, at, True, "gpu", modifies=True)
    if warp.machine.clock is not None:
        warp.machine.clock.mark(at)
    word = gmem.read(where).view("<u4") + np.uint32(value)
    gmem.write(where, word.view(np.uint8))
    warp.record("red.add", {"lanes": 1})


def red_max(
    warp: Warp, addresses: NDArray[np.int64], values: NDArray[np.uint32]
) -> None:
    """Make each word the larger one of itself and a value: ``red.global.max.u32``.

    Nothing is ordered by it. Maxima may come in any order, so the result does not
    depend on it.

    Parameters
    ----------
    addresses, values
        (lanes,) of the active lanes.
    """
    gmem, order = warp.machine.gmem, warp.machine.order
    actor, strong = warp.actor, (SCOPES["gpu"], WORD_NBYTES)
    for lane, (each, value) in enumerate(zip(addresses, values, strict=True)):
        at = (gmem.space, int(each))
        where = Range("gmem", int(each), WORD_NBYTES)
        order.strong_read(actor, lane, at, False, "gpu")
        order.generic(actor, gmem, where, "red.max", True, (1 << lane,), *strong)
        order.strong_write(actor, lane, at, False, "gpu", modifies=True)
        larger = np.maximum(gmem.read(where).view("<u4"), value)
        gmem.write(where, larger.view(np.uint8))
    warp.record("red.max", {"lanes": int(addresses.size)})


@dataclass(frozen=True, slots=True)
class WordWait:
    """A thread loads a word until it has a value."""

    gmem: GlobalMemory
    address: int
    value: int

    def _now(self) -> int:
        """Return the word, without an access."""
        return int(self.gmem.contents(self.address, WORD_NBYTES).view("<u4")[0])

    def ready(self) -> bool:
        """Whether it has the value."""
        return self._now() == self.value

    def visible_at(self, clock: Timed) -> float:
        """When the last addition is seen by another SM."""
        key = self.gmem.space, self.address
        return clock.marked(key, clock.durations.global_load_latency)

    def describe(self) -> str:
        """Where the word is, and what it is."""
        return (
            f"{self.gmem.describe(self.address)} to be {self.value}: it is "
            f"{self._now()}"
        )

    def released_by(self) -> str:
        """It is not known who could."""
        return "a warp that adds to this word"
