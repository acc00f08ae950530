"""reports: where the mistakes of the gallery were seen, outside of this package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """One public report.

    Attributes
    ----------
    id
        As in the field of a row.
    threads
        ``owner/repository#number``; empty where a source is its own report.
    """

    id: str
    what: str
    threads: tuple[str, ...]

    def __str__(self) -> str:
        where = f" ({', '.join(self.threads)})" if self.threads else ""
        return f"{self.what}{where}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def _read() -> dict[str, Report]:
    file = resources.files("fp4ref.evidence.faults") / "reports.toml"
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        id: Report(id, row["what"], tuple(row["threads"])) for id, row in rows.items()
    }


REPORTS: Mapping[str, Report] = MappingProxyType(_read())
"""Every report, by its id."""
