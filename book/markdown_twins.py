"""markdown_twins: every page as plain Markdown, and one index of them, for programs.

A twin is the page's source with the generated parts in their places. A notebook's twin
has its text and code, and no outputs. ``llms.txt`` names them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import table_of_contents
import yaml

BOOK = Path(__file__).parent
FOLDER = "_generated/site/markdown"
INDEX = "_generated/site/llms.txt"
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.M)
_RAW = re.compile(r"^```\{raw\} html\n.*?^```\n?", re.M | re.S)


def pages(made: Mapping[str, str]) -> dict[str, str]:
    """Return the twin of every page of the contents, and their index, by path.

    Parameters
    ----------
    made
        Text of the generated files by path from ``book/``.
    """
    contents = table_of_contents.read()
    twins = {file: _twin(file, made) for file in contents.files}
    paths = {file: f"{FOLDER}/{Path(file).stem}.md" for file in twins}
    return {
        INDEX: _index(contents, twins),
        **{paths[file]: text for file, text in twins.items()},
    }


def _twin(file: str, made: Mapping[str, str]) -> str:
    """One page as Markdown."""
    if file.endswith(".ipynb"):
        return _of_notebook(json.loads(made[file]))
    text = (BOOK / file).read_text("utf-8")
    while _INCLUDE.search(text):
        text = _INCLUDE.sub(lambda found: _included(file, found[1], made), text)
    return _RAW.sub("", text).strip() + "\n"


def _included(file: str, name: str, made: Mapping[str, str]) -> str:
    """Text that a page includes: a generated part, or a file of the repository."""
    if name in made:
        return made[name].strip()
    return (BOOK / file).parent.joinpath(name).read_text("utf-8").strip()


def _of_notebook(document: dict[str, list[dict[str, object]]]) -> str:
    blocks = []
    for cell in document["cells"]:
        source = cell["source"]
        text = source if isinstance(source, str) else "".join(source)  # type: ignore[arg-type]
        is_code = cell["cell_type"] == "code"
        blocks.append(f"````python\n{text}\n````" if is_code else _RAW.sub("", text))
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"


def _index(contents: table_of_contents.Contents, twins: Mapping[str, str]) -> str:
    project = yaml.safe_load(table_of_contents.SOURCE.read_text("utf-8"))["project"]
    lines = [f"# {project['title']}", "", f"> {project['description']}", ""]
    lines += [_line(contents.root, twins), ""]
    for part in contents.parts:
        lines += [f"## {part.title}", ""]
        lines += [*(_line(file, twins) for file in part.files), ""]
    return "\n".join(lines)


def _line(file: str, twins: Mapping[str, str]) -> str:
    heading = re.search(r"^# (.+)$", twins[file], re.M)
    title = heading[1] if heading else Path(file).stem
    return f"- [{title}](markdown/{Path(file).stem}.md)"
