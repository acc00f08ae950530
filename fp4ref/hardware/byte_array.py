"""byte_array: bytes that know who wrote and who uses them, and tell the trace.

Global memory, shared memory and TMEM are all `Memory`. Three rules hold for each:

- reading a byte that nothing has written is a fault (memory starts poisoned);
- touching a byte that an asynchronous operation in flight still uses is a fault;
- every access of an open event goes to the recorder, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import OutOfBounds, UninitialisedRead
from fp4ref.trace import Bytes, Range, Recorder

POISON = 0xCD
"""Byte that fills memory nothing has written."""

MOST_KNOWN = 1 << 12
"""Ranges of which a memory remembers that they are written."""

Guard = Callable[[Range, bool], None]
"""Called as ``guard(where, is_write)`` before every access; raises a fault."""


Elements = NDArray[np.void]
"""Bytes in groups, which NumPy moves as one."""


def no_guard(where: Range, is_write: bool) -> None:
    """Let every access pass."""


@lru_cache
def _all_written(nbytes: int) -> np.void:
    """Return the marks of a group of bytes that are written."""
    found: np.void = np.ones(nbytes, np.bool_).view(f"V{nbytes}")[0]
    return found


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
        self._whole: set[Range] = set()
        self._elements: dict[int, tuple[Elements, Elements]] = {}
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
        if where.rows == 1:
            start = where.start - self.base
            return array[start : start + where.nbytes].reshape(1, -1)
        return np.ndarray(
            (where.rows, where.nbytes),
            array.dtype,
            array.data,
            (where.start - self.base) * size,
            (where.pitch * size, size),
        )

    def elements(self, nbytes: int) -> tuple[Elements, Elements]:
        """Return all bytes, and whether they are written, in groups of `nbytes`.

        Parameters
        ----------
        nbytes
            A power of two of at most 32.
        """
        found = self._elements.get(nbytes)
        if found is None:
            kind = np.dtype(f"V{nbytes}")
            found = self.data.view(kind), self.written.view(kind)
            self._elements[nbytes] = found
        return found

    def gather_elements(self, numbers: NDArray[np.int64], nbytes: int) -> Bytes | None:
        """Return groups of `nbytes` by their numbers; None if one is not written.

        Nothing is checked but that, and no trace is told.
        """
        data, written = self.elements(nbytes)
        if b"\0" in written.take(numbers).tobytes():
            return None
        return data.take(numbers).view(np.uint8).reshape(-1, nbytes)

    def scatter_elements(self, numbers: NDArray[np.int64], data: Bytes) -> None:
        """Store groups, (groups, nbytes), by their numbers; of equal ones the last.

        Nothing is checked, and no trace is told.
        """
        nbytes = data.shape[1]
        stored, written = self.elements(nbytes)
        stored[numbers] = np.ascontiguousarray(data).view(stored.dtype)[:, 0]
        written[numbers] = _all_written(nbytes)

    def read(self, where: Range) -> Bytes:
        """Return the bytes of `where`, shape (rows, nbytes).

        Raises
        ------
        OutOfBounds, UninitialisedRead, ReadWhileInFlight
        """
        self.check_bounds(where)
        self.guard(where, False)
        self.check_written(where)
        if self.recorder:
            self.recorder.read(where)
        return self.window(self.data, where).copy()

    def check_written(self, where: Range) -> None:
        """Raise `UninitialisedRead` unless all bytes have a value."""
        if not self.is_written(where):
            written = self.window(self.written, where)
            row, column = np.argwhere(~written)[0]
            address = where.start + int(row) * where.pitch + int(column)
            raise self.never_written(address, int((~written).sum()), where.size)

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
        self.mark_written(where)

    def mark_written(self, where: Range) -> None:
        """Count every byte of `where` as written."""
        if where not in self._whole:
            self.window(self.written, where)[:] = True
            self._know(where)

    def is_written(self, where: Range) -> bool:
        """Whether every byte of `where` holds a defined value.

        What is written stays so until a new CTA comes or a byte is left undefined, so
        that a range need not be looked at twice.
        """
        if where in self._whole:
            return True
        if not self.window(self.written, where).all():
            return False
        self._know(where)
        return True

    def _know(self, where: Range) -> None:
        """Remember that all of `where` is written."""
        if len(self._whole) >= MOST_KNOWN:
            self._whole.clear()
        self._whole.add(where)

    def leave_undefined(
        self, where: Range, bytes_of: NDArray[np.bool_] | None = None
    ) -> None:
        """Count bytes of `where` as never written: those that `bytes_of` marks."""
        self._whole.clear()
        window = self.window(self.written, where)
        window[slice(None) if bytes_of is None else bytes_of] = False

    def poke(self, address: int, data: Bytes) -> None:
        """Change bytes from outside the machine: no event, no guard (host, tests)."""
        where = Range(self.space, address, data.size)
        self.check_bounds(where)
        self.window(self.data, where)[:] = data
        self.window(self.written, where)[:] = True

    def forget(self) -> None:
        """Mark every byte as never written; the old bytes stay, as on silicon."""
        self.written[:] = False
        self._whole.clear()
