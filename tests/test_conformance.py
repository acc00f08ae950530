"""The conformance page says what the recorded results say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def test_the_page_is_the_recorded_results() -> None:
    module = runpy.run_path(str(ROOT / "conformance" / "run.py"))
    recorded = json.loads((ROOT / "conformance" / "results.json").read_text())
    rows = [module["Row"](**row) for row in recorded["rows"]]
    assert (ROOT / "docs" / "conformance.md").read_text() == module["render"](rows)
    assert [r.kernel for r in rows] == [e.kernel for e in module["entries"]()]


def findings() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance" / "findings.py"))


def test_the_page_of_findings_is_the_record_with_its_arguments() -> None:
    module = findings()
    page = module["render"](module["recorded"](), module["arguments"]())
    assert (ROOT / "docs" / "shipped_order.md").read_text() == page


def test_every_finding_has_one_argument_and_every_argument_a_finding() -> None:
    module = findings()
    argued, used = module["arguments"](), set()
    for row in module["recorded"]()["kernels"]:
        for ordering in module["ORDERINGS"]:
            for found in row[ordering]["findings"]:
                about = [
                    i
                    for i, each in enumerate(argued)
                    if module["is_argued"](each, found)
                ]
                assert len(about) == 1, (row["kernel"], found)
                used.update(about)
    assert used == set(range(len(argued)))


def test_no_shipped_kernel_is_in_error_where_shipped_practice_counts() -> None:
    for row in findings()["recorded"]()["kernels"]:
        assert row["shipped"]["verdict"] in ("clean", "review"), row["kernel"]
        assert not row["shipped"]["unsure"]
        assert not row["ptx"]["unsure"]
