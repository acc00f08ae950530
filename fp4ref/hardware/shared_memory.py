"""shared_memory: the bytes of one CTA, and who wrote them without a proxy fence.

A CTA sees 232,448 bytes from shared address 0x400; the 1 KB below is reserved. In a
cluster, bits 24 and up of an address hold the CTA's rank. Bytes written by the generic
proxy are marked with their writer until it executes a fence.

`fp4ref.hardware.order` finds a missing fence too, and in every schedule, but only where
it watches. The marks hold in untraced runs as well, and stop a unit before it has taken
the bytes: a report at the end of the launch would come after wrong numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import MissingProxyFence
from fp4ref.hardware.byte_array import Memory
from fp4ref.trace import Bytes, Range

BASE = 0x400
"""First shared address of a CTA. Source: ptxas for sm_90a and sm_100a."""

NBYTES = 232_448
"""Dynamic shared memory of one CTA: 227 KB (CUTLASS `sm100_smem_capacity_bytes`)."""

_BEHIND_BARRIER = 1 << 15
"""Bit of `SharedMemory.unfenced_by`: the writer has reached a CTA barrier since."""

RANK_SHIFT = 24
"""Bits of a shared::cluster address above the offset: the CTA rank."""


class Signaller(NamedTuple):
    """Who completes a barrier's phase by the kernel's own plan.

    Attributes
    ----------
    by
        In words.
    warps
        The warps of the CTA that do it, or ask a unit to.
    """

    by: str
    warps: tuple[int, ...]


NO_BYTES = (NBYTES + BASE, BASE)
"""Ends of a span of addresses that holds none."""

CHUNK = 16
"""Bytes that every swizzle and every matrix descriptor keep together."""

NOBODY = Signaller("", ())
"""Where the set-up does not say who."""


def writer_mark(rank: int, warp: int) -> int:
    """Return what `SharedMemory.unfenced_by` holds for a warp of the CTA of `rank`."""
    return 1 + warp + 32 * rank


@lru_cache(maxsize=64)
def _marks(mark: int, nbytes: int) -> np.void:
    """Return the marks of a group of bytes."""
    found: np.void = np.full(nbytes, mark, np.uint16).view(f"V{2 * nbytes}")[0]
    return found


class SharedMemory(Memory):
    """Shared memory of the CTA that lives on one SM.

    Attributes
    ----------
    unfenced_by
        For each byte the warp whose ``st.shared`` awaits a proxy fence, or 0.
    labels
        Names of objects, by address, for faults and traces.
    signallers
        Who should arrive, by barrier, where the kernel's set-up says so.
    """

    def __init__(self, sm: int) -> None:
        super().__init__(f"smem{sm}", BASE, NBYTES)
        self.unfenced_by: NDArray[np.uint16] = np.zeros(NBYTES, np.uint16)
        self._marked = NO_BYTES
        self.labels: dict[int, str] = {}
        self.signallers: dict[int, Signaller] = {}

    def describe(self, address: int) -> str:
        """Name the labelled object at or below `address`, if any."""
        at = max((a for a in self.labels if a <= address), default=None)
        if at is None:
            return f"{self.space} {address:#x}"
        offset = f" + {address - at}" if address != at else ""
        return f"{self.space} {address:#x} ({self.labels[at]}{offset})"

    def read_async(self, where: Range) -> Bytes:
        """Read through the async proxy.

        Raises
        ------
        MissingProxyFence
            A byte was written by ``st.shared`` and not fenced since.
        """
        self.check_bounds(where)
        if self.may_be_marked(where):
            self._check_fenced(self.window(self.unfenced_by, where), where, "read")
        return self.read(where)

    def write_async(self, where: Range, data: Bytes) -> None:
        """Write through the async proxy.

        Raises
        ------
        MissingProxyFence
            A byte was written by ``st.shared`` and not fenced since: either write
            could come last.
        """
        self.check_bounds(where)
        if self.may_be_marked(where):
            writers = self.window(self.unfenced_by, where)
            self._check_fenced(writers, where, "overwritten")
        self.write(where, data)

    def gather_async(self, addresses: NDArray[np.int64], within: Range) -> Bytes:
        """Read scattered bytes through the async proxy; `within` bounds them."""
        self.check_bounds(within)
        self.guard(within, False)
        # Often the whole of `within` is good, which is cheaper to find out.
        if self.may_be_marked(within):
            self._check_fenced(self.unfenced_by[addresses - self.base], within, "read")
        if not self.is_written(within):
            unknown = ~self.written[addresses - self.base]
            if unknown.any():
                first = int(addresses[unknown].min())
                raise self.never_written(first, int(unknown.sum()), addresses.size)
        if self.recorder:
            self.recorder.read(within)
        data: Bytes = self.data[addresses - self.base]
        return data

    def gather_chunks_async(self, index: NDArray[np.intp], within: Range) -> Bytes:
        """Do the same for a tile of whole chunks; (rows, row bytes).

        Parameters
        ----------
        index : (rows, chunks of a row)
            Number of each chunk, counted from `BASE`.
        """
        self.check_bounds(within)
        if self.may_be_marked(within) or not self.is_written(within):
            first = self.base + CHUNK * index[..., None]
            addresses = (first + np.arange(CHUNK)).reshape(len(index), -1)
            return self.gather_async(addresses, within)
        self.guard(within, False)
        if self.recorder:
            self.recorder.read(within)
        chunks, _ = self.elements(CHUNK)
        data: Bytes = chunks.take(index).view(np.uint8)
        return data

    def may_be_marked(self, where: Range) -> bool:
        """Whether a byte of `where` can await a proxy fence."""
        first, last = self._marked
        return where.start < last and first < where.end

    def _span_mark(self, where: Range) -> None:
        first, last = self._marked
        self._marked = min(first, where.start), max(last, where.end)

    def mark_unfenced(self, where: Range, mark: int) -> None:
        """Note a write by the generic proxy of the writer of `mark`."""
        self._span_mark(where)
        self.window(self.unfenced_by, where)[:] = mark

    def mark_elements(
        self, index: NDArray[np.int64], nbytes: int, around: Range, mark: int
    ) -> None:
        """Do the same for groups of `nbytes` by their numbers, bounded by `around`."""
        self._span_mark(around)
        marks = _marks(mark, nbytes)
        self.unfenced_by.view(marks.dtype)[index] = marks

    def fence(self, where: Range, mark: int) -> None:
        """Forget the writes of the writer of `mark`: it has executed a proxy fence."""
        writers = self.window(self.unfenced_by, where)
        np.copyto(writers, 0, where=writers & ~np.uint16(_BEHIND_BARRIER) == mark)

    def reach_barrier(self, where: Range, mark: int) -> None:
        """Note that the unfenced writes of the writer of `mark` precede a barrier."""
        writers = self.window(self.unfenced_by, where)
        writers[writers == mark] |= np.uint16(_BEHIND_BARRIER)

    def _check_fenced(
        self, writers: NDArray[np.uint16], where: Range, verb: str
    ) -> None:
        """Raise `MissingProxyFence` if any of `writers` is a warp."""
        if not writers.any():
            return
        stale = writers[writers != 0]
        rank, warp = divmod((int(stale[0]) & ~_BEHIND_BARRIER) - 1, 32)
        raise MissingProxyFence(
            f"{stale.size} bytes written by st.shared are {verb} by the async proxy",
            who=f"{self.who()}; written by warp {warp}"
            + (f" of rank {rank}" if rank else ""),
            where=self.describe(where.start),
            rule="a generic-proxy write needs fence.proxy.async before an async-proxy "
            "access [PTX: async proxy]",
            remedy="execute fence.proxy.async.shared::cta in the writing warp, then a "
            "barrier",
        )

    def is_behind_barrier(self, where: Range) -> bool:
        """Whether a byte awaits a proxy fence, and its writer has reached a barrier."""
        writers = self.window(self.unfenced_by, where)
        return bool((writers & _BEHIND_BARRIER != 0).any())

    def accept_barriers(self, where: Range) -> None:
        """Take a barrier for the missing proxy fence."""
        writers = self.window(self.unfenced_by, where)
        writers[writers & _BEHIND_BARRIER != 0] = 0

    def forget(self) -> None:
        """Start a new CTA: nothing is written, no label is known."""
        super().forget()
        self.unfenced_by[:] = 0
        self._marked = NO_BYTES
        self.labels = {}
        self.signallers = {}
