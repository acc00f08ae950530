"""Every word of a picture can be read: it meets no other, and is 12 pixels at least."""

from __future__ import annotations

from typing import Any

import pytest
from drawn_words import WORDS, words_that_meet
from player_page import PLAYER, VIEWS

import fp4ref
from fp4ref import viz


@pytest.mark.rotating(1)
@pytest.mark.parametrize("width", [1280, 688, 390])
def test_no_word_meets_another(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any, width: int
) -> None:
    run, kernel = walk_runs
    assert run.trace is not None
    page = open_players(viz.play(run, kernel), viewport={"width": width, "height": 900})
    for view in VIEWS:
        for step in (200, len(run.trace) // 2, len(run.trace) - 1):
            page.evaluate(f"() => {{ {PLAYER}.show('{view}'); {PLAYER}.go({step}); }}")
            words = page.evaluate(WORDS)
            assert words
            assert words_that_meet(words) == [], (view, step)
            assert [w["words"] for w in words if w["beyond"] > 1] == [], (view, step)
            assert min(w["size"] for w in words) >= 12, (view, step)


def test_two_words_in_one_place_are_noticed(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    page = open_players(viz.play(walk_runs[0], step=900))
    page.evaluate(
        "() => { const t = document.querySelectorAll('.fp4ref-picture svg text');"
        " t[3].setAttribute('x', t[4].getAttribute('x'));"
        " t[3].setAttribute('y', t[4].getAttribute('y')); }"
    )
    assert words_that_meet(page.evaluate(WORDS))


def test_on_a_phone_a_finger_finds_every_control(
    walk_runs: tuple[fp4ref.Run, fp4ref.Run], open_players: Any
) -> None:
    page = open_players(viz.play(walk_runs[0]), viewport={"width": 390, "height": 844})
    page.locator(".fp4ref-pace summary").click()
    for view in VIEWS[:-1]:
        page.evaluate(f"() => {PLAYER}.show('{view}')")
        small = page.locator(
            ".fp4ref-player :is(button, select, input:not([type=checkbox]), summary)"
        ).evaluate_all(
            "(all) => all.map((e) => [e.outerHTML.slice(0, 60),"
            " e.getBoundingClientRect().height]).filter(([, h]) => h > 0 && h < 43.5)"
        )
        assert small == [], view
