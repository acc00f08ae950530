"""Part 4. allocator: TMEM of one CTA."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import tmem
from fp4ref.hardware.sm import Blocked, Warp


class Allocator(Protocol):
    """Who allocates TMEM."""

    def alloc(self, pointer: int, columns: int) -> Generator[Blocked, None, None]:
        """Allocate; the address is written at `pointer`."""
        ...

    def relinquish(self) -> None:
        """Say that no more will be asked for."""
        ...

    def free(self, taddr: int, columns: int) -> Generator[Blocked, None, None]:
        """Give the columns back."""
        ...


@dataclass(frozen=True, slots=True)
class Allocator1Sm:
    """CUTLASS's ``TMEM::Allocator1Sm``."""

    warp: Warp
    storage: SharedStorage

    def alloc(self, pointer: int, columns: int) -> Generator[Blocked, None, None]:
        """Allocate; the address is written at `pointer`. Frame 4.2."""
        yield from tmem.alloc(self.warp, pointer, columns)

    def relinquish(self) -> None:
        """Say that no more will be asked for. Frame 8.2."""
        tmem.relinquish_alloc_permit(self.warp)

    def free(self, taddr: int, columns: int) -> Generator[Blocked, None, None]:
        """Give the columns back. Frame 8.5."""
        yield from ()
        tmem.dealloc(self.warp, taddr, columns)
