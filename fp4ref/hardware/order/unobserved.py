"""unobserved: the engine of a machine that is not watched: every call does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fp4ref.hardware.order.knowledge import Actor, Ids, Place
from fp4ref.hardware.order.race import Findings


class Unobserved:
    """Takes what the units tell and keeps nothing."""

    watches = False

    def __init__(self) -> None:
        self.findings = Findings()
        self._ids = Ids()

    def actor(self, who: str, place: Place, source: Callable[[], str]) -> Actor:
        """Return books that stay empty."""
        return Actor(self._ids, who, place, source)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that does nothing; of operations it returns this."""
        setattr(self, name, self._nothing)
        return self._nothing

    def _nothing(self, *args: Any, **named: Any) -> Any:
        return self
