"""Part 7. named_barrier: the sixteen CTA barriers, ``bar.sync`` and ``bar.arrive``.

A named barrier counts *threads*. It completes when as many have arrived as the
instructions name, and is then ready for its next round. Without a count it waits for
the whole CTA, except for threads that have exited. ``bar.red`` is ``bar.sync`` that
also combines a predicate of each thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from fp4ref.hardware.cta_barriers import Ballot
from fp4ref.hardware.sm import Blocked, Cta, Warp
from fp4ref.hardware.smem import reach_barrier
from fp4ref.hardware.timing import Timed

WAITS = ("bar.sync", "bar.red")
"""Operations that arrive and then wait."""


@dataclass(frozen=True, slots=True)
class NamedBarrierWait:
    """A warp waits for a round to complete."""

    cta: Cta
    barrier: int
    this_round: int

    def ready(self) -> bool:
        """Whether the round is complete."""
        return self.cta.named_barriers.rounds[self.barrier] > self.this_round

    def visible_at(self, clock: Timed) -> float:
        """When the round is complete for a waiter."""
        key = self.cta.place, self.barrier, self.this_round
        return clock.marked(key, clock.durations.named_barrier)

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


def _arrive(
    warp: Warp,
    barrier: int,
    threads: int | None,
    reduction: str = "",
    votes: Sequence[bool] = (),
) -> tuple[int, Ballot | None]:
    """Count a warp in; returns the round it belongs to, and that round's ballot."""
    reach_barrier(warp)
    this_round, ballot = warp.cta.named_barriers.arrive(
        barrier,
        threads,
        live_threads=warp.cta.live_threads,
        who=warp.who,
        reduction=reduction,
        votes=votes,
    )
    key = (warp.cta.place, barrier)
    warp.machine.order.arrive(warp.actor, key, this_round, "cta")
    if warp.machine.clock is not None:
        warp.machine.clock.mark((*key, this_round))
    return this_round, ballot


def _wait(
    warp: Warp, operation: str, barrier: int, threads: int | None, this_round: int
) -> Generator[Blocked, None, None]:
    """Wait until a round is complete."""
    step = warp.record(operation, {"barrier": barrier, "threads": threads})
    yield from warp.wait(NamedBarrierWait(warp.cta, barrier, this_round))
    warp.prolong(step)
    key = (warp.cta.place, barrier)
    warp.machine.order.leave(warp.actor, key, this_round, "cta")


def sync(
    warp: Warp, barrier: int, threads: int | None = None
) -> Generator[Blocked, None, None]:
    """``bar.sync barrier, threads``: arrive and wait for the others.

    Without `threads`, for every thread of the CTA that has not exited.
    """
    this_round, _ = _arrive(warp, barrier, threads)
    yield from _wait(warp, "bar.sync", barrier, threads, this_round)


def reduce(
    warp: Warp,
    operation: str,
    barrier: int,
    votes: Sequence[bool],
    threads: int | None = None,
) -> Generator[Blocked, None, Ballot]:
    """``bar.red.operation barrier, threads``: arrive with predicates, and wait.

    Parameters
    ----------
    operation
        ``popc``, ``and`` or ``or``, the same of all warps of a round.
    votes
        The predicates of the warp's threads that have not exited.

    Returns
    -------
    Ballot
        How many threads of the round came, and how many with a true predicate:
        ``.popc`` is that number, ``.and`` is true if it is all, ``.or`` if it is any.
    """
    this_round, ballot = _arrive(warp, barrier, threads, operation, votes)
    assert ballot is not None
    yield from _wait(warp, "bar.red", barrier, threads, this_round)
    return ballot


def arrive(warp: Warp, barrier: int, threads: int) -> None:
    """``bar.arrive barrier, threads``: arrive and go on."""
    _arrive(warp, barrier, threads)
    warp.record("bar.arrive", {"barrier": barrier, "threads": threads})
