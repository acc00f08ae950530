"""difference: the first byte in which two runs differ, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fp4ref.evidence.hardware_events import Key
from fp4ref.trace import Event


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte that differs, with its place in the matrices."""

    key: Key
    coordinates: str
    values: tuple[str, str]
    events: tuple[Event | None, Event | None]

    def __str__(self) -> str:
        lines = [f"{self.key}: {self.coordinates}"]
        for name, value, event in zip("ab", self.values, self.events, strict=True):
            at = (
                f" (step {event.step}, {event.source or event.kernel_source})"
                if event
                else ""
            )
            lines.append(f"  {name}: {value}{at}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; a step is -1 and a source empty where there is no event."""
        return {
            "event": str(self.key),
            "where": self.coordinates,
            "values": list(self.values),
            "steps": [event.step if event else -1 for event in self.events],
            "sources": [
                (event.source or event.kernel_source) if event else ""
                for event in self.events
            ],
        }
