"""The change log's table of moved modules: every new path can be imported."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")
ROWS = re.findall(r"^\| (`.+`.*) \| (`.+`.*) \|$", TEXT, re.MULTILINE)


def paths() -> list[tuple[str, str]]:
    """Old and new path of each module that a row names."""
    found = []
    for was, now in ROWS:
        names = re.findall(r"`([\w./]+)`", was)
        package = names[0].rpartition(".")[0]
        (target, *_) = re.findall(r"`([\w./]+)`", now)
        for name in names:
            old = package + name if name.startswith(".") else name
            same = target.endswith(".")
            found.append((old, target + old.rpartition(".")[2] if same else target))
    return found


@pytest.mark.parametrize(("was", "now"), paths())
def test_a_moved_module_is_where_the_table_says(was: str, now: str) -> None:
    if "." not in now:
        assert (ROOT / now).is_dir()
        assert not (ROOT / was).exists()
        return
    assert importlib.util.find_spec(now) is not None
    if was in ("fp4ref.trace", "fp4ref.walk"):
        return
    package, _, stem = was.rpartition(".")
    folder = ROOT / package.replace(".", "/")
    assert not (folder / f"{stem}.py").exists(), f"{was} is still there"


def test_many_are_named() -> None:
    assert len(paths()) >= 38
