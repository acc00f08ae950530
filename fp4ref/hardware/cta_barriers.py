"""cta_barriers: the threads that have arrived at the sixteen barriers of a CTA."""

from __future__ import annotations

from dataclasses import dataclass, field

from fp4ref.errors import HardwareFault

COUNT = 16


class NamedBarrierFault(HardwareFault):
    """A named barrier was used with a bad id or thread count."""


@dataclass
class NamedBarriers:
    """State of one CTA's barriers."""

    arrived: list[int] = field(default_factory=lambda: [0] * COUNT)
    threads: list[int | None] = field(default_factory=lambda: [0] * COUNT)
    rounds: list[int] = field(default_factory=lambda: [0] * COUNT)

    def arrive(
        self, barrier: int, threads: int | None, *, live_threads: int, who: str
    ) -> int:
        """Count one warp in; returns the round it belongs to.

        Raises
        ------
        NamedBarrierFault
            A bad id or thread count, or another count than earlier in the round.
        """
        bad_count = threads is not None and (threads <= 0 or threads % 32)
        if not 0 <= barrier < COUNT or bad_count:
            raise NamedBarrierFault(
                f"barrier {barrier} with {threads} threads",
                who=who,
                rule="ids are 0..15 and the thread count is a positive multiple of 32 "
                "[PTX: bar]",
                remedy="count whole warps",
            )
        if self.arrived[barrier] and self.threads[barrier] != threads:
            raise NamedBarrierFault(
                f"barrier {barrier}: {threads} threads here, {self.threads[barrier]} "
                "in an earlier arrival of the same round",
                who=who,
                rule="all arrivals of a round name the same thread count [PTX: bar]",
                remedy="use one constant for the barrier's thread count",
            )
        this_round = self.rounds[barrier]
        self.threads[barrier] = threads
        self.arrived[barrier] += 32
        self.settle(live_threads)
        return this_round

    def settle(self, live_threads: int) -> None:
        """Complete every round that has its threads; a warp may have exited."""
        for barrier, arrived in enumerate(self.arrived):
            threads = self.threads[barrier]
            if arrived and arrived >= (live_threads if threads is None else threads):
                self.arrived[barrier] = 0
                self.rounds[barrier] += 1
