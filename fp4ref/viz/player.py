"""player: one packet shown by one script, in JupyterLab and on a page without a kernel.

The script (`esm`) imports nothing. In JupyterLab it is the front end of an anywidget,
and `Player.step` and `Player.view` are the same numbers on both sides. On a static page
it is inlined beside the packet. Without scripts the page shows `Player.text`.
"""

from __future__ import annotations

import base64
import html
import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.viz.packet import Header, pack
from fp4ref.viz.strings import say, strings

if TYPE_CHECKING:
    from fp4ref.viz.widget import StepPlayer

STATIC_VARIABLE = "FP4REF_STATIC"
"""Set by the book's build: its pages have no kernel."""

FRAMES_VARIABLE = "FP4REF_FRAMES"
"""Set by it too: where the frame index is, seen from a notebook's page."""

PARTS = (
    "arithmetic",
    "recipes",
    "model",
    "draw",
    *(
        f"views/{name}"
        for name in (
            "timeline",
            "stages",
            "barriers",
            "smem",
            "tmem",
            "scales",
            "mma",
            "tiles",
            "tensors",
            "cluster",
            "schedules",
            "sides",
            "quantiser",
            "recipes",
            "swizzle",
            "fault",
        )
    ),
    "milestones",
    "follow",
    "schedules",
    "shell",
    "playback",
    "picks",
    "controls",
    "export",
    "permalink",
    "tips",
    "pointer",
    "keyboard",
    "player",
)
"""Files of the script, in order; they share one scope."""

_shown = count()


@cache
def esm() -> str:
    """Return the script as one ES module."""
    folder = resources.files("fp4ref.viz") / "js"
    return "\n".join(folder.joinpath(f"{part}.js").read_text("utf-8") for part in PARTS)


@cache
def css() -> str:
    """Return the style sheet."""
    return resources.files("fp4ref.viz").joinpath("player.css").read_text("utf-8")


def require_step(step: int, steps: int) -> int:
    """Return `step`, one of `steps`; any whole number where `steps` is 0.

    Raises
    ------
    InputError
        It is no whole number, or no step of the trace.
    """
    step = require_integer(step, "step")
    if steps and not 0 <= step < steps:
        raise InputError(f"step {step}: this trace has steps 0 to {steps - 1}")
    return step


class Recorded(NamedTuple):
    """One trace of a player: how many steps it has, and its text twin."""

    steps: int
    text: Callable[[int, str], str]


