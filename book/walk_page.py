"""walk_page: the default walk's whole trace in one page of its own.

It stands beside the site, so that no other page grows by its bytes. At a stop of the
tour it shows the stop's paragraph above the player.
"""

from __future__ import annotations

from functools import cache

import tour

from fp4ref import viz
from fp4ref.execution.runs import Run
from fp4ref.trace import Trace
from fp4ref.viz.milestones import milestones
from fp4ref.walk import Problem, load_problem, walk

_BACK = '<p><a href="index.html">Back to the book</a></p>'
SCHEDULES = ("eager", 0, "late")
"""Beside the walk's own, for the player's switch."""
TILES = 3
"""Of each SM: all, so that every step has its bytes."""


def page() -> str:
    """Return the page of the default walk's player, which opens at its first bytes.

    Beside it the emulator's walks under other schedules.
    """
    problem, emulator, kernel = _walked()
    others = [
        walk(problem, schedule=each, backend="emulator").run for each in SCHEDULES
    ]
    kinds = milestones(trace())
    first = next(step for step, kind in kinds.items() if kind == "full")
    title = f"The default walk: {problem.title}"
    shown = viz.play(
        emulator,
        kernel,
        schedules=others,
        title=title,
        sms=(0, 1),
        tiles=TILES,
        step=first,
    )
    text = shown.page(frames="frames.html").replace("</main>", f"{_BACK}</main>")
    return text.replace("</h1>", f"</h1>{tour.panel(trace())}", 1)


def trace() -> Trace:
    """Return the trace of the emulator's walk."""
    found = _walked()[1].trace
    assert found is not None
    return found


@cache
def _walked() -> tuple[Problem, Run, Run | None]:
    problem = load_problem()
    _, emulator, kernel = walk(problem)
    return problem, emulator, kernel
