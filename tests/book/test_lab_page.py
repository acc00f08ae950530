"""The page of the laboratory: its picture and twin have every staging's passes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import lab_page

from fp4ref.lab.staging import STAGINGS

PAGE = Path(__file__).parents[2] / "book" / "lab.md"


def test_the_picture_has_a_cell_for_each_phase_and_bank() -> None:
    root = ElementTree.fromstring(lab_page.picture())
    cells = [each for each in root.iter() if each.get("width") == "16"]
    assert len(cells) == len(STAGINGS) * 4 * 32
    conflicts = [each for each in cells if each.get("fill") == "#fecaca"]
    assert len(conflicts) == 4 * (4 + 16 + 4)  # of rows of 256, twice, and of 272
    words = [each.text for each in root.iter()]
    assert words.count("8") == 4 * 4 + 1  # and the bank of that number
    assert all(f"{s.name}: {s.worst_write.passes} passes" in words for s in STAGINGS)


def test_the_twin_says_the_same() -> None:
    assert lab_page.text_twin().count("8888....") == 4
    assert lab_page.text_twin().count("  1 pass\n") == 2 * 4
    assert all(s.name in lab_page.alt() for s in STAGINGS)


def test_the_page_says_each_kind_and_includes_every_part() -> None:
    text = PAGE.read_text()
    for word in ("measured", "documented", "model", "compiled"):
        assert f"**{word}**" in text
    every = ("bounds", "banks", "compiled", "figures", "records")
    for part in (*every, "models", "predictions", "doubtful"):
        assert f"_generated/lab_{part}.md" in text
    assert "(model)" in lab_page.bounds()
    assert "do not use" in lab_page.figures()


def test_the_compiled_kernels_are_on_the_page() -> None:
    page = lab_page.compiled()
    assert "CUTLASS 72b" in page
    assert "whole double rounds of the ring written out" in page
    assert "UTCOMMA.4X gdesc" not in page
