"""notebook_pages: the notebooks as pages, and the map of the road.

A page is the notebook with additions: frame numbers and sources are links, and the last
cell lists the frames that it teaches. An exercise shows no verdict about its blank: the
page asks it (`answer_forms`). The fold around a solution says so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import table_of_contents
from evidence_links import linked
from wording import (
    FILTER,
    VERDICTS,
    errata_anchor,
    frame_anchor,
    frame_link,
    row,
    stacked_table,
)

from fp4ref.frames import FRAMES, Frame
from fp4ref.lessons.errata import ERRATA
from fp4ref.lessons.outline import LESSONS, Lesson

SOURCES = Path(__file__).parents[1] / "notebooks"
ERRATA_LESSON = "10_errata"

SOLUTION = {"code_prompt_show": "Solution", "code_prompt_hide": "Solution"}
"""What the fold around a solution says."""

_ID = r"(?:\d\.\d+(?:\.\d+)?|[567] ctx)"
_SOURCES = re.compile(r"(?<=^\*Source:\* ).+(?=\*Taught in\*)|arXiv \d{4}\.\d{5}", re.M)
_NUMBERS = re.compile(rf"\b[Ff]rames? {_ID}(?:(?:, and |, | and |-| to ){_ID})*")


def path_of(name: str) -> str:
    """Path of a notebook's page from ``book/``."""
    return f"notebooks/{name}.ipynb"


def link_to(lesson: Lesson) -> str:
    """Return a link to a notebook, by number and title."""
    return f"[{lesson.number}. {lesson.title}]({path_of(lesson.name)})"


def pages() -> dict[str, str]:
    """Return the JSON of every notebook of the table of contents, by path.

    Raises
    ------
    ValueError
        The table of contents and the outline of the lessons differ.
    """
    listed = [f for f in table_of_contents.read().files if f.endswith(".ipynb")]
    if sorted(listed) != sorted(path_of(name) for name in LESSONS):
        raise ValueError("myst.yml and fp4ref.lessons do not name the same notebooks")
    return {path_of(lesson.name): _page(lesson) for lesson in LESSONS.values()}


def road() -> str:
    """Return the map of the road as a table."""
    rows = [("notebook", "how long", "after it you can")]
    for lesson in LESSONS.values():
        needs = f"; needs {', '.join(lesson.needs)}" if lesson.needs else ""
        time = f"{lesson.minutes} minutes{needs}"
        rows.append((link_to(lesson), time, lesson.objectives))
    return stacked_table(rows) + "\n"


def _page(lesson: Lesson) -> str:
    source = SOURCES / f"{lesson.name}.ipynb"
    document = json.loads(source.read_text("utf-8"))
    for cell in document["cells"]:
        cell["id"] = f"{lesson.number}-{cell['id']}"  # unique in the whole book
        if cell["cell_type"] == "markdown":
            text = for_the_book(_with_anchor("".join(cell["source"])))
            cell["source"] = text.splitlines(keepends=True)
        tags = cell["metadata"].get("tags", [])
        if "exercise" in tags:
            cell["metadata"]["tags"] = [*tags, "remove-output"]
        if "solution" in tags:
            cell["metadata"]["mystnb"] = SOLUTION
    if lesson.name == ERRATA_LESSON:
        document["cells"].insert(_first_entry(document), _markdown("10-filter", FILTER))
    frames = [frame for frame in FRAMES.values() if frame.notebook == lesson.name]
    if frames:
        document["cells"].append(_markdown(f"{lesson.number}-frames", _table(frames)))
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _first_entry(document: dict[str, Any]) -> int:
    """Place of the cell whose heading is the first of a part with entries."""
    texts = ["".join(cell["source"]) for cell in document["cells"]]
    return next(i for i, text in enumerate(texts) if text.startswith("## Document"))


def _with_anchor(text: str) -> str:
    """Give an entry of the errata its anchor, and a link to its frames."""
    heading = re.match(r"### (\S+(?: ctx\w?)?) ", text)
    if heading is None or heading[1] not in ERRATA:
        return text
    links = ", ".join(frame_link(FRAMES[id]) for id in ERRATA[heading[1]].frames)
    where = f"\n\nIn the frame index: {links}." if links else ""
    return f"({errata_anchor(heading[1])})=\n{text.rstrip()}{where}"


def _markdown(id: str, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": lines}


def _table(frames: list[Frame]) -> str:
    lines = ["## Frames taught here", "", row("frame", "what", "the document is")]
    lines.append(row("---", "---", "---"))
    lines += [row(frame_link(f), f.title, VERDICTS[f.verdict]) for f in frames]
    return "\n".join(lines)


def for_the_book(text: str) -> str:
    """Turn what holds in ``notebooks/`` into what holds in the book.

    Links to pages and files change. The ids of "Frames 5.4.4-5.4.8" become links, and
    so do the sources of an entry of the errata and the numbers of papers.
    """
    text = re.sub(r"\]\(\.\./book/\w+\.md#", "](#", text)
    text = re.sub(r"\]\(\.\./(?!book/|docs/)([\w/.]+)\)", r"](../../\1)", text)
    text = re.sub(r"\]\(\.\./(?:book|docs)/(\w+\.md)\)", r"](../\1)", text)
    text = _SOURCES.sub(lambda found: linked(found[0], escape=str), text)
    return _NUMBERS.sub(lambda found: re.sub(_ID, _link, found[0]), text)


def _link(number: re.Match[str]) -> str:
    id = number[0]
    return f"[{id}](#{frame_anchor(id)})" if id in FRAMES else id
