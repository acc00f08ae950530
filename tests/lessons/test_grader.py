"""The class: an edition without solutions, and scores that nobody can award himself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_notebook import exercise, write
from typer.testing import CliRunner

from fp4ref.errors import InputError
from fp4ref.lessons.classroom import app
from fp4ref.lessons.edition import NOTEBOOKS, is_solution, student_edition
from fp4ref.lessons.exercise import of_lesson
from fp4ref.lessons.grader import Graded, calls_of_check, grade, submissions
from fp4ref.lessons.outline import LESSONS

IDS = list(of_lesson("01"))
TRUTH = "__import__('fp4ref.lessons.exercise').lessons.exercise.find('{id}').truth"
RIGHT = TRUTH.format(id="01.1")

FUNCTION = next(id for id, each in of_lesson("01").items() if each.cases)
NUMBER = int(FUNCTION.partition(".")[2])


def scores(graded: Graded) -> dict[str, bool]:
    assert not graded.broken
    assert list(graded.exercises) == IDS
    return {id: score.passed for id, score in graded.exercises.items()}


def passed(graded: Graded) -> list[str]:
    return [id for id, ok in scores(graded).items() if ok]


def test_right_wrong_blank_and_raising(tmp_path: Path) -> None:
    path = write(
        tmp_path / "renamed.ipynb",
        exercise(1, RIGHT),
        (
            f"exercise-{NUMBER}",
            f"def mine(*args):\n    return {TRUTH.format(id=FUNCTION)}(*args)\n\n\n"
            f'lessons.check("{FUNCTION}", mine)',
        ),
        ("exercise-3", 'raise RuntimeError("oops")\nlessons.check("01.3", 1)'),
    )
    graded = grade("renamed.ipynb", path)
    assert graded.notebook == "01_numbers_and_quantisation"
    assert passed(graded) == ["01.1", FUNCTION]
    assert graded.exercises["01.3"].why == "its cell raised RuntimeError: oops"
    assert graded.cells["exercise-3"] == "RuntimeError: oops"
    assert graded.exercises["01.4"].why == "it did not run"


def test_wrong_and_blank_say_why(tmp_path: Path) -> None:
    def_raising = "def mine(*args):\n    raise KeyError('k')\n\n\n"
    path = write(
        tmp_path / "a.ipynb",
        exercise(1, "'no'"),
        (f"exercise-{NUMBER}", f'{def_raising}lessons.check("{FUNCTION}", mine)'),
        exercise(3, "..."),
        ("exercise-4", 'answer = (\nlessons.check("01.4", answer)'),
    )
    graded = grade("a.ipynb", path)
    assert passed(graded) == []
    assert "not str" in graded.exercises["01.1"].why
    assert "raises KeyError: 'k'" in graded.exercises[FUNCTION].why
    assert graded.exercises["01.3"].why == "Nothing is answered yet."
    assert graded.exercises["01.4"].why.startswith("its cell raised SyntaxError")


CHEATS = """
import IPython.display
import fp4ref.lessons.verdict as verdict
import fp4ref.lessons.answer as compare
import fp4ref.lessons.transport as transport

class Yes(verdict.Result):
    def __bool__(self):
        return True

lessons.check = lambda id, answer: Yes(id, True, "passed")
verdict.judge = verdict.check = lessons.check
verdict.first_difference = compare.first_difference = lambda *_: None
for id in ("01.1", "01.2", "01.3", "01.4"):
    datum = {"exercise": id, "passed": True}
    IPython.display.display({verdict.MIME: datum}, raw=True)
