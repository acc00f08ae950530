"""Jupyter Book's own engine on the same sources, where it is installed."""

from __future__ import annotations

import subprocess
import sys

import check_jupyter_book
import pytest
from book_site import ROOT

pytestmark = pytest.mark.outside


def test_its_engine_reads_every_page() -> None:
    if check_jupyter_book.find_engine() is None:
        pytest.skip("Jupyter Book is not installed; pip install jupyter-book")
    command = [sys.executable, str(ROOT / "book" / "check_jupyter_book.py")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-3000:]
