"""fidelity: every row is complete and its test exists."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from fp4ref.fidelity import RULES, Evidence, select, shares
from fp4ref.hardware.advisory import Advisory

ROOT = Path(__file__).parents[1]


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.checked_by.split("::")[-1])
def test_the_named_test_exists(rule):
    path, name = rule.checked_by.split("::")
    assert name.startswith("test_")
    assert name in names_in(path)


def test_rows_are_complete_and_differ():
    assert 60 <= len(RULES) <= 120
    assert len({(r.operation, r.rule) for r in RULES}) == len(RULES)
    for rule in RULES:
        values = json.loads(json.dumps(rule.to_dict()))
        assert all(text for name, text in values.items() if name != "advisory")


def test_an_outside_witness_is_a_kernel_that_others_wrote():
    witnessed = select(evidence=Evidence.OUTSIDE_KERNEL)
    assert len(witnessed) >= 6
    assert {r.checked_by.split("::")[0] for r in witnessed} == {
        "tests/cutlass/test_execute.py"
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
