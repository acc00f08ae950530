"""tmem_wait: a warp that waits for columns of TMEM, or for its own accesses to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.tensor_memory import COLUMNS, TensorMemory
from fp4ref.hardware.timing import Timed


@dataclass(frozen=True, slots=True)
class AllocWait:
    """A warp waits for free columns.

    Attributes
    ----------
    claims
        Those that the peer of a CTA pair sets aside for it.
    """

    tmem: TensorMemory
    columns: int
    claims: Sequence[tuple[int, int]] = ()

    def ready(self) -> bool:
        """Whether a run of that many columns is free."""
        return bool(self.claims) or self.tmem.find_free(self.columns) is not None

    def visible_at(self, clock: Timed) -> float:
        """When the last columns were freed."""
        return clock.marked(self.tmem.space)

    def describe(self) -> str:
        """How much is asked for and how much is in use."""
        return (
            f"tcgen05.alloc of {self.columns} columns: "
            f"{self.tmem.allocated} of {COLUMNS} in use"
        )

    def released_by(self) -> str:
        """Only a dealloc frees columns."""
        return "a tcgen05.dealloc on the same SM"


@dataclass(frozen=True, slots=True)
class TmemWait:
    """A warp waits for its own ``tcgen05.ld`` or ``st``."""

    ops: tuple[AsyncOp, ...]
    name: str

    def ready(self) -> bool:
        """Whether all have landed."""
        return all(op.landed for op in self.ops)

    def visible_at(self, clock: Timed) -> float:
        """When the last of them is done."""
        return max((op.lands for op in self.ops), default=0.0)

    def describe(self) -> str:
        """How many are in flight."""
        return f"{self.name}: {sum(not op.landed for op in self.ops)} in flight"

    def released_by(self) -> str:
        """The TMEM datapath."""
        return "tmem"
