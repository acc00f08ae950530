"""The conformance page says what the recorded results say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_is_the_recorded_results() -> None:
    module = runpy.run_path(str(ROOT / "conformance" / "run.py"))
    recorded = json.loads((ROOT / "conformance" / "results.json").read_text())
    rows = [module["Row"](**row) for row in recorded["rows"]]
    assert (ROOT / "docs" / "conformance.md").read_text() == module["render"](rows)
    assert [r.kernel for r in rows] == [e.kernel for e in module["entries"]()]
