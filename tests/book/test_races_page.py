"""The page of data races says every class and counts the gallery's rows."""

from __future__ import annotations

import re
import tomllib

import races
from book_site import ROOT

from fp4ref.hardware.order.rules import Failure

ROWS = ROOT / "fp4ref" / "evidence" / "faults" / "rows"


def test_every_class_is_on_the_page() -> None:
    text = races.page().replace("\\", "")
    assert len(Failure) > 10
    for each in Failure:
        assert f"**{each.value.name}**\n: {each.value.rule}." in text
        assert each.value.remedy in text


def test_its_count_is_that_of_the_rows() -> None:
    rows = [
        row
        for path in sorted(ROWS.glob("*.toml"))
        for row in tomllib.loads(path.read_text("utf-8")).values()
    ]
    ended = [row for row in rows if "'RaceFault'" in repr(row)]
    assert 10 < len(ended) < len(rows)
    (said,) = re.findall(r"gallery's (\d+) mistakes (\d+) end as a race", races.page())
    assert said == (str(len(rows)), str(len(ended)))


def test_it_shows_both_lines_of_one_race() -> None:
    report = races.page().split("```")[1]
    assert len(re.findall(r"scales\.py:\d+", report)) == 2
    assert "remedy: " in report
    assert "\nerror" not in report
