"""The ladder is in the book, each step with the lesson that explains it."""

from __future__ import annotations

import re

import tables

import fp4ref
from fp4ref.gemm.ladder import ladder
from fp4ref.lessons.outline import LESSONS


def test_every_step_is_in_the_table_in_order_with_a_link() -> None:
    table = tables.family()
    steps = [each.name for each in ladder()]
    assert re.findall(r"^\* - `([\w-]+)`$", table, re.MULTILINE) == steps
    links = re.findall(r"\]\((\S+)\)", table)
    assert len(links) == len(steps)
    for name, link in zip(steps, links, strict=True):
        (taught,) = (each for each in LESSONS.values() if name in each.steps)
        assert link == f"notebooks/{taught.name}.ipynb"


def test_the_lessons_have_every_step_once() -> None:
    named = [step for each in LESSONS.values() for step in each.steps]
    assert sorted(named) == sorted(each.name for each in ladder())


def test_the_ladder_is_in_the_order_of_the_lessons() -> None:
    of = {step: each.number for each in LESSONS.values() for step in each.steps}
    numbers = [of[each.name] for each in ladder() if each.name in of]
    assert numbers == sorted(numbers)


def test_the_choice_that_is_shown_is_made() -> None:
    shown = tables.choice()
    made = fp4ref.choose(16, 4096, 4096)
    assert made.asked["swap_ab"]
    assert all(reason in shown for reason in made.why)
