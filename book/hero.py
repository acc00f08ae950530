"""hero: the player on the home page: two tiles of a kernel at work, on the clock."""

from __future__ import annotations

import numpy as np

import fp4ref
from fp4ref import viz
from fp4ref.viz.milestones import milestones

SHAPE = (256, 128, 1536)
"""M, N and K: two tiles of one SM, so that a load, an MMA and a store overlap."""
VIEWS = ("timeline", "stages", "tiles")


def page() -> str:
    """Return the two buttons and the player, as a part of the page."""
    return f"""```{{raw}} html
<p class="fp4-hero"><button type="button" data-hero>Play the kernel</button>
<a href="notebooks/00_start_here.html">Start with notebook 00</a></p>
{player().static_html(frames="frames.html")}
```
"""


def player() -> viz.Player:
    """Run the kernel once; the player begins where its first operands are there."""
    m, n, k = SHAPE
    rng = np.random.default_rng(0)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, k), np.float32)) for rows in (m, n)
    )
    run = fp4ref.run(a, b, schedule="timed", sms=1, trace=True)
    assert run.trace is not None
    kinds = milestones(run.trace)
    first = next(step for step, kind in kinds.items() if kind == "full")
    return viz.play(run, views=VIEWS, step=first, tiles=0, pace="milestones")
