"""Notebooks, run from top to bottom in a kernel of their own.

The book runs all of them as pages (`test_notebook_outputs`); here two a day run as they
are opened, widgets and all, and every one in `make soak`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nbformat import v4
from notebook_outputs import MOST_SECONDS, check_outputs, check_verdicts

from fp4ref.lessons.notebook_run import RedCellError, checks_of, execute, read
from fp4ref.lessons.outline import LESSONS

FOLDER = Path(__file__).parents[2] / "notebooks"

CELL_TIMEOUT = 120


def run(notebook: Any, folder: Path) -> float:
    """Run a notebook; a red cell fails with its id and its traceback."""
    try:
        return execute(notebook, folder, CELL_TIMEOUT)
    except RedCellError as error:
        pytest.fail(f"cell {error.cell_id!r} is red:\n{error.reason}", pytrace=False)


def of_today(seed: int) -> list[str]:
    """Two notebooks, others each day."""
    names = list(LESSONS)
    return [names[(2 * seed + i) % len(names)] for i in range(2)]


def check_run(name: str, folder: Path) -> None:
    notebook = read(FOLDER / f"{name}.ipynb")
    seconds = run(notebook, folder)
    check_outputs(notebook)
    assert not list(folder.iterdir()), "a notebook leaves no files behind"
    assert seconds < MOST_SECONDS


@pytest.mark.parametrize("which", range(2))
def test_a_notebook_of_today(which: int, rotating_seed: int, tmp_path: Path) -> None:
    check_run(of_today(rotating_seed)[which], tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", LESSONS)
def test_notebook(name: str, tmp_path: Path) -> None:
    check_run(name, tmp_path)


# That red is red:


def broken(text: str, *, tag: str = "") -> Any:
    cell = v4.new_code_cell(
        text, id="the-cell", metadata={"tags": [tag] if tag else []}
    )
    first = v4.new_code_cell("from fp4ref import lessons", id="start")
    return v4.new_notebook(cells=[first, cell], nbformat_minor=5)


def test_a_red_cell_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        run(broken("number = 1\nassert number == 2, 'a false claim'"), tmp_path)
    text = str(caught.value)
    assert text.startswith("cell 'the-cell' is red:")
    assert "assert number == 2" in text
    assert "AssertionError: a false claim" in text
    assert "\x1b" not in text


def test_a_cell_that_ends_the_kernel_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="it ended the kernel"):
        run(broken("import os; os._exit(3)"), tmp_path)


def test_a_wrong_solution_fails(tmp_path: Path) -> None:
    notebook = broken("_ = lessons.check('01.1', 'a wrong one')", tag="solution")
    run(notebook, tmp_path)
    with pytest.raises(AssertionError, match="the-cell: the solution does not pass"):
        check_verdicts(notebook)


def test_a_blank_that_passes_fails(tmp_path: Path) -> None:
    text = "from fp4ref.lessons.exercise import find\n"
    text += "_ = lessons.check('01.1', find('01.1').truth)"
    notebook = broken(text, tag="exercise")
    run(notebook, tmp_path)
    with pytest.raises(AssertionError, match="the-cell: the blank passes"):
        check_verdicts(notebook)


def test_a_solution_that_checks_nothing_fails(tmp_path: Path) -> None:
    notebook = broken("answer = 1", tag="solution")
    run(notebook, tmp_path)
    with pytest.raises(AssertionError):
        check_verdicts(notebook)


def test_a_verdict_is_shown_once_with_its_datum(tmp_path: Path) -> None:
    notebook = broken("result = lessons.check('01.1', ...)\nresult")
    run(notebook, tmp_path)
    (output,) = notebook.cells[1].outputs
    assert output["data"]["text/plain"].startswith("01.1 not yet.")
    assert 'role="status"' in output["data"]["text/html"]
    assert checks_of(notebook.cells[1]) == [("01.1", False)]
    assert "exercise" not in output["data"]["text/plain"]
