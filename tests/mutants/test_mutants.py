"""mutants: the draw, its record, and a change that a test sees."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import run
from drawn import DRAWN, Mutant, explained, mutants, results
from one_mutant import First, Verdict
from touching import CALL, watched
from which_tests import Touching

ROOT = Path(__file__).parents[2]
TEXT = """\
from functools import cache

MOST = 4


@cache
def least(values):
    \"\"\"Return the least.\"\"\"
    found = MOST
    for value in values:
        if value < found:
            found = value
        elif value == 0:
            return 0
    return found
"""


def at(line: int, new: str) -> Mutant:
    lines = TEXT.splitlines(True)
    return Mutant("fp4ref/layout/x.py", lines[line - 1], new, 0, line, "by hand")


def test_a_mutant_is_found_by_the_text_of_its_lines() -> None:
    mutant = at(11, "        if value <= found:\n")
    later = "# a line before\n" + TEXT
    assert mutant.first_line(later) == 12
    assert mutant.changed(later) == later.replace("value <", "value <=")
    with pytest.raises(ValueError, match="is not there any more; draw again"):
        mutant.changed(later.replace("found", "best"))


def test_of_equal_lines_it_is_the_one_that_was_drawn() -> None:
    mutant = Mutant("fp4ref/layout/x.py", "y = 1\n", "y = 2\n", 1, 3, "by hand")
    assert mutant.changed("y = 1\nyy = 1\ny = 1\n") == "y = 1\nyy = 1\ny = 2\n"


@pytest.mark.parametrize(("line", "before"), [(11, 11), (12, 12), (13, 11), (6, 9)])
def test_a_call_stands_before_the_changed_statement(line: int, before: int) -> None:
    """Before the head of an ``elif``, and for a decorator, in the function below."""
    mutant = at(line, "")
    lines = watched(TEXT, [mutant]).splitlines()
    (call,) = (i for i, text in enumerate(lines, 1) if CALL in text)
    assert lines[call] == TEXT.splitlines()[before - 1]
    compile("\n".join(lines), "x.py", "exec")


def test_likely_tests_come_first_and_untouched_ones_not_at_all() -> None:
    mutant = at(11, "")
    cost = {"a_test.py::dear": 2.0, "test_x.py::one": 3.0, "test_y.py::other": 0.1}
    touched = {mutant.id: ["a_test.py::dear", "test_x.py::one"]}
    found = Touching({"cost": cost, "touched": touched})
    assert found.tests(mutant) == [["test_x.py::one", "a_test.py::dear"]]
    nobody = Touching({"cost": cost, "touched": {}})
    assert len([t for part in nobody.tests(mutant) for t in part]) == 3


def test_lines_that_are_gone_are_known_without_an_error(tmp_path: Path) -> None:
    mutant = at(11, "")
    assert not mutant.is_in(tmp_path)
    file = tmp_path / mutant.file
    file.parent.mkdir(parents=True)
    file.write_text(TEXT, encoding="utf-8")
    assert mutant.is_in(tmp_path)
    file.write_text(TEXT.replace("found", "best"), encoding="utf-8")
    assert not mutant.is_in(tmp_path)


def test_a_survivor_meets_the_other_rooms_that_touch_its_line(monkeypatch) -> None:
    asked = []

    def touching(work: Path, room: str) -> Touching:
        touched = {mutant.id: ["t"]} if room in ("gemm", "ptx") else {}
        return Touching({"cost": {"t": 1.0}, "touched": touched})

    def tried(mutant: Mutant, tree: Path, measured: Touching) -> Verdict:
        asked.append(measured.tests(mutant))
        return Verdict("killed" if len(asked) == 2 else "survived", tests=3)

    mutant = at(11, "")
    rooms = ["gemm", "numerics", "ptx", "viz"]
    monkeypatch.setattr(run, "others", lambda tree, room: rooms)
    monkeypatch.setattr(run, "touching", touching)
    monkeypatch.setattr(run, "tried", tried)
    found = run.everywhere(mutant, Path("work"))
    assert (found.verdict, found.tests, len(asked)) == ("killed", 6, 2)


def test_a_file_that_is_named_stands_for_all_its_tests() -> None:
    found = ["b.py::two", "a.py::other", "b.py::one", "c.py::t", "a.py::wanted"]
    items = [SimpleNamespace(nodeid=test) for test in found]
    First(["a.py::wanted", "b.py"]).pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [each.nodeid for each in items] == ["a.py::wanted", "b.py::two", "b.py::one"]


def test_only_what_a_named_file_kills_gets_a_result(monkeypatch) -> None:
    drawn, kept = [at(11, ""), at(12, "")], []
    said = {
        drawn[0].id: Verdict("killed", "b.py::one"),
        drawn[1].id: Verdict("survived"),
    }
    monkeypatch.setattr(run, "mutants", lambda: [*drawn, at(13, "")])
    monkeypatch.setattr(run, "copied", lambda work: work)
    monkeypatch.setattr(run, "in_parts", lambda mutant, *_: said[mutant.id])
    monkeypatch.setattr(run, "keep_result", kept.append)
    run.run_files(Path("work"), set(said), ["b.py"])
    assert [row["id"] for row in kept] == [drawn[0].id]


def test_the_record_is_of_this_draw() -> None:
    drawn = {each.id: each for each in mutants()}
    assert len(drawn) == 300 == len(json.loads(DRAWN.read_text("utf-8"))["mutants"])
    assert {each.room for each in drawn.values()} == {
        *("hardware", "layout", "numerics", "ptx")
    }
    found = results()
    assert found.keys() <= drawn.keys()
    killed = {id for id, row in found.items() if row["verdict"] != "survived"}
    assert all(found[id]["by"] for id in killed)
    assert not explained().keys() & killed


def test_all_ran_and_of_those_that_change_something_19_of_20_are_killed() -> None:
    drawn, found, same = {each.id for each in mutants()}, results(), explained()
    assert found.keys() == drawn
    alive = {id for id, row in found.items() if row["verdict"] == "survived"}
    assert same.keys() <= alive
    assert len(drawn - alive) >= 0.95 * len(drawn - same.keys())
    assert len(same) <= 30
