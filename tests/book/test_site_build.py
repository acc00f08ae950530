"""Building the book: no network, no warning, and no broken notebook."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from book_site import ROOT, build, without_network
from browser import local_page

pytestmark = pytest.mark.xdist_group("book")

PAGE = "# A page\n\nWith a [link](notebooks/cell.ipynb).\n"
CONTENTS = """\
project:
  toc:
    - file: index.md
    - title: Notebooks
      children:
        - file: notebooks/cell.ipynb
"""


def small_book(folder: Path, code: str, page: str = PAGE) -> Path:
    """Set up the book's own configuration over one page and one notebook."""
    book = folder / "book"
    (book / "notebooks").mkdir(parents=True)
    for name in ("conf.py", "kernels.py", "table_of_contents.py", "answer_forms.py"):
        shutil.copy(ROOT / "book" / name, book / name)
    shutil.copytree(ROOT / "book" / "static", book / "static")
    (book / "generate.py").write_text("def generate():\n    pass\n")
    (book / "myst.yml").write_text(CONTENTS)
    (book / "index.md").write_text(page)
    cell = {"cell_type": "code", "execution_count": None, "id": "the-cell"}
    cell |= {"metadata": {}, "outputs": [], "source": code}
    title = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Cell"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [title, cell], "metadata": {"kernelspec": kernel}}
    notebook |= {"nbformat": 4, "nbformat_minor": 5}
    (book / "notebooks" / "cell.ipynb").write_text(json.dumps(notebook))
    return book


def test_the_whole_book_builds(site: Path) -> None:
    assert (site / "index.html").is_file()
    assert (site / ".nojekyll").is_file()
    assert not (site / ".doctrees").exists()


def test_b43_a_notebook_runs_with_no_network_and_an_empty_cache(
    needs_sphinx: None, tmp_path: Path
) -> None:
    if not without_network():
        pytest.skip("this kernel allows no network namespace")
    code = "import socket\nprint(len(socket.if_nameindex()), 'interface')"
    book = small_book(tmp_path, code)
    done = build(book, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "html" / "notebooks" / "cell.html").read_text()
    assert "1 interface" in page


def test_a_broken_notebook_fails_the_build(needs_sphinx: None, tmp_path: Path) -> None:
    book = small_book(tmp_path, "assert 1 == 2, 'a false claim'")
    done = build(book, tmp_path / "out")
    assert done.returncode != 0
    assert "cell.ipynb" in done.stderr


def test_a_link_to_nowhere_fails_the_build(needs_sphinx: None, tmp_path: Path) -> None:
    book = small_book(tmp_path, "1", PAGE + "\nSee [that](#nowhere).\n")
    done = build(book, tmp_path / "out")
    assert done.returncode != 0
    assert "nowhere" in done.stderr


def test_outputs_are_cached_until_the_package_changes(
    needs_sphinx: None, tmp_path: Path
) -> None:
    package = tmp_path / "fp4ref"
    package.mkdir()
    (package / "one.py").write_text("VALUE = 1\n")
    runs = tmp_path / "runs"
    runs.write_text("")
    book = small_book(tmp_path, f"with open({str(runs)!r}, 'a') as f: f.write('x')")
    for target, expected in (("a", "x"), ("b", "x")):
        assert build(book, tmp_path / target).returncode == 0
        assert runs.read_text() == expected
    (package / "one.py").write_text("VALUE = 2\n")
    assert build(book, tmp_path / "c").returncode == 0
    assert runs.read_text() == "xx"


def test_no_warning_is_hidden_but_one() -> None:
    text = (ROOT / "book" / "conf.py").read_text("utf-8")
    (hidden,) = re.findall(r"suppress_warnings = (.+)", text)
    assert hidden == '["mystnb.unknown_mime_type"]'


def test_formulas_are_drawn_by_the_sites_own_script(
    chromium: Any, needs_sphinx: None, tmp_path: Path
) -> None:
    """No page has one today; the day one does, no CDN may be asked."""
    book = small_book(tmp_path, "1", PAGE + "\n$$x^2$$\n")
    done = build(book, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    with local_page(chromium) as page:
        page.goto((tmp_path / "out" / "html" / "index.html").as_uri())
        formula = page.locator("mjx-container svg")
        formula.first.wait_for(timeout=20_000)
        assert formula.count() == 1
