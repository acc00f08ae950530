"""The workflow: nothing is published that the tests have not passed everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import rotation

yaml = pytest.importorskip("yaml", reason="PyYAML is in the extra 'book'")
ROOT = Path(__file__).parents[1]
PYTHONS = {
    text.rpartition(" :: ")[2]
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "classifiers"
    ]
    if text.startswith("Programming Language")
}


def jobs() -> dict[str, Any]:
    path = ROOT / ".github/workflows/tests_and_book.yml"
    return dict(yaml.safe_load(path.read_text("utf-8"))["jobs"])


def test_the_tests_run_on_every_supported_python_and_processor() -> None:
    test = jobs()["test"]
    assert "make test" in [step.get("run") for step in test["steps"]]
    matrix = test["strategy"]["matrix"]
    assert set(matrix["python"]) == PYTHONS >= {"3.11", "3.12", "3.13"}
    assert {"-arm" in runner for runner in matrix["runner"]} == {False, True}


def test_the_book_is_published_after_the_tests() -> None:
    assert jobs()["build"]["needs"] == "test"
    assert jobs()["publish"]["needs"] == "build"


@pytest.mark.xdist_group("one worker")
def test_a_group_of_tests_has_a_name_for_the_workers(request) -> None:
    """Without it each worker makes for itself what a group shares: the site, say."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process: start pytest with -n 2 --dist loadgroup")
    assert request.node.nodeid.endswith("@one worker")


@pytest.mark.parametrize(("cases", "count"), [(2, 1), (10, 3), (12, 5), (3, 5)])
def test_every_case_of_a_rotating_test_has_its_day(cases: int, count: int) -> None:
    days = range(739000, 739000 - (-cases // count))
    union = set().union(*(rotation.of_day(day, cases, count) for day in days))
    assert union == set(range(cases))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("case", range(3))
def test_one_case_of_three_runs_today(case: int, request) -> None:
    of_this_test = [
        item
        for item in request.session.items
        if item.originalname == request.node.originalname
    ]
    soak = [item for item in of_this_test if item.get_closest_marker("soak")]
    assert len(of_this_test) - len(soak) <= 1
