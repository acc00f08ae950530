"""conftest: the built site, made once for all workers."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from book_site import ROOT, build

sys.path.insert(0, str(ROOT / "book"))

NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme")


@pytest.fixture(scope="session")
def needs_sphinx() -> None:
    """Skip, with the reason, where the book cannot be built."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; it is in the extra 'book'")


@pytest.fixture(scope="session")
def site(needs_sphinx: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site; the first worker builds, the others wait."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    target = shared / "book"
    with (shared / "book.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log = shared / "book.log"
        if not log.exists():
            done = build(ROOT / "book", target)
            log.write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
    status, _, text = log.read_text().partition("\n")
    assert status == "0", f"the book does not build:\n{text[-4000:]}"
    return target / "html"
