"""Every notebook as the book ran it: the outputs that its pages show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from book_site import ROOT
from notebook_outputs import MOST_SECONDS, check_outputs

from fp4ref.lessons.notebook_run import read
from fp4ref.lessons.outline import LESSONS

pytestmark = pytest.mark.xdist_group("book")

GENERATED = ROOT / "book" / "notebooks"


def newest_cache() -> Any:
    """The outputs that the last build of the book kept or found."""
    get_cache = pytest.importorskip(
        "jupyter_cache", reason="jupyter-cache comes with myst-nb, in the extra 'book'"
    ).get_cache
    folders = (ROOT / "book" / "_build").glob("notebooks-*")
    return get_cache(str(max(folders, key=lambda folder: folder.stat().st_mtime)))


@pytest.mark.parametrize("name", LESSONS)
def test_the_books_run_of_a_notebook(name: str, site: Path) -> None:
    cache = newest_cache()
    page = GENERATED / f"{name}.ipynb"
    record = cache.match_cache_notebook(read(page))
    ran = cache.get_cache_bundle(record.pk).nb
    check_outputs(ran)
    assert record.data["execution_seconds"] < MOST_SECONDS


def test_running_them_leaves_no_files(site: Path) -> None:
    """Beside the pages there are only the pictures that the book draws."""
    suffixes = {each.suffix for each in GENERATED.rglob("*") if each.is_file()}
    assert suffixes == {".ipynb", ".svg"}
