"""The page of triage shows what triage says, and lists every mistake."""

from __future__ import annotations

import re

import triage_page

from fp4ref.evidence.triage import MISTAKES


def test_the_example_is_explained_and_the_text_says_what_is_drawn() -> None:
    found, part = triage_page.example()
    assert found.names == ("half of B",)
    assert found.verdict == "explained"
    red = triage_page.picture().count("#b91c1c")
    assert red == int((part > 0.5).sum()) == 32
    shares = [
        float(x) for x in re.findall(r": (\d+)%", " ".join(triage_page.columns()))
    ]
    assert [share > 50 for share in shares] == [False, False, True, True] * 2


def test_each_mistake_has_a_row() -> None:
    lines = triage_page.page().splitlines()
    for each in MISTAKES:
        assert sum(line.startswith(f"| {each.name} |") for line in lines) == 1
