"""tiny_notebook: notebooks of a few cells, for tests that run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import v4

START = 'from fp4ref import lessons\n\nlessons.start("01_numbers_and_quantisation")'


def notebook(*cells: tuple[str, str]) -> Any:
    """Return a notebook of a start cell and these, each an id and its text."""
    every = [("start", START), *cells]
    made = [v4.new_code_cell(text, id=id) for id, text in every]
    for cell in made:
        kind = cell["id"].partition("-")[0]
        if kind in ("exercise", "solution"):
            cell["metadata"]["tags"] = [kind]
    return v4.new_notebook(cells=made, nbformat_minor=5)


def write(path: Path, *cells: tuple[str, str]) -> Path:
    """Write such a notebook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook(*cells)), encoding="utf-8")
    return path


def exercise(number: int, answer: str) -> tuple[str, str]:
    """Return the cell of exercise 01.`number` with an answer."""
    text = f'answer = {answer}\nlessons.check("01.{number}", answer)'
    return f"exercise-{number}", text
