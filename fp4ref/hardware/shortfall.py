"""shortfall: what the phase of an mbarrier lacks, by the books of its unit.

The books are who arrived in the last phases. What is missing is found by comparing a
phase with an earlier one, or with that of another stage of the same ring.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fp4ref.hardware.mbarrier_unit import Credit, MbarrierState, MbarrierUnit
from fp4ref.hardware.shared_memory import Signaller
from fp4ref.hardware.sm import Warp

STAGE_LABEL = re.compile(r"(?P<ring>.+)\.(?P<side>full|empty)\[(?P<stage>\d+)\]")
"""How a barrier of a ring is called."""


@dataclass(frozen=True)
class Shortfall:
    """What one phase lacks, for which a warp waits.

    Attributes
    ----------
    since
        Step at which the wait began; -1 untraced.
    now, usual
        Who has arrived in this phase, and in a complete one of this barrier or of
        another stage of its ring; `usual` is empty if there is none.
    """

    waiter: Warp
    unit: MbarrierUnit
    address: int
    state: MbarrierState
    now: Sequence[Credit]
    usual: Sequence[Credit]
    since: int

    @classmethod
    def at(
        cls, waiter: Warp, unit: MbarrierUnit, address: int, since: int = -1
    ) -> Shortfall:
        """Read the books of a barrier."""
        books = unit.books.get(address, [[]])
        usual = books[-2] if len(books) > 1 else _of_another_stage(unit, address)
        state = unit.load(address)
        return cls(waiter, unit, address, state, books[-1], usual, since)

    @property
    def name(self) -> str:
        """Its label, or its address."""
        return self.unit.smem.labels.get(self.address) or f"mbarrier {self.address:#x}"

    @property
    def where(self) -> str:
        """Label and address."""
        return self.unit.smem.describe(self.address)

    @property
    def stage(self) -> re.Match[str] | None:
        """Ring, side and stage, if it has a label that says them."""
        return STAGE_LABEL.fullmatch(self.unit.smem.labels.get(self.address, ""))

    @property
    def absent(self) -> Counter[str]:
        """Arrivals that usually come and have not, by who makes them."""
        return arrivals(self.usual) - arrivals(self.now)

    @property
    def phases(self) -> int:
        """Phases that have completed."""
        return self.unit.completed.get(self.address, 0)

    @property
    def signaller(self) -> Signaller | None:
        """Who should arrive, if the kernel's set-up says so."""
        return self.unit.smem.signallers.get(self.address)


def arrivals(credits: Sequence[Credit]) -> Counter[str]:
    """Count arrivals by who made them."""
    found: Counter[str] = Counter()
    for each in credits:
        found[each.issuer] += each.arrivals
    return found


def _of_another_stage(unit: MbarrierUnit, address: int) -> Sequence[Credit]:
    """Return a complete phase of a barrier with the same ring and side."""
    mine = STAGE_LABEL.fullmatch(unit.smem.labels.get(address, ""))
    for other, books in unit.books.items():
        its = STAGE_LABEL.fullmatch(unit.smem.labels.get(other, ""))
        same = mine and its and mine.group("ring", "side") == its.group("ring", "side")
        if same and len(books) > 1:
            return books[-2]
    return []
