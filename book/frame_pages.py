"""frame_pages: a page of its own for each frame, with a player at its step.

The pages stand beside the site like the walk. All of them show one run in one page of a
player, which they hold in a small window; a frame that this run does not emit has the
run of the configuration that it asks for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

import numpy as np
from evidence_links import linked, linked_path
from wording import VERDICTS, code_anchor, frame_anchor

import fp4ref
from fp4ref import GemmConfig, viz
from fp4ref.cuda_kernel.twins import twin
from fp4ref.frames import FRAMES, Frame, FrameKind, Verdict, derive, show
from fp4ref.lessons.outline import LESSONS
from fp4ref.lessons.page import Page, inline
from fp4ref.lessons.show import beside, source
from fp4ref.trace import Event, Trace
from fp4ref.viz.sentences import sentences

FOLDER = "_generated/site/frame"
SHAPE = (128, 128, 2048)
"""M, N and K: two tiles of eight k-tiles each, as many as the document has."""

VIEWS = {
    "tcgen05.mma": "mma",
    "tcgen05.cp": "scales",
    "tcgen05.ld": "tmem",
    "mbarrier": "barriers",
    "pipeline": "barriers",
}
"""What the player shows of a frame, by the start of its first operation."""

_PLACES = {
    FrameKind.CONSTRUCTED: "Made before the first event; the player is at the start.",
    FrameKind.DERIVED: "Counted over the whole run; the player is at its end.",
}


@dataclass(frozen=True, eq=False)
class Shown:
    """A run that frames are shown in.

    Attributes
    ----------
    name
        Of its player's page, without its ending.
    """

    name: str
    config: GemmConfig
    trace: Trace

    def first(self, frame: Frame) -> Event | None:
        """First event of a frame, of the operation that it is named after if any."""
        found = self.trace.select(frame=frame.id)
        named = [e for e in found if e.operation in frame.operations[:1]]
        return next(iter([*named, *found]), None)


def path_of(frame: Frame) -> str:
    """Path of a frame's page from the root of the site."""
    return f"frame/{frame_anchor(frame.id).removeprefix('frame-')}.html"


def pages() -> dict[str, str]:
    """Return every frame's page and every run's player, by path from ``book/``."""
    made = {f"_generated/site/{path_of(f)}": _page(f) for f in FRAMES.values()}
    runs = {run.name: run for run in map(_run_of, FRAMES.values())}
    return made | {f"{FOLDER}/{run.name}.html": _player(run) for run in runs.values()}


def place(frame: Frame) -> tuple[Shown, int, str]:
    """Return the run of a frame, the step where it is shown, and the step in words."""
    run = _run_of(frame)
    event = run.first(frame)
    if event is not None:
        return run, event.step, _told(run)[event.step]
    step = len(run.trace) - 1 if frame.kind is FrameKind.DERIVED else 0
    return run, step, _PLACES[frame.kind]


@cache
def _run(name: str, **asked: Any) -> Shown:
    config = GemmConfig.nvfp4(**asked) if asked else GemmConfig.example_72b(tile_n=64)
    rng = np.random.default_rng(0)
    m, n, k = (256, 256, 64) if asked else SHAPE
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, k), np.float32)) for rows in (m, n)
    )
    sms = fp4ref.plan(config).cluster_size
    run = fp4ref.run(a, b, config=config, schedule="timed", sms=sms)
    assert run.trace is not None
    return Shown(name, config, run.trace)


def _run_of(frame: Frame) -> Shown:
    """Return the run of all frames, or the one that a frame asks for."""
    usual = _run("run")
    if not frame.asks or usual.first(frame):
        return usual
    return _run(f"run-{frame.id.replace('.', '-')}", **frame.asks)


@cache
def _told(run: Shown) -> list[str]:
    return sentences(run.trace)


def _player(run: Shown) -> str:
    """Return the page of a run's player; its links open in the page around it."""
    shape = "the frames' run" if run.name == "run" else "this frame's configuration"
    page = viz.play(run.trace, title=f"NVFP4 GEMM, {shape}", tiles=1).page(
        frames="../frames.html"
    )
    head = '<base target="_parent"><script src="../_static/frame.js"></script></head>'
    return page.replace("</head>", head, 1)


def _page(frame: Frame) -> str:
    run, step, words = place(frame)
    title = escape(f"Frame {frame.id}: {frame.title}")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="../_static/frame.css">
