"""The errata: what a document claims fails, what is so passes, and none is missing."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fp4ref import lessons
from fp4ref.frames import FRAMES, Verdict
from fp4ref.lessons import errata, transport
from fp4ref.lessons.answer import first_difference
from fp4ref.lessons.errata import ERRATA, Entry
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.verdict import BLANK

ROOT = Path(__file__).parents[2]
FILE = ROOT / "fp4ref/data/errata.toml"
IDS = (
    [entry["id"] for entry in tomllib.loads(FILE.read_text())["entry"]]
    if FILE.is_file()
    else ["the table is missing"]
)
NOT_RIGHT = [id for id, each in FRAMES.items() if each.verdict is not Verdict.RIGHT]


@cache
def cells_of_notebook_10() -> dict[str, str]:
    text = (ROOT / "notebooks/10_errata.ipynb").read_text(encoding="utf-8")
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(text)["cells"]}


@pytest.fixture(params=IDS)
def entry(request: pytest.FixtureRequest) -> Entry:
    return errata.entry(request.param)


@pytest.mark.parametrize("id", NOT_RIGHT)
def test_no_wrong_verdict_is_without_an_entry(id: str) -> None:
    assert any(id in each.frames for each in ERRATA.values())


def test_all_four_documents_have_entries() -> None:
    assert {each.document for each in ERRATA.values()} == {"000", "001", "002", "003"}


def test_what_the_document_claims_fails(entry: Entry) -> None:
    result = lessons.ask(entry.id, entry.claimed)
    assert not result
    assert result.message.startswith("That is what the document says.")
    assert entry.explanation in repr(result)


def test_what_is_so_passes(entry: Entry) -> None:
    result = lessons.ask(entry.id, entry.true_value)
    assert result, result
    assert entry.explanation in repr(result)
    sent = transport.decode(transport.encode(entry.true_value))
    assert first_difference(sent, entry.true_value) is None


def test_the_blank_and_another_value_fail(entry: Entry) -> None:
    assert lessons.ask(entry.id, ...).message == BLANK
    result = lessons.ask(entry.id, "neither of both")
    assert not result
    assert "document says" not in result.message


def test_an_entry_is_complete(entry: Entry) -> None:
    assert set(entry.frames) <= set(FRAMES)
    assert bool(entry.frames) == (entry.document == "000")
    if entry.frames:
        assert re.sub(r"(?<=\d)[b-z]$", "", entry.id) in entry.frames
    else:
        assert re.fullmatch(rf"{entry.document}-\d+[b-z]?", entry.id)
    assert entry.notebook in LESSONS
    assert entry.truth.startswith("fp4ref.")
    for text in (entry.question, entry.claim, entry.explanation, entry.source):
        assert text.strip()
    assert entry.evidence.strip()
    assert "shared/" not in repr(entry)


def cell_of(entry: Entry, kind: str) -> str:
    key = entry.id.replace(".", "-").replace(" ", "-")
    return cells_of_notebook_10()[f"{kind}-{key}"]


def words(text: str) -> str:
    return " ".join(text.split())


def test_notebook_10_says_what_the_entry_says(entry: Entry) -> None:
    said = words(cell_of(entry, "about"))
    assert said.startswith(f"### {entry.id} ")
    told = (entry.question, entry.claim, entry.explanation, entry.source)
    for text in (*told, entry.evidence.removesuffix(".")):
        assert words(text) in said
    assert said.endswith(f"*Taught in* notebook {entry.notebook[:2]}.")


@pytest.mark.parametrize("document", ["000", "001", "002", "003"])
def test_notebook_10_has_the_note_about_a_document(document: str) -> None:
    notes = tomllib.loads(FILE.read_text(encoding="utf-8"))["note"]
    (note,) = (each["text"] for each in notes if each["document"] == document)
    cells = cells_of_notebook_10()
    (said,) = (
        cells[id] for id in cells if re.match(f"document-{document}(-part-1)?$", id)
    )
    assert words(note) in words(said)


def values_in(text: str, id: str) -> tuple[list[Any], list[Any]]:
    """Values of `assert not lessons.ask(id, ...)` and of `assert lessons.ask(...)`."""
    failing, passing = [], []
    for node in ast.parse(text).body:
        match node:
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call)):
                kept = failing
            case ast.Assert(test=ast.Call() as call):
                kept = passing
            case _:
                continue
        asked, value = map(ast.literal_eval, call.args)
        assert asked == id
        kept.append(value)
    return failing, passing


def test_an_entry_is_a_cell_of_notebook_10(entry: Entry) -> None:
    failing, passing = values_in(cell_of(entry, "erratum"), entry.id)
    assert [first_difference(each, entry.claimed) for each in failing] == [None]
    assert [first_difference(each, entry.true_value) for each in passing] == [None]


def test_an_unknown_entry_is_a_sentence() -> None:
    result = lessons.ask("9.9", 1)
    assert not result
    assert "There is no erratum '9.9'" in result.message
