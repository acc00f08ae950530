"""record: what every removal came to, as written down by a run of all of them.

``data/removals.json`` has a row for each operation that can be left out, in the
emulator and in the compiled text. ``python -m fp4ref.evidence.removals`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fp4ref.evidence.removals.removal import Outcome, Removal, remove, remove_in
from fp4ref.hardware import source_line

FILE = Path(source_line.__file__).parents[1] / "data" / "removals.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One removal.

    Attributes
    ----------
    ptx, shipped
        What noticed under each ordering; `shipped` is None where they cannot differ:
        what counts arrivals and bytes knows no ordering, and ``"shipped"`` only allows
        more.
    seconds
        How long the runs took.
    """

    removal: Removal
    ptx: Outcome
    shipped: Outcome | None
    seconds: float

    @property
    def survives(self) -> bool:
        """Whether nothing notices with certainty that the operation is gone."""
        return not self.ptx.caught or self.ptx.by == "review"

    def same(self, other: Row) -> bool:
        """Whether two runs came to the same."""
        return (self.removal, self.ptx, self.shipped) == (
            other.removal,
            other.ptx,
            other.shipped,
        )


def depends_on_ordering(outcome: Outcome) -> bool:
    """Whether ``ordering="shipped"`` could come to something else."""
    return outcome.by == "review" or outcome.what.startswith("RaceFault")


def computed(removal: Removal, seconds: float = 0.0) -> Row:
    """Make one removal, and say what it came to."""
    ptx = remove(removal)
    shipped = None
    if depends_on_ordering(ptx):
        shipped = remove_in(ptx.case, removal, "shipped")
    return Row(removal, ptx, shipped, seconds)


@cache
def recorded() -> Mapping[Removal, Row]:
    """Return the rows of the record."""
    return {row.removal: row for row in map(_row, json.loads(FILE.read_text("utf-8")))}


def write(rows: Iterable[Row]) -> None:
    """Write the record, a row on a line."""
    lines = [json.dumps(_values(row)) for row in sorted(rows, key=lambda r: r.removal)]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    recorded.cache_clear()


def _values(row: Row) -> dict[str, Any]:
    values = asdict(row.removal)
    values |= {"ptx": asdict(row.ptx)}
    values |= {"shipped": asdict(row.shipped) if row.shipped else None}
    return values | {"seconds": round(row.seconds, 1)}


def _row(values: dict[str, Any]) -> Row:
    seconds = values.pop("seconds")
    ptx, shipped = values.pop("ptx"), values.pop("shipped")
    return Row(
        Removal(**values),
        Outcome(**ptx),
        Outcome(**shipped) if shipped else None,
        seconds,
    )
