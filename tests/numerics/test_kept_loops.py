"""compiled: loops that are kept on the disk go when any module of theirs changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fp4ref
from fp4ref.numerics import compiled
from fp4ref.numerics.compiled import sources_digest

pytestmark = pytest.mark.skipif(
    not compiled.AVAILABLE, reason="without Numba nothing is compiled or kept"
)

CALLED = "from fp4ref.numerics.compiled import njit\n\n@njit(cache=True)\ndef two():\n"
CALLER = """
from fp4ref.numerics.compiled import njit
from fp4ref.numerics.called import two

@njit(cache=True)
def twice():
    return 2 * two()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """What of the package compiles loops, and two modules more."""
    room = tmp_path / "fp4ref" / "numerics"
    room.mkdir(parents=True)
    (tmp_path / "fp4ref" / "__init__.py").touch()
    (room / "__init__.py").touch()
    ours = Path(fp4ref.__file__).parent / "numerics" / "compiled.py"
    (room / "compiled.py").write_text(ours.read_text())
    (room / "called.py").write_text(f"{CALLED}    return 21\n")
    (room / "caller.py").write_text(CALLER)
    return tmp_path


def say_twice(package: Path) -> tuple[str, str]:
    """Return the result, and whether the loop came from the disk."""
    code = (
        "from fp4ref.numerics.caller import twice\n"
        "print(twice(), sum(twice.stats.cache_hits.values()))"
    )
    there = {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(package / "kept")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=package,
        env=os.environ | there | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    result, hits = done.stdout.split()
    return result, hits


def test_an_update_of_what_a_loop_calls_is_seen(package: Path) -> None:
    assert say_twice(package) == ("42", "0")
    assert say_twice(package) == ("42", "1")
    (package / "fp4ref/numerics/called.py").write_text(f"{CALLED}    return 50\n")
    assert say_twice(package) == ("100", "0")


def test_each_name_and_each_byte_counts(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        return sources_digest(folder)

    assert digest(a="x", b="y") == digest(b="y", a="x")
    others = [digest(a="x", b="z"), digest(a="xb", b=""), digest(a="x"), digest(c="x")]
    assert len({digest(a="x", b="y"), *others}) == 5
