"""Each notebook: the same skeleton, small, without outputs, and as the outline says."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from fp4ref.lessons.exercise import of_lesson
from fp4ref.lessons.grader import calls_of_check
from fp4ref.lessons.outline import LESSONS

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = list(LESSONS)

HEADINGS = [
    "## What the hardware promises",
    "## The model",
    "## Watch it",
    "## Break it",
    "## The same lines in CUDA",
    "## Check",
    "## What you can do now",
]
SEEN_FIRST = [*HEADINGS[2:4], *HEADINGS[:2], *HEADINGS[4:]]
"""Notebook 00 shows the kernel at work, and at a standstill, before it says how."""

OTHER_SHAPE = {"10_errata", "14_riddles"}
"""Many entries, not a walk through one idea."""

OTHER_EXERCISES = {"00_start_here", *OTHER_SHAPE}
TAGS = {"exercise", "solution", "hide-cell", "hide-input", "hide-output"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MOST_CODE_CELLS = 25
MOST_LINES = 10
MOST_WORDS = 150
MOST_PLAYERS = 3


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@cache
def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def cells(name: str, kind: str = "") -> list[tuple[str, str, dict[str, Any]]]:
    """Id, text and metadata of each cell of a kind."""
    return [
        (cell["id"], "".join(cell["source"]), cell["metadata"])
        for cell in load(name)["cells"]
        if kind in ("", cell["cell_type"])
    ]


def test_no_other_notebook_is_in_the_folder() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix == ".ipynb"} == {
        f"{name}.ipynb" for name in NAMES
    }


def test_the_file_is_a_clean_notebook(name: str) -> None:
    notebook = load(name)
    nbformat.validate(nbformat.from_dict(notebook))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"] == METADATA
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags", "jupyter"}, cell["id"]
        assert cell["metadata"].get("jupyter", {"source_hidden": True}) == {
            "source_hidden": True
        }
        assert set(cell["metadata"].get("tags", [])) <= TAGS, cell["id"]
        assert re.fullmatch(r"[a-z][a-z0-9-]*", cell["id"]), cell["id"]
        assert "attachments" not in cell
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def test_a_collapsed_solution_gives_nothing_away(name: str) -> None:
    """JupyterLab shows the first line of a collapsed cell."""
    for id, text, metadata in cells(name, "code"):
        if "solution" in metadata.get("tags", []):
            assert text.startswith("# "), id


def test_the_title_cell_says_what_the_outline_says(name: str) -> None:
    lesson = LESSONS[name]
    id, text, _ = cells(name)[0]
    assert id == "title"
    assert text.splitlines()[0] == f"# {lesson.number}. {lesson.title}"
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    assert re.fullmatch(r"\*\*[^*]+\*\*", paragraphs[1]), "one claim, in bold"
    assert paragraphs[2] == (
        f"**Minutes** {lesson.minutes}. **Needs** {lesson.needs_in_words}. "
        f"**After it you can** {lesson.objectives}."
    )
    assert any("Frame" in each for each in paragraphs[3:]), "a line names the frames"


def test_the_first_code_cell_starts(name: str) -> None:
    id, text, _ = cells(name, "code")[0]
    assert id == "start"
    assert f'lessons.start("{name}")' in text
    assert "import lessons" in text or re.search(r"import .*\blessons\b", text)


def test_the_headings_are_the_skeletons(name: str) -> None:
    found = [
        line
        for _, text, _ in cells(name, "markdown")
        for line in re.sub(r"(?ms)^```.*?^```", "", text).splitlines()
        if line.startswith("## ")
    ]
    if name in OTHER_SHAPE:
        assert found[-1] == HEADINGS[-1]
    else:
        assert found == (SEEN_FIRST if name == NAMES[0] else HEADINGS)


def test_the_promises_are_short(name: str) -> None:
    if name in OTHER_SHAPE:
        return
    (text,) = [text for _, text, _ in cells(name) if text.startswith(HEADINGS[0])]
    not_read = r"<svg.*?</svg>|!\[.*?\]\(\S+\)|[|#-]+"  # pictures, and rules of tables
    words = re.sub(not_read, " ", text, flags=re.DOTALL).split()
    assert len(words) <= MOST_WORDS


def test_the_last_cell_leads_on(name: str) -> None:
    _, text, _ = cells(name)[-1]
    assert text.startswith(HEADINGS[-1])
    following = NAMES[NAMES.index(name) + 1 :]
    if following:
        assert f"{following[0]}.ipynb" in text


def test_links_lead_somewhere(name: str) -> None:
    for id, text, _ in cells(name, "markdown"):
        for target in re.findall(r"\]\(([^)#]+)", text):
            if not re.match(r"https?:", target):
                assert (FOLDER / target).resolve().exists(), (id, target)


def test_a_notebook_is_small(name: str) -> None:
    code = cells(name, "code")
    assert len(code) <= MOST_CODE_CELLS or name in OTHER_SHAPE
    assert sum(text.count("viz.play(") for _, text, _ in code) <= MOST_PLAYERS
    for id, text, _ in code:
        assert max(map(len, text.splitlines())) <= 88, id
        assert "environ" not in text, id
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                assert lines <= MOST_LINES, (id, node.name, lines)


def test_exercises_come_with_solutions(name: str) -> None:
    number = LESSONS[name].number
    code = cells(name, "code")
    tagged = [id for id, _, meta in code if "exercise" in meta.get("tags", [])]
    if name not in OTHER_EXERCISES:
        assert 2 <= len(tagged) <= 4
    assert list(of_lesson(number)) == [
        f"{number}.{i}" for i in range(1, len(tagged) + 1)
    ]
    by_id = {id: (text, meta) for id, text, meta in code}
    order = [id for id, _, _ in code]
    for i, id in enumerate(tagged, 1):
        exercise = f"{number}.{i}"
        assert id == f"exercise-{i}"
        text, meta = by_id[id]
        assert meta["tags"] == ["exercise"]
        assert [each for each, _ in calls_of_check(text)] == [exercise]
        assert "..." in text
        assert order.index(f"solution-{i}") == order.index(id) + 1
        text, meta = by_id[f"solution-{i}"]
        assert set(meta["tags"]) == {"solution", "hide-cell"}
        assert [each for each, _ in calls_of_check(text)] == [exercise]
        assert f'assert lessons.check("{exercise}", ' in text
    solutions = [id for id, _, meta in code if "solution" in meta.get("tags", [])]
    assert len(solutions) == len(tagged)


def test_a_hint_is_mentioned(name: str) -> None:
    if of_lesson(LESSONS[name].number):
        words = "\n".join(text for _, text, _ in cells(name, "markdown"))
        assert f'lessons.hint("{LESSONS[name].number}.' in words


def test_no_player_shows_a_serial_machine(name: str) -> None:
    """Under "eager", the default of `fp4ref.run`, no load and MMA ever overlap."""
    schedules: dict[str, Any] = {}
    shown: list[str] = []
    for _, text, _ in cells(name, "code"):
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=target)],
                    value=ast.Call(func=ast.Attribute(attr="run"), keywords=keywords),
                ):
                    schedules[target] = {k.arg: k.value for k in keywords}.get(
                        "schedule", ast.Constant("eager")
                    )
                case ast.Call(func=ast.Attribute(attr="play"), args=args, keywords=kw):
                    runs = [*args, *(k.value for k in kw if k.arg == "kernel")]
                    shown += [each.id for each in runs if isinstance(each, ast.Name)]
    for each in shown:
        assert isinstance(schedules[each], ast.Constant), each
        assert schedules[each].value != "eager", each
