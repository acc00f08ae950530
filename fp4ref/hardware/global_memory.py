"""global_memory: the bytes that all SMs share, in named allocations.

Addresses look like a GPU's. A gap that belongs to no allocation lies between two
allocations, so a stray access is a fault that names its neighbour.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError, OutOfBounds
from fp4ref.hardware.byte_array import POISON, Memory
from fp4ref.trace import Bytes, Range

BASE = 0x7F00_0000_0000
GAP = 512
"""Bytes between two allocations that belong to neither."""


class Allocation(NamedTuple):
    """A named piece of global memory."""

    name: str
    address: int
    nbytes: int


class GlobalMemory(Memory):
    """Grows with every allocation; the start of each is 512-byte aligned."""

    def __init__(self) -> None:
        super().__init__("gmem", BASE, 0)
        self.allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._used = 0
        self._room, self._room_written = self.data, self.written

    def allocate(self, name: str, nbytes: int) -> int:
        """Return the address of `nbytes` new, poisoned bytes.

        Raises
        ------
        InputError
            `nbytes` is not positive.
        """
        if nbytes <= 0:
            raise InputError(f"{name}: {nbytes} bytes asked for; ask for at least 1")
        size = -(-nbytes // 512) * 512 + GAP
        start, self._used = self._used, self._used + size
        if self._used > self._room.size:
            # Twice as much as needed: so that many allocations copy little. The rest
            # takes no memory before it is used.
            self._room = np.empty(2 * self._used, np.uint8)
            self._room[:start] = self.data
            self._room_written = np.zeros(2 * self._used, np.bool_)
            self._room_written[:start] = self.written
        self.data = self._room[: self._used]
        self.data[start:] = POISON
        self.written = self._room_written[: self._used]
        self._elements.clear()
        address = self.base + start
        self.allocations.append(Allocation(name, address, nbytes))
        self._starts.append(address)
        return address

    def upload(self, name: str, array: NDArray[Any]) -> int:
        """Allocate, fill with the bytes of `array` (C order), return the address."""
        data = np.ascontiguousarray(array).view(np.uint8).ravel()
        address = self.allocate(name, data.size)
        self.poke(address, data)
        return address

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that holds `address`, if any."""
        i = bisect_right(self._starts, address) - 1
        if i < 0:
            return None
        found = self.allocations[i]
        return found if address < found.address + found.nbytes else None

    def describe(self, address: int) -> str:
        """Name the allocation and the offset in it."""
        if found := self.find(address):
            return f"gmem {address:#x} ({found.name} + {address - found.address})"
        return f"gmem {address:#x} (in no allocation)"

    def check_bounds(self, where: Range) -> None:
        """Raise `OutOfBounds` unless one allocation holds all of `where`."""
        found = self.find(where.start)
        if found is None or where.end > found.address + found.nbytes:
            raise OutOfBounds(
                f"{where.size} bytes from {where.start:#x} to {where.end:#x} are not "
                "inside one allocation",
                who=self.who(),
                where=self.describe(where.start),
                rule="global accesses stay inside an allocation",
                remedy="check pointer, pitch and predicate",
            )

    def contents(self, address: int, nbytes: int) -> Bytes:
        """Return bytes as the host would copy them back, poison included."""
        where = Range("gmem", address, nbytes)
        self.check_bounds(where)
        data: Bytes = self.window(self.data, where)[0].copy()
        return data
