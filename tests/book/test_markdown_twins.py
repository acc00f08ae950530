"""Each page has a twin in Markdown, whole and without pictures; one index names all."""

from __future__ import annotations

import re
from pathlib import Path

import frame_page
import glossary
import markdown_twins
import notebook_pages
import pytest
import table_of_contents
from book_site import ROOT

from fp4ref.frames import FRAMES

BOOK = ROOT / "book"
CONTENTS = table_of_contents.read()


@pytest.fixture(scope="module")
def twins() -> dict[str, str]:
    """Twins of all pages; parts that are dear to make are a line with their name."""
    names = [re.findall(r"\{include\} (_generated/\S+)", t) for t in sources()]
    made = {name: f"Here is {name}.\n" for found in names for name in found}
    made["_generated/frames.md"] = frame_page.page()
    made["_generated/glossary.md"] = glossary.page()
    made["_generated/hero.md"] = "```{raw} html\n<p>a player</p>\n```\n"
    return markdown_twins.pages({**made, **notebook_pages.pages()})


def sources() -> list[str]:
    files = [file for file in CONTENTS.files if file.endswith(".md")]
    return [(BOOK / file).read_text("utf-8") for file in files]


def test_every_page_has_one_and_the_index_names_it(twins: dict[str, str]) -> None:
    index = twins[markdown_twins.INDEX]
    linked = re.findall(r"\]\(markdown/(\S+)\)", index)
    stems = [f"{Path(file).stem}.md" for file in CONTENTS.files]
    assert linked == stems
    assert len(set(stems)) == len(stems)
    assert {f"{markdown_twins.FOLDER}/{stem}" for stem in stems} < set(twins)
    assert all(f"## {part.title}\n" in index for part in CONTENTS.parts)
    assert "- [10. Errata](markdown/10_errata.md)" in index


def test_a_twin_has_the_parts_in_their_places(twins: dict[str, str]) -> None:
    text = twins[f"{markdown_twins.FOLDER}/frames.md"]
    assert text.startswith("# Frame index\n")
    assert all(f"### {id} " in text for id in FRAMES)
    for twin in twins.values():
        assert "{include}" not in twin
        assert "{raw}" not in twin


def test_a_notebook_has_its_text_and_its_code(twins: dict[str, str]) -> None:
    text = twins[f"{markdown_twins.FOLDER}/10_errata.md"]
    assert "### 1.1 Mainloop pipeline" in text
    assert '````python\nassert not lessons.ask("1.1", 20)' in text
    assert '"cell_type"' not in text
