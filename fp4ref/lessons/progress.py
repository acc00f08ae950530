"""progress: which exercises have passed, and which is next.

They are counted while a notebook runs. In the class edition, which `make lab` opens,
they are also kept in a file beside the notebooks, so that all of them count together.
Nowhere else is a file written: a folder without the edition is not ours.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from fp4ref.lessons.edition import MANIFEST
from fp4ref.lessons.exercise import ids

FILE = ".passed-exercises.json"
"""In the folder of the class edition: the ids, as a list."""

_here: set[str] = set()
"""Passed in this process."""


def next_after(id: str) -> str:
    """Name the exercise that follows; its title would tell too much of a riddle."""
    following = following_of(id)
    if not following:
        return "That was the last exercise."
    if following[:2] == id[:2]:
        return f"Next: {following}."
    return f"Next: {following}, in notebook {following[:2]}."


def following_of(id: str) -> str:
    """Return the id of the exercise after one; '' after the last."""
    known = ids()
    if id not in known:
        return ""
    return next(iter(known[known.index(id) + 1 :]), "")


def passed(id: str, folder: Path | None = None) -> str:
    """Count an exercise as passed; return how many have.

    Parameters
    ----------
    folder
        Where the notebook runs; the working directory if not given.
    """
    _here.add(id)
    folder = folder or Path()
    kept = _here | read(folder)
    if (folder / MANIFEST).is_file():
        with suppress(OSError):  # a folder that is read only loses the count, no answer
            (folder / FILE).write_text(json.dumps(sorted(kept)) + "\n", "utf-8")
    return f"{len(kept & set(ids()))} of {len(ids())} exercises have passed."


def read(folder: Path) -> set[str]:
    """Return what earlier sessions have passed; a damaged file counts for nothing."""
    file = folder / FILE
    try:
        found = json.loads(file.read_text("utf-8")) if file.is_file() else []
    except (OSError, ValueError, RecursionError):
        return set()
    listed = found if isinstance(found, list) else []
    return {each for each in listed if isinstance(each, str)}
