"""mistake: what a usual mistake is called, what to tell of it, and its variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.reading import Reading

Change = Callable[[Reading], Reading]
Variants = Callable[[Case], Iterator[tuple[str, Change]]]


def setting(**fields: Any) -> Change:
    """Return the change that sets fields of a reading."""
    return lambda reading: replace(reading, **fields)


@dataclass(frozen=True)
class Mistake:
    """One entry of the list.

    Attributes
    ----------
    name
        Stable, for programs.
    what, cause, look
        What it is, how it comes about, and where to look.
    variants
        From a case to its forms: words for each, and what it changes. None where the
        case has no place for the mistake.
    """

    name: str
    what: str
    cause: str
    look: str
    variants: Variants


@dataclass(frozen=True)
class Variant:
    """A form of a mistake; `where` says which operand, stage or tile."""

    mistake: Mistake
    where: str
    change: Change

    def __str__(self) -> str:
        return f"{self.mistake.name} ({self.where})" if self.where else self.name

    @property
    def name(self) -> str:
        """Name of the mistake."""
        return self.mistake.name
