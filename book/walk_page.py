"""walk_page: the default walk's whole trace in one page of its own.

It stands beside the site, so that no other page grows by its bytes.
"""

from __future__ import annotations

from fp4ref import viz
from fp4ref.walk import load_problem, walk

_BACK = '<p><a href="index.html">Back to the book</a></p>'
TILES = 3
"""Of each SM: all, so that every step has its bytes."""


def page() -> str:
    """Run the default walk, emulator and compiled kernel; return its player's page."""
    problem = load_problem()
    _, emulator, kernel = walk(problem)
    title = f"The default walk: {problem.title}"
    shown = viz.play(emulator, kernel, title=title, sms=(0, 1), tiles=TILES)
    return shown.page(frames="frames.html").replace("</main>", f"{_BACK}</main>")
