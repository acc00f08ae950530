"""conformance_page: what is recorded of each kernel, and the page made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import notes

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"


@dataclass(frozen=True)
class Row:
    """One kernel and its outcome."""

    kernel: str
    source: str
    exercises: str
    cases: str
    result: str
    seconds: float
    date: str


def render(rows: list[Row]) -> str:
    """Write the page."""
    lines = [
        "# Conformance",
        "",
        "Compiled kernels of other authors, executed on the emulated SM. They know",
        "nothing of it, so their right results are an outside witness of the hardware",
        "model. Schedules: eager, late and a seed. Made by `make conformance`.",
        "",
        "| kernel | source | exercises | cases | result | seconds | date |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [
            row.kernel,
            row.source,
            row.exercises,
            row.cases,
            row.result,
            f"{row.seconds:.1f}",
            row.date,
        ]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    lines += ["", "Notes:", "", *(f"- {note}" for note in notes.NOTES)]
    return "\n".join(lines) + "\n"


def write(rows: list[Row]) -> None:
    """Write the record and the page, after each row: a run may take hours."""
    versions = {p: metadata.version(p) for p in ("numpy", "numba", "nvidia-cutlass")}
    record = {"versions": versions, "rows": [asdict(row) for row in rows]}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(render(rows))


def recorded_rows() -> list[dict[str, Any]]:
    """Read the rows of the last run."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text())["rows"]
    return rows
