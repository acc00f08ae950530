"""viz: the step-through player and its pictures, in notebooks and on static pages.

::

    from fp4ref import viz
    p = viz.play(run)          # the last line of a cell shows it
    p.step = 37                # and moves it
    p.view = "tmem"
    p.text()                   # the same in words

The scenes are in the modules of that name; every number in them comes from the package.
A player works in JupyterLab (extra ``lab``) and on a page without a kernel.
"""

from fp4ref.viz.arithmetic_scenes import microscope
from fp4ref.viz.fault_scene import fault
from fp4ref.viz.layout_scenes import scale_journey, swizzle
from fp4ref.viz.player import Player
from fp4ref.viz.quantiser_scene import quantiser
from fp4ref.viz.run_scene import play

__all__ = [
    "Player",
    "fault",
    "microscope",
    "play",
    "quantiser",
    "scale_journey",
    "swizzle",
]
