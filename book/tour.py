"""tour: eight stops in the default walk, each a place in its player and a paragraph.

A stop is found in the trace by what happens there, so that it is at the same event
when the walk changes. Its sentence is the player's own.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

from fp4ref.trace import Event, Trace
from fp4ref.viz.milestones import milestones
from fp4ref.viz.sentences import sentences

_STYLE = '<link rel="stylesheet" href="_static/tour.css">'
_SCRIPT = '<script src="_static/tour.js"></script>'


class Stop(NamedTuple):
    """One place of the tour.

    Attributes
    ----------
    view
        Of the player.
    find
        Whether an event is the stop's; the first of SM 0 is.
    words
        A paragraph of Markdown without links.
    """

    title: str
    view: str
    find: Callable[[Event, str], bool]
    words: str


def _flips(event: Event, label: str) -> bool:
    return any(
        each.label.startswith(label) and each.before[0] != each.after[0]
        for each in event.barrier
    )


def _is(operation: str, kind: str) -> Callable[[Event, str], bool]:
    return lambda event, _: event.operation == operation and event.kind == kind


STOPS = (
    Stop(
        "The first bytes land",
        "smem",
        lambda e, _: e.kind == "land" and e.operands.get("tensor") == "A",
        "The load warp has started a copy and gone on. The TMA unit brings a box of A "
        "into the first stage of the ring and counts its bytes down on the stage's "
        "mbarrier.",
    ),
    Stop(
        "A stage is full",
        "stages",
        lambda _, kind: kind == "full",
        "The last byte that was announced has come: A, B and the scales of both. The "
        "phase of the stage's `full` barrier flips, and the MMA warp, which waited "
        "for it, goes on. That is all that the one warp tells the other.",
    ),
    Stop(
        "Scales go to tensor memory",
        "scales",
        _is("tcgen05.cp", "land"),
        "A and B are multiplied from where they lie. Their scales are not: a copy "
        "brings each atom of 512 bytes into four columns of TMEM, once for each "
        "quarter of the lanes. Follow one scale from its row to its lane.",
    ),
    Stop(
        "The first MMA",
        "mma",
        lambda e, _: e.operation == "tcgen05.mma" and e.kind == "land",
        "64 of K: four groups of 16 products for each element of D, each group times "
        "two scales. It does not add to D, since nothing is there yet. The picture "
        "recomputes one element from its bits.",
    ),
    Stop(
        "A stage is given back",
        "barriers",
        lambda e, _: e.operation == "tcgen05.commit" and _flips(e, "mainloop.empty"),
        "The MMA warp does not wait for its MMAs. It commits: when all that it has "
        "issued is done, the hardware itself arrives on the stage's `empty` barrier. "
        "Now the load warp may fill that stage again.",
    ),
    Stop(
        "Loads, MMAs and copies at once",
        "timeline",
        lambda e, _: (
            e.operation == "tcgen05.mma"
            and e.kind == "issue"
            and e.operands.get("enable_input_d", False)
        ),
        "Bars below each other are work in flight at the same time. While the tensor "
        "core multiplies one k-tile, loads for later ones are on their way. This "
        "overlap is what all the barriers are for.",
    ),
    Stop(
        "The sum is complete",
        "tmem",
        lambda _, kind: kind == "summed",
        "All k-tiles of the tile are in. The commit of the last one flips the "
        "accumulator's `full` barrier, and the four warps of the epilogue read their "
        "lanes. The MMA warp takes the other accumulator and begins the next tile.",
    ),
    Stop(
        "The tile is stored",
        "tiles",
        lambda _, kind: kind == "stored",
        "The last box of the tile has come from shared memory to global memory. "
        "Nobody waited for that but the buffers it lay in. Other tiles are at work by "
        "now, and the scheduler has handed out more.",
    ),
)


def steps(trace: Trace) -> list[int]:
    """Return the step of every stop: of the first event of SM 0 that is the stop's.

    The stop on the timeline is where most is in flight before the first sum is done,
    after the stop before it.
    """
    kinds = milestones(trace)
    first_sum = next(step for step, kind in kinds.items() if kind == "summed")
    found: list[int] = []
    for stop in STOPS:
        mine = [
            event.step
            for event in trace
            if event.sm == 0 and stop.find(event, kinds.get(event.step, ""))
        ]
        if stop.view == "timeline":
            later = [step for step in mine if found[-1] < step < first_sum]
            mine = [_busiest(trace, later)]
        found.append(mine[0])
    return found


def _busiest(trace: Trace, among: list[int]) -> int:
    """Return the first of some steps at which most loads and MMAs are in flight."""
    waited = [0] * (len(trace) + 1)
    for event in trace:
        heavy = "load" in event.operation or event.operation == "tcgen05.mma"
        if event.kind == "land" and event.sm == 0 and heavy:
            waited[event.issued] += 1
            waited[event.step] -= 1
    flying = [sum(waited[: step + 1]) for step in among]
    return among[flying.index(max(flying))]


def address(number: int, step: int) -> str:
    """Return the address of a stop, counted from 1, from the root of the site."""
    return f"walk.html?view={STOPS[number - 1].view}&step={step}&stop={number}"


def page(trace: Trace) -> str:
    """Return the eight stops as sections of a page."""
    told, blocks = sentences(trace), []
    for number, (stop, step) in enumerate(zip(STOPS, steps(trace), strict=True), 1):
        link = f'<a href="{escape(address(number, step))}">Step {step:,}</a>'
        blocks += [
            f"## {number}. {stop.title}",
            f"{link} of the walk: *{_sentence(told[step])}*",
            stop.words,
        ]
    return "\n\n".join(blocks) + "\n"


def _sentence(words: str) -> str:
    return words.replace("*", r"\*").replace("_", r"\_")


def panel(trace: Trace) -> str:
    """Return what the walk's page shows above its player at a stop of the tour."""
    at = steps(trace)
    sections = []
    for number, stop in enumerate(STOPS, 1):
        ways = ['<a href="tour.html">All stops</a>']
        if number > 1:
            there = escape(address(number - 1, at[number - 2]))
            ways.insert(0, f'<a rel="prev" href="{there}">Back</a>')
        if number < len(STOPS):
            there = escape(address(number + 1, at[number]))
            ways.append(f'<a rel="next" href="{there}">Next: {STOPS[number].title}</a>')
        words = escape(stop.words).replace("`", "")
        sections.append(
            f'<section hidden data-stop="{number}"><h2>{number} of {len(STOPS)}: '
            f"{stop.title}</h2><p>{words}</p><nav>{' '.join(ways)}</nav></section>"
        )
    return "".join([_STYLE, *sections, _SCRIPT])
