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
from fp4ref.walk import load_problem, walk

_BACK = '<p><a href="index.html">Back to the book</a></p>'
TILES = 3
"""Of each SM: all, so that every step has its bytes."""


def page() -> str:
    """Show the default walk, emulator and compiled kernel, in its player's page."""
    emulator, kernel, title = _walked()
    shown = viz.play(emulator, kernel, title=title, sms=(0, 1), tiles=TILES)
    text = shown.page(frames="frames.html").replace("</main>", f"{_BACK}</main>")
    return text.replace("<main>", f"<main>{tour.panel(trace())}", 1)


def trace() -> Trace:
    """Return the trace of the emulator's walk."""
    found = _walked()[0].trace
    assert found is not None
    return found


@cache
def _walked() -> tuple[Run, Run | None, str]:
    problem = load_problem()
    _, emulator, kernel = walk(problem)
    return emulator, kernel, f"The default walk: {problem.title}"