class Player:
    """The step-through player of one packet; shown when it ends a cell.

    Parameters
    ----------
    header, payload
        See `fp4ref.viz.packet`.
    steps
        Number of steps; 0 for a picture without a trace.
    view
        The view shown first.
    views
        The views that there are; only `view` if None.
    text
        Called with a step and a view, gives the text twin.
    schedules
        Every trace of the player by the name of its schedule, its own first, where
        there are several.
    """

    def __init__(
        self,
        header: Header,
        payload: bytes = b"",
        *,
        steps: int = 0,
        step: int = 0,
        view: str,
        views: Sequence[str] | None = None,
        text: Callable[[int, str], str],
        schedules: Mapping[str, Recorded] | None = None,
    ) -> None:
        self.title = str(header.get("title", ""))
        self._views = list(views or (view,))
        header = {**header, "views": self._views, "strings": strings()}
        self._packet = pack(header, payload)
        self._traces = dict(schedules or {"": Recorded(steps, text)})
        self._schedule = next(iter(self._traces))
        self._step, self._view = require_step(step, steps), view
        self._widget: StepPlayer | None = None

    @property
    def step(self) -> int:
        """The step shown. Setting it moves the player."""
        return self._widget.step if self._widget else self._step

    @step.setter
    def step(self, step: int) -> None:
        self._step = require_step(step, self._traces[self.schedule].steps)
        if self._widget:
            self._widget.step = self._step

    @property
    def view(self) -> str:
        """The view shown. Setting it changes the view."""
        return self._widget.view if self._widget else self._view

    @view.setter
    def view(self, view: str) -> None:
        if view not in self._views:
            raise InputError(f"view {view!r}; there is {', '.join(self._views)}")
        self._view = view
        if self._widget:
            self._widget.view = view

    @property
    def schedule(self) -> str:
        """The schedule shown; empty if the player has one trace only.

        Setting it changes the trace; the step stays, or is the last one.
        """
        return self._widget.schedule if self._widget else self._schedule

    @schedule.setter
    def schedule(self, schedule: str) -> None:
        if schedule not in self._traces:
            there = ", ".join(filter(None, self._traces)) or "no other: schedules=[...]"
            raise InputError(f"schedule {schedule!r}; there is {there}")
        step = min(self.step, max(0, self._traces[schedule].steps - 1))
        self._schedule = schedule
        if self._widget:
            self._widget.schedule = schedule
        self.step = step

    @property
    def packet(self) -> bytes:
        """The deflated bytes that the script reads."""
        return self._packet

    def text(self) -> str:
        """Return the text twin: what is shown, in words."""
        return self._traces[self.schedule].text(self.step, self.view)

    def widget(self) -> StepPlayer:
        """Return the live widget; one for all displays of this player."""
        if self._widget is None:
            from fp4ref.viz.widget import StepPlayer

            self._widget = StepPlayer(
                packet=self._packet,
                step=self._step,
                view=self._view,
                schedule=self._schedule,
            )
        return self._widget

    def fallback(self) -> str:
        """Return the text twin as HTML, for readers without scripts."""
        return (
            f'<div class="fp4ref-fallback"><p>{html.escape(say("text.fallback"))}</p>'
            f"<pre>{html.escape(self.text())}</pre></div>"
        )

    def static_html(self, *, frames: str | None = None) -> str:
        """Return HTML that needs no kernel and loads nothing.

        Parameters
        ----------
        frames
            Address of the frame index, to which the event's frame is then a link; what
            the book's build says if None, and no link if it says nothing.
        """
        if frames is None:
            frames = os.environ.get(FRAMES_VARIABLE, "")
        name = f"fp4ref-{zlib.crc32(self._packet):08x}-{next(_shown)}"
        data = base64.b64encode(self._packet).decode()
        script = base64.b64encode(esm().encode()).decode()
        return f"""<style>{css()}</style>
<div id="{name}">{self.fallback()}</div>
<script type="text/plain" id="{name}-packet">{data}</script>
<script type="module">
const state = {{packet: document.getElementById("{name}-packet").textContent,
  step: {self.step}, view: "{self.view}", schedule: {json.dumps(self.schedule)},
  static: true, frames: {json.dumps(frames)}}};
const heard = {{}};
const model = {{
  get: (key) => state[key],
  set: (key, value) => {{
    if (state[key] === value) return;
    state[key] = value;
    for (const hear of heard["change:" + key] ?? []) hear();
  }},
  save_changes() {{}},
  on: (event, hear) => (heard[event] ??= []).push(hear),
  off: (event, hear) => {{ heard[event] = heard[event].filter((h) => h !== hear); }},
}};
const player = await import("data:text/javascript;base64,{script}");
await player.default.render({{model, el: document.getElementById("{name}")}});
</script>"""

    def page(self, *, frames: str | None = None) -> str:
        """Return a whole HTML page with this player; it opens from a file.

        Parameters
        ----------
        frames
            See `static_html`.
        """
        title = html.escape(self.title or "fp4ref")
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            '<link rel="icon" href="data:,">'
            "<style>:root{color-scheme:light dark}"
            "body{background:Canvas;color:CanvasText;font:14px system-ui,sans-serif}"
            "h1{font-size:20px;margin:8px 0}"
            "main h1~* .fp4ref-title{display:none}</style>"
            f"<title>{title}</title></head>"
            f"<body><main><h1>{title}</h1><div>{self.static_html(frames=frames)}</div>"
            "</main></body></html>"
        )

    def _repr_mimebundle_(self, **_: Any) -> Any:
        plain = {"text/plain": self.text()}
        if os.environ.get(STATIC_VARIABLE):
            return {"text/html": self.static_html(), **plain}
        try:
            bundle = self.widget()._repr_mimebundle_()
        except ImportError:  # without the extra "lab" the page is static
            return {"text/html": self.static_html(), **plain}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), **plain}, metadata

    def _ipython_display_(self) -> None:
        """Show the player, and in an output of its own the text twin.

        A notebook that is opened again without its kernel has no widget any more; the
        text is then what remains. Style sheets hide it beside a living player.
        """
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        show: Any = display
        show(data, raw=True, metadata=metadata)
        if "text/html" not in data:
            show({"text/html": self.fallback()}, raw=True)

    def __repr__(self) -> str:
        return self.text()
