"""Progress: how many exercises have passed, together in the class edition only."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_outputs import check_outputs

from fp4ref import lessons
from fp4ref.lessons import progress
from fp4ref.lessons.edition import MANIFEST, NOTEBOOKS, student_edition
from fp4ref.lessons.exercise import find, ids
from fp4ref.lessons.notebook_run import checks_of, execute, read


@pytest.fixture(autouse=True)
def _nothing_has_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "_here", set())
    monkeypatch.chdir(tmp_path)


def test_a_right_answer_counts_once_and_a_wrong_one_not() -> None:
    every = len(ids())
    assert lessons.check("00.1", find("00.1").truth).more[-1] == (
        f"1 of {every} exercises have passed."
    )
    assert not lessons.check("01.3", 0)
    assert lessons.check("00.1", find("00.1").truth).more[-1].startswith("1 of ")
    assert lessons.check("01.3", find("01.3").truth).more[-1].startswith("2 of ")


def test_it_is_kept_in_the_class_edition_and_nowhere_else(tmp_path: Path) -> None:
    progress.passed("00.1")
    assert not list(tmp_path.iterdir())
    (tmp_path / MANIFEST).write_text("{}")
    progress.passed("00.2")
    progress._here.clear()  # another day, another notebook
    assert progress.passed("01.1").startswith("3 of ")


@pytest.mark.parametrize("text", ["", "{}", "[1, null]", "\x00", '["99.9"]'])
def test_a_damaged_file_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / progress.FILE).write_text(text)
    assert progress.passed("00.1").startswith("1 of ")


def test_the_next_exercise_may_be_in_the_next_notebook() -> None:
    assert progress.next_after("00.1") == "Next: 00.2."
    assert progress.next_after("00.2") == "Next: 01.1, in notebook 01."
    assert progress.next_after("09.4") == "Next: 11.1, in notebook 11."
    assert progress.next_after(ids()[-1]) == "That was the last exercise."


def test_run_all_of_the_class_edition_passes_nothing(tmp_path: Path) -> None:
    student_edition(NOTEBOOKS, tmp_path)
    notebook = read(tmp_path / "00_start_here.ipynb")
    execute(notebook, tmp_path, 120)
    verdicts = [each for cell in notebook.cells for each in checks_of(cell)]
    assert verdicts == [("00.1", False), ("00.2", False)]
    assert not (tmp_path / progress.FILE).exists()
    check_outputs(notebook)
