"""table: one table of the laboratory, and the kinds of figure that it may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

COMPILED: Final = "compiled"
DOCUMENTED: Final = "documented"
MODEL: Final = "model"
MODEL_AND_DOCUMENTED: Final = "model beside documented"
MODEL_AND_H200: Final = "model beside measured on H200"
MODEL_AND_MEASURED: Final = "model beside measured by others"


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes
    ----------
    kind
        Where its figures come from: documented by others, a model of this package, or
        a model beside what others documented or measured, or what an H200 counted; or
        from what a compiler made.
    note
        What to know before reading it.
    rows
        By key, as JSON has them; `headings` and `cells` are for reading.
    """

    id: str
    title: str
    kind: str
    note: str
    headings: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "note": self.note,
            "rows": list(self.rows),
        }
