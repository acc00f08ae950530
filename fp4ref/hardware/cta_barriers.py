"""cta_barriers: the threads that have arrived at the sixteen barriers of a CTA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fp4ref.errors import HardwareFault

COUNT = 16


class NamedBarrierFault(HardwareFault):
    """A named barrier was used with a bad id or thread count."""


@dataclass
class Ballot:
    """What the threads of one round of ``bar.red`` say.

    Attributes
    ----------
    threads, true
        How many have voted, and how many of them with a true predicate.
    """

    threads: int = 0
    true: int = 0


@dataclass
class NamedBarriers:
    """State of one CTA's barriers."""

    arrived: list[int] = field(default_factory=lambda: [0] * COUNT)
    threads: list[int | None] = field(default_factory=lambda: [0] * COUNT)
    rounds: list[int] = field(default_factory=lambda: [0] * COUNT)
    ballots: list[Ballot | None] = field(default_factory=lambda: [None] * COUNT)

    def arrive(
        self,
        barrier: int,
        threads: int | None,
        *,
        live_threads: int,
        who: str,
        votes: Sequence[bool] | None = None,
    ) -> tuple[int, Ballot | None]:
        """Count one warp in; returns the round it belongs to, and its ballot.

        Parameters
        ----------
        votes
            The predicates of the warp's threads, for a reduction.

        Raises
        ------
        NamedBarrierFault
            A bad id or thread count, or another count than earlier in the round, or
            a reduction among other arrivals.
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
        ballot = self._vote(barrier, votes, who)
        this_round = self.rounds[barrier]
        self.threads[barrier] = threads
        self.arrived[barrier] += 32
        self.settle(live_threads)
        return this_round, ballot

    def _vote(
        self, barrier: int, votes: Sequence[bool] | None, who: str
    ) -> Ballot | None:
        """Add a warp's predicates to the round's; None for a round without them."""
        ballot = self.ballots[barrier]
        if not self.arrived[barrier]:
            ballot = self.ballots[barrier] = None if votes is None else Ballot()
        elif (ballot is None) != (votes is None):
            kinds = ("bar.red", "bar.sync or bar.arrive")
            here, earlier = kinds if votes is not None else kinds[::-1]
            raise NamedBarrierFault(
                f"barrier {barrier}: {here} here, {earlier} earlier in the same round",
                who=who,
                rule="bar.red is not mixed with bar.sync and bar.arrive on a barrier "
                "that is in use [PTX: bar]",
                remedy="let all warps of the round execute bar.red, or use two ids",
            )
        if ballot is not None and votes is not None:
            ballot.threads += len(votes)
            ballot.true += sum(votes)
        return ballot

    def settle(self, live_threads: int) -> None:
        """Complete every round that has its threads; a warp may have exited."""
        for barrier, arrived in enumerate(self.arrived):
            threads = self.threads[barrier]
            if arrived and arrived >= (live_threads if threads is None else threads):
                self.arrived[barrier] = 0
                self.rounds[barrier] += 1
