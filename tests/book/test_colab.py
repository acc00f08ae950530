"""Notebook 00 has what Colab needs with a repository's address, and nothing without."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

import colab
import pytest

ADDRESS = "https://github.com/owner/name"


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(colab.NOTEBOOK.read_text("utf-8"))
    return found


def cell(document: dict[str, Any], id: str) -> str:
    (found,) = ["".join(c["source"]) for c in document["cells"] if c["id"] == id]
    return found


def test_the_notebook_is_as_the_configured_address_wants(
    document: dict[str, Any],
) -> None:
    assert colab.on_colab(document, colab.repository()) == document


def test_with_an_address_it_has_a_link_and_installs_what_is_missing(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = colab.on_colab(document, ADDRESS)
    assert made["cells"][2:] == document["cells"][2:]
    path = "owner/name/blob/main/notebooks/00_start_here.ipynb"
    link = f"[Open in Colab](https://colab.research.google.com/github/{path})"
    assert cell(made, "title").endswith(f"\n\n{link}")
    assert "![" not in cell(made, "title")
    start = cell(made, "start")
    assert start.endswith(cell(document, "start"))
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    install = start.removesuffix(cell(document, "start"))
    exec(compile(ast.parse(install), "start", "exec"), {})
    assert ran == []  # it is installed here
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(compile(ast.parse(install), "start", "exec"), {})
    assert [command[-1] for command in ran] == [f"fp4ref[lab] @ git+{ADDRESS}"]
    assert colab.on_colab(made, ADDRESS) == made
    assert colab.on_colab(made, "") == document


def test_the_address_is_read_from_the_project(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(f'[project]\n[project.urls]\nRepository = "{ADDRESS}.git"\n')
    assert colab.repository(project) == ADDRESS
    project.write_text("[project]\n")
    assert colab.repository(project) == ""
    project.write_text('[project.urls]\nRepository = "https://example.com/x"\n')
    with pytest.raises(ValueError, match="https://github"):
        colab.repository(project)
