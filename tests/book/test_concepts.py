"""The sketch of each notebook: as its code draws it, and its words for all it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import concepts
import pytest
from concept_drawing import Sketch

from fp4ref.lessons.outline import LESSONS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def sketches() -> dict[str, Sketch]:
    return concepts.sketches()


def test_every_notebook_has_its_sketch_with_its_words(
    sketches: dict[str, Sketch],
) -> None:
    assert list(sketches) == [name for name in LESSONS if name[:2] != "00"]
    for name, sketch in sketches.items():
        file = NOTEBOOKS / concepts.FOLDER / f"{name[:2]}.svg"
        assert file.read_text("utf-8") == sketch.svg(), "python book/concepts.py"
        cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
        assert text.count(concepts.reference(name, sketch)) == 1, name
        assert text.count(f"({concepts.FOLDER}/") == 1
    kept = {path.name for path in (NOTEBOOKS / concepts.FOLDER).iterdir()}
    assert kept == {f"{name[:2]}.svg" for name in sketches}


def test_the_words_of_a_sketch_name_all_that_it_shows(
    sketches: dict[str, Sketch],
) -> None:
    """Each text of the picture is in its twin, and none goes over the edge."""
    for sketch in sketches.values():
        root = ElementTree.fromstring(sketch.svg())
        told = root.find(f"{SVG}desc")
        assert told is not None
        assert told.text == sketch.description()
        for word in root.iter(f"{SVG}text"):
            assert word.text is None or word.text.strip(".") in (told.text or "")
            width = 7.0 * len(word.text or "")
            left = float(word.get("x", "0"))
            left -= width / 2 if word.get("text-anchor") else 0
            assert left >= 0
            assert left + width <= float(root.get("width", "0")) + 4, word.text
        marks = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "ground"]
        assert len(marks) == 1


def test_a_text_that_has_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="wider than"):
        Sketch("A row").row(["a long word in a narrow cell"] * 4)


def test_numbers_of_sketches_are_those_of_the_parts_they_show(
    sketches: dict[str, Sketch],
) -> None:
    """By hand: sizes of E2M1, the swizzle as XOR, bytes of a stage, columns."""
    by_number = {name[:2]: each.description() for name, each in sketches.items()}
    assert "0, 0.5, 1, 1.5, 2, 3, 4, 6;" in by_number["01"]
    for row in range(8):
        cells = [f"{i ^ row}" + " (marked)" * (i == row) for i in range(8)]
        assert f"r{row}, {', '.join(cells)};" in by_number["03"]
    assert f"expect_tx {2 * 16384 + 2 * 2048:,} bytes" in by_number["04"]
    assert "from 256, from 272, from 288, from 304" in by_number["05"]
    loads = re.findall(r"load \d: ([\d,]+) to ([\d,]+)", by_number["07"])
    mmas = re.findall(r"MMA \d: ([\d,]+) to ([\d,]+)", by_number["07"])
    assert len(loads) == len(mmas) == 6
    for load, mma in zip(loads, mmas, strict=True):
        assert int(load[1].replace(",", "")) < int(mma[0].replace(",", ""))
    assert "s (marked), e, e, m;" in by_number["19"]
