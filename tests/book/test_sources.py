"""The book's sources: one table of contents, and pages made from the package."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import fault_page
import frame_page
import glossary
import notebook_pages
import pytest
import table_of_contents
import wording

from fp4ref.evidence.faults import GALLERY
from fp4ref.evidence.faults.riddles import RIDDLES
from fp4ref.evidence.fidelity import RULES
from fp4ref.frames import FRAMES
from fp4ref.gaps import GAPS
from fp4ref.lessons.outline import LESSONS

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
CONTENTS = table_of_contents.read()


def test_every_page_is_in_the_contents_once_and_exists() -> None:
    assert len(set(CONTENTS.files)) == len(CONTENTS.files)
    pages = {path.name for path in BOOK.glob("*.md")} - {"README.md"}
    assert pages == {file for file in CONTENTS.files if file.endswith(".md")}
    for name in LESSONS:
        assert f"notebooks/{name}.ipynb" in CONTENTS.files
        assert (ROOT / f"notebooks/{name}.ipynb").is_file()


def test_a_strange_entry_of_the_contents_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "myst.yml"
    source.write_text("project:\n  toc:\n    - file: a.md\n    - url: b\n")
    with pytest.raises(ValueError, match="expected a title with files"):
        table_of_contents.read(source)


def test_every_notebook_must_be_in_the_contents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorter = table_of_contents.Contents(CONTENTS.root, CONTENTS.parts[1:])
    monkeypatch.setattr(table_of_contents, "read", lambda: shorter)
    with pytest.raises(ValueError, match="do not name the same notebooks"):
        notebook_pages.pages()


def test_the_glossary_names_each_word_once_and_frames_that_exist() -> None:
    areas = tomllib.loads((BOOK / "glossary.toml").read_text("utf-8"))["area"]
    words = [word for area in areas for word in area["word"]]
    anchors = [wording.anchor(word["name"]) for word in words]
    assert len(anchors) == len(set(anchors)) >= 50
    assert {id for word in words for id in word.get("frames", [])} <= set(FRAMES)
    assert all(word["means"].endswith((".", "columns.")) for word in words)
    page = glossary.page()
    assert all(f"(word-{anchor})=" in page for anchor in anchors)


def test_the_glossary_lists_the_aliases_that_readers_bring() -> None:
    page = glossary.page()
    for alias in ("UTCCP", "UMMA", "128x4", "SWIZZLE", "to\\_blocked", "float8_e4m3fn"):
        assert alias.replace("\\", "") in page.replace("\\", "")


def test_tables_have_every_row_of_the_package() -> None:
    import tables

    text = tables.fidelity()
    assert text.count("* - ") == 1 + len(RULES)
    assert all(rule.checked_by.rpartition("::")[2] in text for rule in RULES)
    for rule in RULES:
        if rule.killed_by:
            assert f"in `{rule.mutation.code}`, {wording.plain(rule.killed_by)}" in text
    assert all(f"| {gap.id} |" in text for gap in GAPS)
    assert all(wording.plain(gap.what) in text for gap in GAPS)
    index = frame_page.page()
    for id, frame in FRAMES.items():
        assert f"({wording.frame_anchor(id)})=" in index
        assert wording.plain(frame.claim) in index


def test_the_gallery_has_every_mistake_once_and_by_kind() -> None:
    page = fault_page.page()
    anchors = re.findall(r"^\((fault-.*)\)=$", page, re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#(fault-[^)]*)\)", page)) == set(anchors)
    used = {kind for each in GALLERY.values() for kind in each.kinds}
    assert len(anchors) == len(GALLERY) + len(used)
    entries = re.split(r"^\(fault-(.*)\)=\n### ", page, flags=re.MULTILINE)[1:]
    found = dict(zip(entries[::2], entries[1::2], strict=True))
    assert set(found) == set(GALLERY)
    for name, each in GALLERY.items():
        entry = found[name]
        said = (each.title, each.symptom, each.evidence, each.cause, each.remedy)
        said += tuple(report.what for report in each.reports)
        assert all(wording.plain(text) in entry for text in said), name
        assert f"`fp4ref faults {name} --answer`" in entry
        for form in each.forms.values():
            assert form.caught.what in entry.replace("\\", "")
            assert form.change.line in entry
        for report in each.reports:
            for thread in report.threads:
                repository, number = thread.split("#")
                assert f"github.com/{repository}/issues/{number})" in entry
    parts = re.split(r"^\(fault-kind-(\d+)\)=$", page, flags=re.MULTILINE)
    listed = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    for name, each in GALLERY.items():
        of = {kind for kind, text in listed.items() if f"(#fault-{name})" in text}
        assert of | {each.kinds[0]} == set(each.kinds), name
    riddles = [name for name, entry in found.items() if "\nRiddle\n" in entry]
    assert sorted(riddles) == sorted(riddle.fault.name for riddle in RIDDLES)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Frames 5.4.4-5.4.5.", "Frames [5.4.4](#frame-5-4-4)-[5.4.5](#frame-5-4-5)."),
        ("frame 5 ctx, here", "frame [5 ctx](#frame-5-ctx), here"),
        ("Frame 9.9 is none", "Frame 9.9 is none"),
        ("a 1.5 that is no frame", "a 1.5 that is no frame"),
        ("[x](../book/frames.md#frame-6-7)", "[x](#frame-6-7)"),
        ("[x](../book/glossary.md)", "[x](../glossary.md)"),
        ("[x](../docs/measured.md)", "[x](../measured.md)"),
        ("[x](../fp4ref/run.py)", "[x](../../fp4ref/run.py)"),
        ("[x](01_numbers.ipynb)", "[x](01_numbers.ipynb)"),
    ],
)
def test_links_of_a_notebook_hold_in_the_book(written: str, expected: str) -> None:
    assert notebook_pages.for_the_book(written) == expected


def test_what_is_made_is_not_kept() -> None:
    done = subprocess.run(
        ["git", "ls-files", "book/_generated", "book/notebooks", "book/_build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""


def test_no_page_writes_what_the_package_knows() -> None:
    """Numbers of the frame index, the fidelity table and the map are made."""
    for path in BOOK.glob("*.md"):
        text = path.read_text("utf-8")
        assert not re.search(r"\b(94|91|113) (frames|entries|rules)\b", text), path
