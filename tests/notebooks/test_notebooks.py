"""Every notebook, run from top to bottom in a kernel of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4

from fp4ref.lessons.notebook_run import RedCellError, checks_of, execute, read
from fp4ref.lessons.outline import LESSONS

FOLDER = Path(__file__).parents[2] / "notebooks"

CELL_TIMEOUT = 120
MOST_SECONDS = 60
"""For a whole notebook, on two busy cores."""

_ADDRESS = re.compile(r"(?:object|function) .*\bat 0x[0-9a-f]{6,}")


def run(notebook: Any, folder: Path) -> float:
    """Run a notebook; a red cell fails with its id and its traceback."""
    try:
        return execute(notebook, folder, CELL_TIMEOUT)
    except RedCellError as error:
        pytest.fail(f"cell {error.cell_id!r} is red:\n{error.reason}", pytrace=False)


def check_verdicts(notebook: Any) -> None:
    """Every blank fails and every solution passes."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        verdicts = [passed for _, passed in checks_of(cell)]
        if "exercise" in tags:
            assert verdicts == [False], f"{cell.id}: the blank passes"
        elif "solution" in tags:
            assert verdicts == [True], f"{cell.id}: the solution does not pass"


def texts(cell: Any) -> str:
    """What a cell prints and shows as text."""
    found = []
    for output in cell.get("outputs", []):
        found.append(output.get("text", ""))
        found.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join(found)


@pytest.mark.parametrize("name", LESSONS)
def test_notebook(
    name: str, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    notebook = read(FOLDER / f"{name}.ipynb")
    seconds = run(notebook, tmp_path)
    record_property("seconds", round(seconds, 1))
    print(f"{name}: {seconds:.1f} s")
    check_verdicts(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        complaints = [o["text"] for o in cell.outputs if o.get("name") == "stderr"]
        assert not complaints, f"{cell.id} writes to stderr: {complaints[0][:500]}"
        assert not _ADDRESS.search(texts(cell)), f"{cell.id} shows an address"
    assert not list(tmp_path.iterdir()), "a notebook leaves no files behind"
    assert seconds < MOST_SECONDS


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
