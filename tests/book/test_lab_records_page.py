"""The records on the page: every one is drawn, tied to what it rests on, and told."""

from __future__ import annotations

from xml.etree import ElementTree

import lab_records_page as page

from fp4ref.lab.records import records


def test_every_record_is_drawn_once_below_what_it_rests_on() -> None:
    drawn = [id for level in page.levels() for id in level]
    assert sorted(drawn) == sorted(records())
    at = page.places()
    for id, record in records().items():
        assert all(at[each][1] < at[id][1] for each in page.before(record)), id


def test_no_two_boxes_overlap() -> None:
    root = ElementTree.fromstring(page.picture())
    boxes = [each for each in root.iter() if each.get("rx") == "6"]
    assert len(boxes) == len(records())
    found = [tuple(float(b.get(n, "")) for n in ("x", "y", "width")) for b in boxes]
    for i, (x, y, width) in enumerate(found):
        for other_x, other_y, _ in found[:i]:
            assert y != other_y or abs(x - other_x) > width


def test_an_arrow_is_left_out_only_if_a_longer_way_says_the_same() -> None:
    pairs = page.arrows()
    reached: dict[str, set[str]] = {id: set() for id in records()}
    for _ in records():
        for a, b in pairs:
            reached[b] |= {a} | reached[a]
    for id, record in records().items():
        assert set(page.before(record)) <= reached[id]
    assert ("F25", "F23C") not in pairs
    assert ("F25", "F22") in pairs


def test_the_twin_and_the_alt_text_say_who_is_tied_to_whom() -> None:
    lines = page.text_twin().splitlines()
    for record in records().values():
        (line,) = [each for each in lines if each.startswith(f"{record.id} ")]
        assert record.state in line
        assert all(id in line for id in page.before(record))
    assert "F24 after F22" in page.alt()
    assert all(id in page.alt() for id in records())


def test_a_records_template_is_told() -> None:
    text = page.experiments()
    for record in records().values():
        assert record.success in text
        assert record.result in text


def test_each_model_and_each_failure_is_on_the_page() -> None:
    text = page.models()
    for words in ("nothing changes", "wait by deficit", "traced kernel", "TN128"):
        assert words in text
    assert "F24" in page.predictions()
    assert "4.1: the wait for each cycle of deficit" in page.doubtful()
