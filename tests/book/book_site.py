"""book_site: how the tests build the book."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def without_network() -> list[str]:
    """Prefix of a command that runs it with no network at all; empty if refused."""
    prefix = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    done = subprocess.run([*prefix, "true"], capture_output=True)
    return prefix if done.returncode == 0 else []


def build(book: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the book as ``make book`` does, without a network where that can be."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    command += ["-d", str(target / "doctrees"), "-b", "html"]
    command += [str(book), str(target / "html")]
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    return subprocess.run(
        [*without_network(), *command],
        capture_output=True,
        text=True,
        env=environment,
    )
