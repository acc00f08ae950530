"""The conformance page says what the recorded results say."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import fp4ref.ptx  # noqa: F401  registers the instructions
from fp4ref.ptx.run.registry import find

ROOT = Path(__file__).parents[1]


def test_the_page_is_the_recorded_results() -> None:
    module = runpy.run_path(str(ROOT / "conformance" / "run.py"))
    recorded = json.loads((ROOT / "conformance" / "results.json").read_text())
    page = module["conformance_page"]
    rows = [page.Row(**row) for row in recorded["rows"]]
    assert (ROOT / "docs" / "conformance.md").read_text() == page.render(rows)
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


def triton() -> tuple[dict[str, Any], dict[str, Any]]:
    """The page's module, which needs no Triton, and what the last run recorded."""
    module = runpy.run_path(str(ROOT / "conformance" / "triton_page.py"))
    return module, json.loads(module["RECORD"].read_text())


def test_the_page_of_triton_is_the_record() -> None:
    module, recorded = triton()
    assert module["PAGE"].read_text() == module["render"](recorded)
    names = [(row["author"], row["name"]) for row in recorded["rows"]]
    assert len(set(names)) == len(names)


def test_every_kernel_passes_and_every_wrong_rule_is_seen() -> None:
    _, recorded = triton()
    passed = Counter(r["author"] for r in recorded["rows"] if r["result"] == "passed")
    assert passed.total() == len(recorded["rows"])
    assert passed["Triton"] >= 40
    assert passed["Gluon"] >= 6
    assert all(recorded["mutants"].values())


def test_no_form_of_a_recorded_kernel_is_refused() -> None:
    """A form that is taken away shows without Triton."""
    _, recorded = triton()
    opcodes = {opcode for row in recorded["rows"] for opcode in row["opcodes"]}
    assert len(opcodes) > 150
    assert not [opcode for opcode in opcodes if find(opcode) is None]