"""


def test_a_notebook_cannot_award_itself_a_score(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cheat.ipynb",
        ("setup", CHEATS),
        exercise(1, "'anything'"),
        ("exercise-2", "print('passed')"),
        ("solution-3", f"answer = {TRUTH.format(id='01.3')}"),
        ("exercise-4", "class Any:\n    __eq__ = lambda *_: True\n\n\nanswer = Any()"),
    )
    assert passed(grade("cheat.ipynb", path)) == []


def test_a_deleted_check_is_put_back(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", ("exercise-1", f"answer = {RIGHT}"))
    assert passed(grade("a.ipynb", path)) == ["01.1"]


def test_a_notebook_without_ids_is_graded(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", exercise(1, RIGHT))
    old = json.loads(path.read_text())
    old["nbformat_minor"] = 2
    for cell in old["cells"]:
        del cell["id"]
    path.write_text(json.dumps(old))
    assert passed(grade("a.ipynb", path)) == ["01.1"]


def test_an_endless_loop_and_a_dead_kernel_cost_their_own_exercise(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path / "a.ipynb",
        ("exercise-3", 'while True:\n    pass\nlessons.check("01.3", 1)'),
        ("exercise-4", 'import os\nos._exit(1)\nlessons.check("01.4", 1)'),
        exercise(1, RIGHT),
    )
    before = path.read_bytes()
    graded = grade("a.ipynb", path, timeout=15)
    assert passed(graded) == ["01.1"]
    assert graded.exercises["01.3"].why == "it took longer than 15 s"
    assert graded.exercises["01.4"].why == "it ended the kernel"
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.ipynb"]


def test_the_batch_goes_on_after_a_broken_notebook(tmp_path: Path) -> None:
    write(tmp_path / "class/ann/01.ipynb", exercise(1, RIGHT))
    (tmp_path / "class/bob").mkdir()
    (tmp_path / "class/bob/01.ipynb").write_text("{not json")
    (tmp_path / "class/cem.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    hidden = tmp_path / "class/ann/.ipynb_checkpoints"
    hidden.mkdir()
    shutil.copy(tmp_path / "class/ann/01.ipynb", hidden)
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "class"), "--json"])
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert (report["graded"], report["broken"]) == (1, 2)
    ann, bob, cem = report["submissions"]
    assert ann["file"] == "ann/01.ipynb"
    assert (ann["passed"], ann["of"]) == (1, len(IDS))
    assert ann["exercises"]["01.1"] == {"passed": True, "why": ""}
    assert "is not a notebook" in bob["broken"]
    assert "is none of the notebooks" in cem["broken"]


def test_the_command_says_scores_in_words(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", exercise(1, RIGHT))
    done = subprocess.run(
        [sys.executable, "-m", "fp4ref.lessons.classroom", "grade", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"a.ipynb: 1 of {len(IDS)}" in done.stdout
    assert "01.1 passed" in done.stdout
    assert "01.4 not passed: it did not run" in done.stdout


@pytest.mark.parametrize("what", ["missing", "."])
def test_bad_paths_have_status_2(what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        list(submissions([tmp_path / what]))
    done = CliRunner().invoke(app, ["grade", str(tmp_path / what)])
    assert done.exit_code == 2


def test_calls_of_check() -> None:
    text = '%time x\nlessons.check("01.1", a + 1); check("01.2", f)\nhint("01.1", 1)'
    assert calls_of_check(text) == [("01.1", "a + 1"), ("01.2", "f")]
    assert calls_of_check("(") == []


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_student_edition_has_no_solutions(tmp_path: Path) -> None:
    folder = tmp_path / "class/student"
    made = student_edition(NOTEBOOKS, folder)
    assert made
    pictures = [path for path in made if path.suffix == ".svg"]
    assert len(pictures) == len(list(NOTEBOOKS.rglob("*.svg")))
    for path in pictures:
        ours = NOTEBOOKS / path.relative_to(folder)
        assert path.read_bytes() == ours.read_bytes()
    for path in made[: -len(pictures)]:
        whole, student = load(NOTEBOOKS / path.name), load(path)
        kept = [cell for cell in whole["cells"] if not is_solution(cell)]
        assert student["cells"] == kept
        assert student["metadata"] == whole["metadata"]
        assert "assert lessons.check(" not in path.read_text()


def test_changed_files_are_not_overwritten(tmp_path: Path) -> None:
    first, second, *_ = student_edition(NOTEBOOKS, tmp_path)
    student_edition(NOTEBOOKS, tmp_path)  # nothing was changed
    original = first.read_bytes()
    first.write_bytes(original + b"\n")
    second.unlink()
    with pytest.raises(InputError, match=rf"changed notebooks \({first.name}\)"):
        student_edition(NOTEBOOKS, tmp_path)
    assert first.read_bytes() != original
    assert not second.exists()
    arguments = ["student", str(tmp_path)]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    written = CliRunner().invoke(app, [*arguments, "--force"])
    assert written.exit_code == 0
    assert written.stdout.startswith(f"{len(LESSONS)} notebooks without solutions")
    assert first.read_bytes() == original


def test_what_was_answered_can_be_kept(tmp_path: Path) -> None:
    """`make lab` renews the rest and takes nobody's answers away."""
    arguments = ["student", str(tmp_path), "--keep"]
    assert "kept" not in CliRunner().invoke(app, arguments).stdout
    first, second, *_ = sorted(tmp_path.glob("*.ipynb"))
    original = first.read_bytes()
    first.write_bytes(original + b"\n")
    second.unlink()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert again.stdout.startswith(f"{len(LESSONS) - 1} notebooks without solutions")
    assert "1 kept as you left them" in again.stdout
    assert first.read_bytes() == original + b"\n"
    assert second.exists()
    CliRunner().invoke(app, [*arguments, "--force"])
    assert first.read_bytes() == original


def test_links_lead_somewhere_from_a_folder_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}}
    cell["source"] = ["[a](../book/a.md), [b](b.ipynb)"]
    for name in LESSONS:
        text = json.dumps({"cells": [cell], "metadata": {}})
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(text)
    (made, *_) = student_edition(tmp_path / "notebooks", tmp_path / "class/student")
    assert load(made)["cells"][0]["source"] == ["[a](../../book/a.md), [b](b.ipynb)"]


def test_a_folder_of_someone_else_is_not_overwritten(tmp_path: Path) -> None:
    name = next(NOTEBOOKS.glob("0*.ipynb")).name
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match="changed notebooks"):
        student_edition(NOTEBOOKS, tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_without_notebooks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no notebooks"):
        student_edition(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
