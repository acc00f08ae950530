"""default_gemm: which rules the default GEMM needs, and what is known of these."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fp4ref.evidence.fidelity import (
    RULES,
    Evidence,
    Standing,
    known_share,
    needed_by_default,
    of_default_gemm,
    of_machine,
    standing,
    standings,
    waits_for_sm_100,
)

HERE = Path(__file__).parent
KNOWN = (Evidence.MEASURED, Evidence.OUTSIDE_KERNEL)


def test_60_percent_are_measured_or_fail_an_outside_kernel() -> None:
    rows = {rule.id: rule for rule in RULES}
    known = [id for id in needed_by_default() if rows[id].evidence in KNOWN]
    assert len(needed_by_default()) >= 60
    share = len(known) / len(needed_by_default())
    assert known_share(of_default_gemm()) == share
    assert share >= 0.6


def test_170_rules_of_the_machine_fail_an_outside_witness() -> None:
    """``test_fidelity.py`` makes each of them wrong and sees it."""
    rows = {rule.id: rule for rule in RULES}
    witnesses = of_machine()
    assert all(rows[id].mutation.code.startswith("fp4ref.hardware") for id in witnesses)
    assert all(rows[id].evidence not in KNOWN for id, by in witnesses.items() if not by)
    assert sum(map(bool, witnesses.values())) >= 170


def test_each_needed_rule_has_one_standing() -> None:
    found = standings(of_default_gemm())
    ids = [rule.id for rules in found.values() for rule in rules]
    assert sorted(ids) == sorted(needed_by_default())
    assert all(found[each] for each in Standing)


def test_what_hopper_lacks_is_the_compilers_word() -> None:
    """Its forms are refused for sm_90; a measured rule is of none of them."""
    sys.path.insert(0, str(HERE.parents[1]))
    from probes.forms.recording import recording

    def of(operation: str) -> bool:
        return waits_for_sm_100(next(r for r in RULES if r.operation == operation))

    lacking = {name.split(".")[0] for name in recording().meta["lacking"]}
    assert {"tcgen05", "clusterlaunchcontrol"} <= lacking
    for rule in RULES:
        opcode = rule.operation.split(".")[0].split()[0]
        if opcode in lacking - {"cvt", "ld", "st"}:
            assert waits_for_sm_100(rule), rule.id
        if rule.evidence is Evidence.MEASURED:
            assert not waits_for_sm_100(rule), rule.id
            assert standing(rule) is Standing.SM_90
    assert of("cvt.e2m1x2")
    assert of("tcgen05.mma")
    assert not of("mbarrier")
    assert not of("cvt.e4m3x2")


def found_for(ids: list[str]) -> dict[str, str]:
    """Break rows in a process of its own: what a wrong rule leaves goes with it."""
    command = [sys.executable, str(HERE / "default_gemm.py"), *ids]
    run = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def broken(request: pytest.FixtureRequest) -> dict[str, str]:
    """What the job has otherwise, for the selected rows, all in one process."""
    return found_for(
        [
            item.callspec.params["rule"].id
            for item in request.session.items
            if getattr(item, "originalname", "") == "test_the_record_is_what_rules_do"
        ]
    )


@pytest.mark.xdist_group("default GEMM")
@pytest.mark.rotating(2)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_record_is_what_rules_do(rule: Any, broken: dict[str, str]) -> None:
    assert broken[rule.id] == needed_by_default().get(rule.id, "")
