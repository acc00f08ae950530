"""The picture of notebook 00: as it is drawn, and as the kernel's events have it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import data_flow
import numpy as np
import pytest

import fp4ref
from fp4ref.trace import Event, Range, Trace

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SPACES = {
    "global memory": "gmem",
    "shared memory": "smem",
    "tensor memory": "tmem",
    "registers": "",
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trace() -> Trace:
    q = fp4ref.quantize(np.ones((128, 256), np.float32))
    found = fp4ref.run(q, q, schedule=0).trace
    assert found is not None
    return found


def space(where: Range) -> str:
    """Kind of memory, whichever SM it belongs to."""
    return where.space.rstrip("0123456789")


def operand(event: Event) -> str:
    """Column of the picture that a copy by TMA belongs to."""
    name = event.operands.get("tensor", "D")
    return {"A": "A, B", "B": "A, B", "SFA": "scales", "SFB": "scales"}.get(name, name)


@pytest.mark.parametrize("move", data_flow.FLOW, ids=lambda m: f"{m.label} {m.operand}")
def test_each_arrow_is_what_an_operation_does(
    move: data_flow.Move, trace: Trace
) -> None:
    """Its events read the one memory and write the other, and no third."""
    events = [e for e in trace if e.operation.startswith(move.operation)]
    if move.label == "TMA":
        events = [e for e in events if operand(e) == move.operand]
    source, target = SPACES[move.source], SPACES[move.target]
    assert {source} - {""} <= {space(r) for e in events for r in e.reads}
    assert {space(w) for e in events for w in e.writes} == {target} - {""}


def test_no_copy_of_the_kernel_is_missing(trace: Trace) -> None:
    """What moves many bytes between two memories has an arrow."""
    drawn = {(SPACES[m.source], SPACES[m.target]) for m in data_flow.FLOW}
    for event in trace:
        for read in event.reads:
            for write in event.writes:
                if min(read.size, write.size) > 16:
                    assert (space(read), space(write)) in drawn, event


def test_the_file_is_what_is_drawn() -> None:
    assert data_flow.PATH.read_text("utf-8") == data_flow.svg()


def test_the_picture_speaks() -> None:
    root = ElementTree.fromstring(data_flow.svg())
    described = root.find(f"{SVG}desc")
    assert described is not None
    assert described.text == data_flow.description()
    assert root.get("role") == "img"
    assert "prefers-color-scheme:dark" in data_flow.svg()
    notebook = json.loads((NOTEBOOKS / "00_start_here.ipynb").read_text("utf-8"))
    text = "\n".join("".join(c["source"]) for c in notebook["cells"])
    (alt,) = re.findall(r"!\[([^\]]+)\]\(data_flow\.svg\)", text)
    for move in data_flow.FLOW:
        assert move.label in alt
        assert move.source.removesuffix(" memory") in alt
        assert move.target.removesuffix(" memory") in alt


def test_no_arrow_or_word_leaves_the_picture() -> None:
    """It is as wide as a phone; letters are 8 pixels wide at most."""
    root = ElementTree.fromstring(data_flow.svg())
    assert int(root.get("width", "0")) <= 360
    for word in root.iter(f"{SVG}text"):
        width = 8 * len(word.text or "")
        left = int(word.get("x", "0")) - (width / 2 if word.get("text-anchor") else 0)
        assert left >= 8
        assert left + width <= data_flow.WIDTH + 8, word.text
