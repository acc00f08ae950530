"""Part 7. named_barrier: the sixteen CTA barriers, ``bar.sync`` and ``bar.arrive``.

A named barrier counts *threads*. It completes when `threads` of them have arrived, and
is then ready for its next round.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fp4ref.errors import HardwareFault

if TYPE_CHECKING:
    from fp4ref.hardware.sm import Blocked, Warp

COUNT = 16


class NamedBarrierFault(HardwareFault):
    """A named barrier was used with a bad id or thread count."""


@dataclass
class NamedBarriers:
    """State of one CTA's barriers."""

    arrived: list[int] = field(default_factory=lambda: [0] * COUNT)
    threads: list[int] = field(default_factory=lambda: [0] * COUNT)
    rounds: list[int] = field(default_factory=lambda: [0] * COUNT)

    def arrive(self, warp: Warp, barrier: int, threads: int) -> int:
        """Count one warp in; returns the round it belongs to."""
        if not 0 <= barrier < COUNT or threads <= 0 or threads % 32:
            raise NamedBarrierFault(
                f"barrier {barrier} with {threads} threads",
                who=warp.who,
                rule="ids are 0..15 and the thread count is a positive multiple of 32 "
                "[PTX: bar]",
                remedy="count whole warps",
            )
        if self.arrived[barrier] and self.threads[barrier] != threads:
            raise NamedBarrierFault(
                f"barrier {barrier}: {threads} threads here, {self.threads[barrier]} "
                "in an earlier arrival of the same round",
                who=warp.who,
                rule="all arrivals of a round name the same thread count [PTX: bar]",
                remedy="use one constant for the barrier's thread count",
            )
        this_round = self.rounds[barrier]
        self.threads[barrier] = threads
        self.arrived[barrier] += 32
        if self.arrived[barrier] == threads:
            self.arrived[barrier] = 0
            self.rounds[barrier] += 1
        return this_round


@dataclass(frozen=True, slots=True)
class NamedBarrierWait:
    """A warp waits for a round to complete."""

    barriers: NamedBarriers
    barrier: int
    this_round: int

    def ready(self) -> bool:
        """Whether the round is complete."""
        return self.barriers.rounds[self.barrier] > self.this_round

    def describe(self) -> str:
        """Barrier id and how many threads came."""
        b = self.barrier
        return (
            f"named barrier {b}: {self.barriers.arrived[b]} of "
            f"{self.barriers.threads[b]} threads have arrived"
        )

    def released_by(self) -> str:
        """Who is missing is not known: any warp may arrive."""
        return "the warps that have not arrived"


def sync(warp: Warp, barrier: int, threads: int) -> Generator[Blocked, None, None]:
    """``bar.sync barrier, threads``: arrive and wait for the others."""
    this_round = warp.cta.named_barriers.arrive(warp, barrier, threads)
    warp.record("bar.sync", {"barrier": barrier, "threads": threads})
    wait = NamedBarrierWait(warp.cta.named_barriers, barrier, this_round)
    if not wait.ready():
        yield wait


def arrive(warp: Warp, barrier: int, threads: int) -> None:
    """``bar.arrive barrier, threads``: arrive and go on."""
    warp.cta.named_barriers.arrive(warp, barrier, threads)
    warp.record("bar.arrive", {"barrier": barrier, "threads": threads})
