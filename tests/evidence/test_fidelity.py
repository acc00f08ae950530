"""fidelity: every row is complete, and its test fails when its rule is wrong."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from mutate import changed_source

from fp4ref.evidence.fidelity import RULES, Evidence, Rule, select, shares
from fp4ref.hardware.advisory import Advisory

ROOT = Path(__file__).parents[2]
MEASURED = Evidence.MEASURED
CUTE_KERNEL = "tests/cutlass/test_mma_shapes.py"
"""Of a small kernel of ours: CuTe's host code says where D is."""


Found = dict[str, dict[str, Any]]


def outcomes(rules: Sequence[Rule]) -> Found:
    """What the test of each row did with that row's rule made wrong.

    In a process of its own: what a wrong rule leaves behind goes with it.
    """
    rows = [
        {"id": r.id, "checked_by": r.checked_by, "mutation": asdict(r.mutation)}
        for r in rules
    ]
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "evidence" / "mutate.py"), "-"],
        input=json.dumps(rows),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found: Found = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def broken(request: pytest.FixtureRequest) -> Found:
    """The selected rows, all in one process."""
    return outcomes(
        [
            item.callspec.params["rule"]
            for item in request.session.items
            if "broken" in getattr(item, "fixturenames", ())
        ]
    )


SLOW = ("test_execute_72a", "test_mxf8f6f4", "test_mma_shapes")
"""Kernels of pairs: a row of theirs is tried every sixth day, another every fourth;
all in the long run."""


def _rows() -> Iterator[object]:
    day = datetime.date.today().toordinal()
    for i, rule in enumerate(RULES):
        turns = 6 if any(name in rule.checked_by for name in SLOW) else 4
        waits = i % turns != day % turns
        yield pytest.param(rule, id=rule.id, marks=[pytest.mark.soak] if waits else [])


@pytest.mark.xdist_group("fidelity")
@pytest.mark.parametrize("rule", list(_rows()))
def test_the_named_test_fails_when_the_rule_is_wrong(rule, broken):
    found = broken[rule.id]
    if found["skipped"] and not found["passed"]:
        pytest.skip("; ".join(sorted(set(found["skipped"]))))
    assert not found["slip"], "the mutation itself fails, not the rule"
    assert found["seen"], f"{rule.mutation} was not seen by {found['passed']}"
    if stopped := re.search("stopped by (.+)", rule.killed_by):
        assert stopped[1] in found["seen"]
    elif "its own check" in rule.killed_by:
        # The example's host code compares D and prints its verdict.
        assert "Disposition: Failed" in found["seen"]
    elif "CuTe's layout" in rule.killed_by:
        assert re.search(r"[1-9]\d* wrong", found["seen"])
    elif rule.killed_by:
        assert "Arrays are not equal" in found["seen"]


@pytest.mark.xdist_group("fidelity")
def test_a_right_rule_fails_nothing_and_a_slip_is_no_proof():
    row = {rule.id: rule for rule in RULES}

    def changed(id: str, wrong: str = "") -> Rule:
        right = row[id].mutation.right
        return replace(
            row[id], mutation=replace(row[id].mutation, wrong=wrong or right)
        )

    found = outcomes(
        [changed("e2m1-nibbles"), changed("poison"), changed("elect", "1 / 0")]
    )
    for id in ("e2m1-nibbles", "poison"):
        assert not found[id]["seen"]
        assert not found[id]["slip"]
        assert found[id]["passed"] or found[id]["skipped"]
    assert "ZeroDivisionError" in found["elect"]["slip"]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_mutation_changes_one_place_of_one_function(rule):
    assert rule.mutation.right != rule.mutation.wrong
    compile(changed_source(rule.mutation), rule.mutation.code, "exec")


def test_rows_are_complete_and_differ():
    assert len(RULES) >= 60
    assert len({(r.operation, r.rule) for r in RULES}) == len(RULES)
    assert len({r.id for r in RULES}) == len(RULES)
    for rule in RULES:
        values = json.loads(json.dumps(rule.to_dict()))
        optional = {"advisory", "killed_by", "default_gemm"}
        assert all(text for name, text in values.items() if name not in optional)


def test_an_outside_kernel_is_named_with_what_shows_the_fault():
    witnessed = [rule for rule in RULES if rule.killed_by]
    ours = [rule for rule in witnessed if rule.checked_by.startswith(CUTE_KERNEL)]
    outside = select(evidence=Evidence.OUTSIDE_KERNEL)
    assert set(witnessed) - set(ours) == set(outside)
    kernels = {"tests/cutlass/test_execute.py": "CUTLASS 72b: ",
               "tests/cutlass/test_execute_72a.py": "CUTLASS 72a: ",
               "tests/cutlass/test_execute_73.py": "CUTLASS 73: ",
               "tests/cutlass/test_mxf8f6f4.py": "CUTLASS 72c: ",
               CUTE_KERNEL: "CuTe kernel mma_shapes.cu: ",
               "tests/ptx/test_triton.py": "Triton's dot_scaled: "}  # fmt: skip
    for rule in witnessed:
        assert rule.killed_by.startswith(kernels[rule.checked_by.split("::")[0]])
    assert len({(r.mutation.code, r.mutation.wrong) for r in witnessed}) == len(
        witnessed
    )


def test_sixteen_rules_of_pairs_and_clusters_have_a_kernel_that_needs_them():
    """Of code that no kernel of one CTA executes."""
    files = ("execute_72a.py", "mxf8f6f4.py", "mma_shapes.py")
    tests = [rule.checked_by for rule in RULES if rule.killed_by]
    counts = [sum(f"test_{file}::" in test for test in tests) for file in files]
    assert all(counts)
    assert sum(counts) >= 16


def test_a_measured_rule_is_checked_on_what_was_measured():
    files = {rule.checked_by.split("::")[0] for rule in select(evidence=MEASURED)}
    assert files == {
        "tests/device/test_doubles_probe.py",
        "tests/device/test_replay.py",
        "tests/device/test_forms.py",
        "tests/hardware/test_tensor_map.py",  # a map that an H200 made
        "tests/ptx/test_card_values.py",
    }


def test_a_measurement_names_the_card_and_it_is_no_blackwell_mma():
    measured = select(evidence=Evidence.MEASURED)
    assert measured
    for rule in measured:
        assert re.search(r"\b(H200|B200)\b", rule.source)
        assert "tcgen05" not in rule.operation  # Hopper has none


def test_mma_arithmetic_says_that_it_is_a_model():
    rules = select(operation="tcgen05.mma arithmetic")
    assert len(rules) >= 8
    for rule in rules:
        if rule.evidence is not Evidence.ASSUMED:
            assert rule.evidence is Evidence.PUBLISHED_MODEL
            assert "MMA-Sim model" in rule.source
            assert "not measured here on a Blackwell card" in rule.source


def test_shares_add_up():
    assert sum(shares().values()) == pytest.approx(1)
    assert list(shares()) == list(Evidence)
    assert shares()[Evidence.DOCUMENTED] > 0.3


def test_select_filters_by_both():
    assert select() == list(RULES)
    for rule in select(operation="mbarrier", evidence=Evidence.ASSUMED):
        assert "mbarrier" in rule.operation
        assert rule.evidence is Evidence.ASSUMED


def test_every_advisory_has_one_rule() -> None:
    listed = [rule.advisory for rule in RULES if rule.advisory]
    assert sorted(listed) == sorted(advisory.value for advisory in Advisory)
