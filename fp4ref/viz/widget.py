"""widget: the player as an anywidget; step and view are shared with the page."""

from __future__ import annotations

import anywidget
import traitlets

from fp4ref.viz.player import css, esm


class StepPlayer(anywidget.AnyWidget):
    """Front end `esm`, state by traitlets; works with ipywidgets' `link`."""

    _esm = esm()
    _css = css()
    packet = traitlets.Bytes().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    view = traitlets.Unicode("timeline").tag(sync=True)
    schedule = traitlets.Unicode("").tag(sync=True)
    static = traitlets.Bool(False).tag(sync=True)
