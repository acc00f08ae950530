"""byte_array: bytes that know who wrote and who uses them, and tell the trace.

Global memory, shared memory and TMEM are all `Memory`. Three rules hold for each:

- reading a byte that nothing has written is a fault (memory starts poisoned);
- touching a byte that an asynchronous operation in flight still uses is a fault;
- every access of an open event goes to the recorder, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import OutOfBounds, UninitialisedRead
from fp4ref.trace import Bytes, Range, Recorder

POISON = 0xCD
"""Byte that fills memory nothing has written."""

Guard = Callable[[Range, bool], None]
"""Called as ``guard(where, is_write)`` before every access; raises a fault."""


def no_guard(where: Range, is_write: bool) -> None:
    """Let every access pass."""


class Memory:
    """One address space.

    Parameters
    ----------
    space
        Name in traces and faults.
    base
        Address of the first byte.
    nbytes
        Size. A launch may later allow less of it.
    """

    def __init__(self, space: str, base: int, nbytes: int) -> None:
        self.space, self.base, self.nbytes = space, base, nbytes
        self.data: Bytes = np.full(nbytes, POISON, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros(nbytes, np.bool_)
        self.recorder: Recorder | None = None
        self.guard: Guard = no_guard
        self.who: Callable[[], str] = str

    def describe(self, address: int) -> str:
        """Where `address` is, in words for a fault."""
        return f"{self.space} address {address:#x}"

    def check_bounds(self, where: Range) -> None:
        """Raise `OutOfBounds` unless `where` lies inside this memory."""
        if where.start < self.base or where.end > self.base + self.nbytes:
            raise OutOfBounds(
                f"{where.size} bytes at {where.start:#x} reach outside {self.space} "
                f"[{self.base:#x}, {self.base + self.nbytes:#x})",
                who=self.who(),
                where=self.describe(where.start),
                rule="an access stays inside its memory",
                remedy="check the address and the size",
            )

    def window(self, array: NDArray[Any], where: Range) -> NDArray[Any]:
        """Return a writable view (rows, nbytes) of `where` in one of the arrays."""
        size = array.itemsize
        return np.ndarray(
            (where.rows, where.nbytes),
            array.dtype,
            array.data,
            (where.start - self.base) * size,
            (where.pitch * size, size),
        )

    def read(self, where: Range) -> Bytes:
        """Return the bytes of `where`, shape (rows, nbytes).

        Raises
        ------
        OutOfBounds, UninitialisedRead, ReadWhileInFlight
        """
        self.check_bounds(where)
        self.guard(where, False)
        written = self.window(self.written, where)
        if not written.all():
            row, column = np.argwhere(~written)[0]
            address = where.start + int(row) * where.pitch + int(column)
            raise self.never_written(address, int((~written).sum()), where.size)
        if self.recorder:
            self.recorder.read(where)
        return self.window(self.data, where).copy()

    def never_written(self, address: int, count: int, of: int) -> UninitialisedRead:
        """Return the fault of reading `count` bytes that nothing has written."""
        return UninitialisedRead(
            f"{count} of {of} bytes read were never written",
            who=self.who(),
            where=self.describe(address),
            rule="memory holds no defined value before its first write",
            remedy="wait for the operation that fills it, or initialise it",
        )

    def write(self, where: Range, data: Bytes) -> None:
        """Store `data`, shape (rows, nbytes), at `where`.

        Raises
        ------
        OutOfBounds, ReadWhileInFlight
        """
        self.check_bounds(where)
        self.guard(where, True)
        view = self.window(self.data, where)
        if self.recorder:
            self.recorder.write(where, view ^ data)
        view[:] = data
        self.window(self.written, where)[:] = True

    def leave_undefined(self, where: Range, bytes_of: NDArray[np.bool_]) -> None:
        """Count the bytes of `where` that `bytes_of` marks as never written."""
        self.window(self.written, where)[bytes_of] = False

    def poke(self, address: int, data: Bytes) -> None:
        """Change bytes from outside the machine: no event, no guard (host, tests)."""
        where = Range(self.space, address, data.size)
        self.check_bounds(where)
        self.window(self.data, where)[:] = data
        self.window(self.written, where)[:] = True

    def forget(self) -> None:
        """Mark every byte as never written; the old bytes stay, as on silicon."""
        self.written[:] = False
