"""Part 7. named_barrier: the sixteen CTA barriers, ``bar.sync`` and ``bar.arrive``.

A named barrier counts *threads*. It completes when as many have arrived as the
instructions name, and is then ready for its next round. Without a count it waits for
the whole CTA, except for threads that have exited.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fp4ref.errors import HardwareFault
from fp4ref.hardware.smem import reach_barrier

if TYPE_CHECKING:
    from fp4ref.hardware.sm import Blocked, Cta, Warp

COUNT = 16


class NamedBarrierFault(HardwareFault):
    """A named barrier was used with a bad id or thread count."""


@dataclass
class NamedBarriers:
    """State of one CTA's barriers."""

    arrived: list[int] = field(default_factory=lambda: [0] * COUNT)
    threads: list[int | None] = field(default_factory=lambda: [0] * COUNT)
    rounds: list[int] = field(default_factory=lambda: [0] * COUNT)

    def arrive(self, warp: Warp, barrier: int, threads: int | None) -> int:
        """Count one warp in; returns the round it belongs to."""
        reach_barrier(warp)
        bad_count = threads is not None and (threads <= 0 or threads % 32)
        if not 0 <= barrier < COUNT or bad_count:
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
        self.settle(warp.cta.live_threads)
        return this_round

    def settle(self, live_threads: int) -> None:
        """Complete every round that has its threads; a warp may have exited."""
        for barrier, arrived in enumerate(self.arrived):
            threads = self.threads[barrier]
            if arrived and arrived >= (live_threads if threads is None else threads):
                self.arrived[barrier] = 0
                self.rounds[barrier] += 1


@dataclass(frozen=True, slots=True)
class NamedBarrierWait:
    """A warp waits for a round to complete."""

    cta: Cta
    barrier: int
    this_round: int

    def ready(self) -> bool:
        """Whether the round is complete."""
        return self.cta.named_barriers.rounds[self.barrier] > self.this_round

    def describe(self) -> str:
        """Barrier id and how many threads came."""
        barriers, b = self.cta.named_barriers, self.barrier
        threads = barriers.threads[b]
        wanted = self.cta.live_threads if threads is None else threads
        return (
            f"named barrier {b}: {barriers.arrived[b]} of {wanted} threads have arrived"
        )

    def released_by(self) -> str:
        """Who is missing is not known: any warp may arrive."""
        return "the warps that have not arrived"


def sync(
    warp: Warp, barrier: int, threads: int | None = None
) -> Generator[Blocked, None, None]:
    """``bar.sync barrier, threads``: arrive and wait for the others.

    Without `threads`, for every thread of the CTA that has not exited.
    """
    this_round = warp.cta.named_barriers.arrive(warp, barrier, threads)
    warp.record("bar.sync", {"barrier": barrier, "threads": threads})
    wait = NamedBarrierWait(warp.cta, barrier, this_round)
    if not wait.ready():
        yield wait


def arrive(warp: Warp, barrier: int, threads: int) -> None:
    """``bar.arrive barrier, threads``: arrive and go on."""
    warp.cta.named_barriers.arrive(warp, barrier, threads)
    warp.record("bar.arrive", {"barrier": barrier, "threads": threads})