<script src="../_static/frame.js"></script></head>
<body><main><article>
{_ways(frame)}
<h1>{title}</h1>
{_meaning(frame)}
<h2>In a run</h2>
<p>{inline(words)} Step {step:,} of {len(run.trace) - 1:,}. {_run_in_words(run)}</p>
<iframe title="Player at step {step}" src="{_address(frame, run, step)}"></iframe>
{_values(frame, run)}<h2>In PTX and CUTLASS</h2>
{_sources(frame)}
<h2>In Python and in CUDA</h2>
{_texts(frame).html}
{_elsewhere(frame)}
{_ways(frame)}
</article></main></body></html>
"""


def _ways(frame: Frame) -> str:
    """Links to the frames before and after, and to the index between them."""
    all_frames = list(FRAMES.values())
    at = all_frames.index(frame)
    before, after = all_frames[max(at - 1, 0)], all_frames[min(at + 1, len(FRAMES) - 1)]
    links = [f'<a href="../frames.html#{frame_anchor(frame.id)}">Frame index</a>']
    if before is not frame:
        links.insert(0, _way("prev", "\N{LEFTWARDS ARROW}", before))
    if after is not frame:
        links.append(_way("next", "\N{RIGHTWARDS ARROW}", after))
    return f'<nav aria-label="Frames">{" ".join(links)}</nav>'


def _way(rel: str, sign: str, to: Frame) -> str:
    words = f"{to.id} {escape(to.title)}"
    text = f"{sign} {words}" if rel == "prev" else f"{words} {sign}"
    return f'<a rel="{rel}" href="../{path_of(to)}">{text}</a>'


def _meaning(frame: Frame) -> str:
    """Say what is so, and whether the document says it."""
    claim, truth = (f"<p>{inline(each)}</p>" for each in (frame.claim, frame.truth))
    verdict = f"The document is <strong>{VERDICTS[frame.verdict]}</strong>"
    if frame.verdict is Verdict.RIGHT:
        return f"{claim}\n<p>{verdict}. {inline(frame.truth)}</p>"
    return f"{truth}\n<p>{verdict}. It says:</p>\n<blockquote>{claim}</blockquote>"


def _run_in_words(run: Shown) -> str:
    m, n, k = (run.trace.meta["shape"][name] for name in "mnk")
    tile = run.config.tile
    return (
        f"The run is a product of {m} x {n} x {k:,} with tiles of {tile.m} x {tile.n} "
        "on the clock of a model."
    )


def _address(frame: Frame, run: Shown, step: int) -> str:
    first = (frame.operations or ("",))[0]
    view = next((v for name, v in VIEWS.items() if first.startswith(name)), "timeline")
    return f"{run.name}.html?view={view}&amp;step={step}"


def _values(frame: Frame, run: Shown) -> str:
    """Values of a frame that is no event, in this run."""
    if frame.kind is FrameKind.EVENT:
        return ""
    if frame.kind is FrameKind.DERIVED:
        found = derive(frame.id, run.trace)
    else:
        m, n, k = (run.trace.meta["shape"][name] for name in "mnk")
        found = show(frame.id, run.config, m, n, k)
    rows = "".join(
        f'<tr><th scope="row">{escape(name.replace("_", " "))}</th>'
        f"<td><code>{escape(json.dumps(value))}</code></td></tr>"
        for name, value in found.items()
    )
    return f"<table><caption>Its values in this run</caption>{rows}</table>\n"


def _sources(frame: Frame) -> str:
    names = ", ".join(f"<code>{escape(each)}</code>" for each in frame.operations)
    rows = {
        "Words of the trace": names,
        "Written in": _html(_markdown_of(frame.source)),
        "CUTLASS": _html(linked_path(frame.cutlass)) if frame.cutlass else "",
    }
    terms = [f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows.items() if text]
    return f"<dl>{''.join(terms)}</dl>"


def _markdown_of(source: str) -> str:
    return linked_path(source) if source.startswith("include/") else linked(source, str)


def _html(markdown: str) -> str:
    """Make HTML of a line whose only markup is links and code."""
    return re.sub(r"\[(.+?)\]\((\S+?)\)", r'<a href="\2">\1</a>', inline(markdown))


def _texts(frame: Frame) -> Page:
    return beside(frame.emulator) if twin(frame.emulator) else source(frame.emulator)


def _elsewhere(frame: Frame) -> str:
    lesson = LESSONS[frame.notebook]
    return (
        f'<p>Taught in <a href="../notebooks/{lesson.name}.html">{lesson.number}. '
        f'{escape(lesson.title)}</a>. All texts: <a href="../code.html#'
        f'{code_anchor(frame.emulator)}">the code</a>.</p>'
    )
