"""node: one event of a timed trace, and what it comes after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fp4ref.trace import Event, Range


class Release(NamedTuple):
    """One of the things that end a wait.

    Attributes
    ----------
    step
        At whose end it happens.
    latencies
        The durations that it takes to be seen.
    by
        Step of what does it: an arrival begins where its warp's event before ends.
    """

    step: int
    latencies: tuple[str, ...]
    by: int

    def later(self, *latencies: str) -> Release:
        """Return it with more durations."""
        return self._replace(latencies=(*self.latencies, *latencies))


@dataclass(slots=True)
class Node:
    """One event and what comes before it.

    Attributes
    ----------
    event
        Of the trace; a note has no node.
    prior
        Steps at whose end it begins: of the warp's event before, of the issue, or of
        the CTAs that had the SMs before.
    waits
        What it waits for; of work, what must have landed when it starts.
    own
        The durations that its own arrival takes to release it.
    before
        Of work: steps of work that lands no later.
    registers
        That each thread has loaded, of a ``tcgen05.wait::ld``.
    again
        Whether the warp's event before was the same operation.
    first
        Whether it begins a CTA on an SM that had another one.
    cold
        Whether a load brings bytes that no load has brought before.
    """

    event: Event
    prior: list[int] = field(default_factory=list)
    waits: list[Release] = field(default_factory=list)
    own: tuple[str, ...] = ()
    before: list[int] = field(default_factory=list)
    registers: int = 0
    again: bool = False
    first: bool = False
    cold: bool = False

    @property
    def writes(self) -> list[Range]:
        """What it writes, without the words of mbarriers."""
        words = {(change.space, change.address) for change in self.event.barrier}
        return [w for w in self.event.writes if (w.space, w.start) not in words]

    def began(self) -> list[Release]:
        """Say when it began, by the steps at whose end it did."""
        latencies = ("cta_start",) if self.first else ()
        return [Release(step, latencies, self.event.step) for step in self.prior]
