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
    operation
        ``popc``, ``and`` or ``or``.
    threads, true
        How many have voted, and how many of them with a true predicate.
    """

    operation: str
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
        reduction: str = "",
        votes: Sequence[bool] = (),
    ) -> tuple[int, Ballot | None]:
        """Count one warp in; returns the round it belongs to, and its ballot.

        Parameters
        ----------
        reduction, votes
            The operation of ``bar.red`` and the predicates of the warp's threads.

        Raises
        ------
        NamedBarrierFault
            A bad id or thread count, or another count than earlier in the round, or
            a reduction among other arrivals or of another kind.
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
        ballot = self._vote(barrier, reduction, votes, who)
        this_round = self.rounds[barrier]
        self.threads[barrier] = threads
        self.arrived[barrier] += 32
        self.settle(live_threads)
        return this_round, ballot

    def _vote(
        self, barrier: int, reduction: str, votes: Sequence[bool], who: str
    ) -> Ballot | None:
        """Add a warp's predicates to the round's; None for a round without them."""
        if not self.arrived[barrier]:
            self.ballots[barrier] = Ballot(reduction) if reduction else None
        ballot = self.ballots[barrier]
        earlier = "" if ballot is None else ballot.operation
        if reduction != earlier:
            raise NamedBarrierFault(
                f"barrier {barrier}: {_named(reduction)} here, {_named(earlier)} "
                "earlier in the same round",
                who=who,
                rule="bar.red is not mixed with bar.sync and bar.arrive on a barrier "
                "that is in use [PTX: bar], nor with another reduction [an H200]",
                remedy="let all warps of the round execute one bar.red, or use two ids",
            )
        if ballot is not None:
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


def _named(reduction: str) -> str:
    return f"bar.red.{reduction}" if reduction else "bar.sync or bar.arrive"
