"""viz: the step-through player and its pictures, in notebooks and on static pages.

::

    from fp4ref import viz
    p = viz.play(run)          # the last line of a cell shows it
    p.step = 37                # and moves it
    p.view = "tmem"
    p.text()                   # the same in words

A player works in JupyterLab (extra ``lab``) and on a page without a kernel.
"""

from fp4ref.viz.player import Player
from fp4ref.viz.scenes import (
    fault,
    microscope,
    play,
    quantiser,
    scale_journey,
    swizzle,
)

__all__ = [
    "Player",
    "fault",
    "microscope",
    "play",
    "quantiser",
    "scale_journey",
    "swizzle",
]
