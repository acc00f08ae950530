"""notebook_outputs: what every notebook's outputs must be, whoever ran it."""

from __future__ import annotations

import re
from typing import Any

from fp4ref.lessons.notebook_run import checks_of

MOST_SECONDS = 180
"""For a whole notebook, on two busy cores."""

_ADDRESS = re.compile(r"(?:object|function) .*\bat 0x[0-9a-f]{6,}")


def check_verdicts(notebook: Any) -> None:
    """Every blank fails and every solution passes."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        verdicts = [passed for _, passed in checks_of(cell)]
        if "exercise" in tags:
            assert verdicts == [False], f"{cell.id}: the blank passes"
        elif "solution" in tags:
            assert verdicts == [True], f"{cell.id}: the solution does not pass"


def texts(cell: Any) -> str:
    """What a cell prints and shows as text."""
    found = []
    for output in cell.get("outputs", []):
        found.append(output.get("text", ""))
        found.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join(found)


def check_outputs(notebook: Any) -> None:
    """Verdicts as they must be, nothing on stderr, no address in any text."""
    check_verdicts(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        complaints = [o["text"] for o in cell.outputs if o.get("name") == "stderr"]
        assert not complaints, f"{cell.id} writes to stderr: {complaints[0][:500]}"
        assert not _ADDRESS.search(texts(cell)), f"{cell.id} shows an address"
