"""table_of_contents: the contents of myst.yml, for Sphinx.

Jupyter Book's engine reads ``project.toc`` itself. Sphinx wants a toctree in the root
page, so `toctrees` writes the same list as toctree directives.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SOURCE = Path(__file__).with_name("myst.yml")


@dataclass(frozen=True, slots=True)
class Part:
    """A heading of the contents and its files.

    Attributes
    ----------
    files
        Paths from ``book/``, with their suffix.
    """

    title: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The whole table: the root page, then parts."""

    root: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Every file, the root first."""
        return (self.root, *(file for part in self.parts for file in part.files))


def read(source: Path = SOURCE) -> Contents:
    """Read the table.

    Raises
    ------
    ValueError
        An entry is neither a file nor a title with files.
    """
    project = yaml.safe_load(source.read_text("utf-8"))["project"]
    root, *parts = project["toc"]
    return Contents(root["file"], tuple(_part(entry) for entry in parts))


def _part(entry: dict[str, Any]) -> Part:
    children = entry.get("children", [])
    if set(entry) != {"title", "children"} or any(set(c) != {"file"} for c in children):
        raise ValueError(f"{SOURCE.name}: expected a title with files, got {entry}")
    return Part(entry["title"], tuple(child["file"] for child in children))


def toctrees(contents: Contents) -> str:
    """Return the table as MyST toctree directives."""
    blocks = []
    for part in contents.parts:
        names = "\n".join(str(Path(file).with_suffix("")) for file in part.files)
        blocks.append(
            f"```{{toctree}}\n:hidden:\n:caption: {part.title}\n\n{names}\n```"
        )
    return "\n\n".join(blocks)
