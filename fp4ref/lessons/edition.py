"""edition: the student edition: the notebooks without solutions, and their pictures."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fp4ref.errors import InputError
from fp4ref.lessons.outline import LESSONS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
"""In a checkout; the installed package has no notebooks."""

MANIFEST = ".made-by-fp4ref.json"
"""Hash of each file that the student edition wrote."""

PICTURES = "figures"
"""Folder beside the notebooks with one sketch of each."""


def student_edition(
    notebooks: Path, folder: Path, *, force: bool = False, keep: bool = False
) -> list[Path]:
    """Write the notebooks without solutions, and their pictures; return those written.

    Parameters
    ----------
    force
        Write also over notebooks that were changed since.
    keep
        Leave those as they are, with what was answered in them.

    Raises
    ------
    InputError
        There are no notebooks, or `folder` holds one that was changed since.
    """
    found = [
        path for name in LESSONS if (path := notebooks / f"{name}.ipynb").is_file()
    ]
    if not found:
        raise InputError(f"{notebooks} has no notebooks; run this in a checkout")
    up = _way_up(notebooks, folder)
    texts = {path.name: _without_solutions(path, up) for path in found}
    pictures = [*notebooks.glob("*.svg"), *notebooks.glob(f"{PICTURES}/*.svg")]
    for path in sorted(pictures):
        texts[path.relative_to(notebooks).as_posix()] = path.read_text("utf-8")
    try:
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write into {folder}: {error.strerror}; name a folder"
        ) from None
    made = _manifest(folder)
    changed = [
        name
        for name, text in texts.items()
        if (folder / name).exists()
        and _hash(folder / name) not in (made.get(name), _digest(text))
    ]
    if keep:
        texts = {name: text for name, text in texts.items() if name not in changed}
    elif changed and not force:
        raise InputError(
            f"{folder} has changed notebooks ({', '.join(changed)}); use --force to "
            "overwrite them"
        )
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    hashes = made | {name: _digest(text) for name, text in texts.items()}
    (folder / MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n", "utf-8")
    return [folder / name for name in texts]


def _way_up(notebooks: Path, folder: Path) -> str:
    """Way from `folder` to where the links of the notebooks begin, if it is below."""
    try:
        below = folder.resolve().relative_to(notebooks.resolve().parent)
    except ValueError:
        return "../"
    return "../" * len(below.parts)


def _without_solutions(path: Path, up: str) -> str:
    """Text of a notebook, no solutions and no outputs; its links begin at `up`."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if not is_solution(cell)]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = [s.replace("](../", f"]({up}") for s in cell["source"]]
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    notebook["cells"] = cells
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def is_solution(cell: Any) -> bool:
    """Whether a cell holds a solution."""
    return "solution" in cell["metadata"].get("tags", [])


def _manifest(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
