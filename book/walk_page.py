"""walk_page: the default walk's whole trace in one page of its own.

It stands beside the site, so that no other page grows by its bytes.
"""

from __future__ import annotations

import fp4ref
from fp4ref import viz
from fp4ref.walk import load_problem

_BACK = '<p><a href="index.html">Back to the book</a></p>'


def page() -> str:
    """Run the default walk, emulator and compiled kernel; return its player's page."""
    problem = load_problem()
    qa = fp4ref.quantize(problem.x, global_scale="auto")
    qb = fp4ref.quantize(problem.w, global_scale="auto")
    emulator = fp4ref.run(qa, qb)
    kernel = fp4ref.run(qa, qb, backend="ptx")
    shown = viz.play(emulator, kernel, title=f"The default walk: {problem.title}")
    return shown.page().replace("</main>", f"{_BACK}</main>")
