"""mbarrier_wait: a warp that waits for a phase of an mbarrier."""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.errors import MbarrierFault
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.timing import Timed


@dataclass(frozen=True, slots=True)
class MbarrierWait:
    """A warp waits for one phase; `completed` phases were over at step `since`."""

    warp: Warp
    address: int
    parity: int
    completed: int
    since: int = -1

    def ready(self) -> bool:
        """Whether the warp may run again.

        Raises
        ------
        MbarrierFault
            Two phases completed during the wait: a poll of the parity would miss both.
        """
        unit = self.warp.cta.mbarriers
        if unit.completed.get(self.address, 0) >= self.completed + 2:
            raise MbarrierFault(
                f"the phase of parity {self.parity} completed, and so did the next "
                "one, before the waiting warp saw it",
                who=self.warp.who,
                where=unit.smem.describe(self.address),
                rule="a parity tells only the current phase from the one before [PTX: "
                "mbarrier.test_wait.parity]",
                remedy="let the next phase need an arrival from every waiter, and "
                "initialise the barrier with the number of real arrivals",
            )
        return unit.has_completed(self.address, self.parity)

    def visible_at(self, clock: Timed) -> float:
        """When the warp sees the end of the phase."""
        return clock.flip(self.warp.cta.smem.space, self.address)

    def describe(self) -> str:
        """Barrier, parity and what is missing."""
        unit = self.warp.cta.mbarriers
        state = unit.load(self.address)
        return (
            f"mbarrier {unit.smem.describe(self.address)} parity {self.parity}: "
            f"phase {state.phase}, {state.pending} of {state.expected} arrivals "
            f"pending, tx-count {state.tx_count} bytes"
        )

    def released_by(self) -> str:
        """Agents that arrived on this barrier before."""
        phases = self.warp.cta.mbarriers.books.get(self.address, [])
        seen = {each.who for phase in phases for each in phase}
        return ", ".join(sorted(seen)) or "nobody has arrived on it so far"
