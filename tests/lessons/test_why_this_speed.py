"""why_this_speed: what lesson 23 shows is what the laboratory says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.comparison import baseline_errors
from fp4ref.lab.pair_model import traced_kernel
from fp4ref.lab.records import records
from fp4ref.lessons import why_this_speed as why


def test_a_table_has_every_row_in_text_and_in_html() -> None:
    page = why.table("records")
    for id, record in records().items():
        assert f"  {id}: " in page.text
        assert record.title in page.text
        assert record.title in page.html
    assert "documented" in page.text


def test_rows_of_one_name_stay_apart() -> None:
    page = why.table("others")
    assert page.text.count("  F23C") == 3


def test_cycles_are_the_models() -> None:
    found = why.cycles()
    assert {n: found[n] for n in records().cycles} == {
        name: value for name, (value, _) in baseline_errors(traced_kernel(None)).items()
    }


def test_a_picture_has_a_box_for_each_span_within_it() -> None:
    page = why.tiles_picture()
    root = ElementTree.fromstring(page.html)
    boxes = [each for each in root.iter() if each.tag.endswith("rect")][1:]
    lines = page.text.splitlines()
    assert len(boxes) == len(lines) >= 12
    widths = {float(each.get("width", "")) for each in boxes}
    assert min(widths) > 0
    for x, width in ((float(b.get("x", "")), float(b.get("width", ""))) for b in boxes):
        assert x >= 110
        assert x + width <= 691
    for what in ("K-loop", "phase 1", "epi wait", "TMA0 wait"):
        assert what in page.text


def test_no_span_of_one_warp_overlaps_another_of_it() -> None:
    told: dict[str, float] = {}
    for line in why.tiles_picture().text.splitlines():
        who, _, rest = line.partition(": ")
        begin, _, end = rest.split(", ", 2)[2].rstrip(".").partition(" to ")
        start, stop = (int(each.replace(",", "")) for each in (begin, end))
        assert told.get(who, 0) <= start + 1
        assert start <= stop
        told[who] = stop


def test_what_is_not_there_is_a_sentence() -> None:
    with pytest.raises(InputError, match=r"^table 'none': there are parameters"):
        why.table("none")
    with pytest.raises(InputError, match=r"^product 'none': there are 72b-1024"):
        why.binding("none")
    for ask in (why.cycles, why.tiles_picture):
        with pytest.raises(InputError, match=r"^six_epilogue_warps: the model knows"):
            ask("six_epilogue_warps")
