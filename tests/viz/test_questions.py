"""Five questions of newcomers, each answered in at most three clicks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.evidence.faults import GALLERY, run_fault
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.replay import Replay
from fp4ref.trace import Event, Trace

K_TILE, K_TILES = 256, 8
TABS = "[role=tab][data-view={}]"


class Reader:
    """Opens a page, clicks at most three times, and reads."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0

    def click(self, place: str) -> None:
        """Click the first thing at a place."""
        self.page.locator(place).first.click()
        self.clicks += 1
        assert self.clicks <= 3

    def read(self, place: str) -> str:
        """Return all that is written there."""
        return " ".join(" ".join(self.page.locator(place).all_text_contents()).split())


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """One tile of eight k-tiles in five stages, by the clock and at once."""
    rng = np.random.default_rng(5)
    a = fp4ref.quantize(rng.standard_normal((128, K_TILE * K_TILES), np.float32))
    runs = [fp4ref.run(a, a, schedule=each) for each in ("timed", "eager")]
    return [run.trace for run in runs if run.trace is not None]


@pytest.fixture
def asked(traces: list[Trace], open_players: Any) -> Any:
    def opened(step: int) -> Reader:
        own, *others = traces
        return Reader(open_players(viz.play(own, schedules=others, step=step)))

    return opened


def loads_of_a(trace: Trace) -> list[Event]:
    """Issues of the loads of A, in the order of K."""
    found = [
        e
        for e in trace
        if e.kind == "issue" and e.operation.endswith(".load")
        if e.operands["tensor"] == "A"
    ]
    return sorted(found, key=lambda e: e.operands["coords"][0])


def test_when_is_stage_2_reused(asked: Any, traces: list[Trace]) -> None:
    loads = loads_of_a(traces[0])
    buffers = list(dict.fromkeys(e.operands["smem"] for e in loads))
    again = [e for e in loads if e.operands["smem"] == buffers[2]][1]
    k_tile = again.operands["coords"][0] // K_TILE
    reader = asked(0)
    reader.click(TABS.format("stages"))
    words = reader.page.locator(".fp4ref-picture text").all_text_contents()
    at = words.index(f"k-tile {k_tile}, stage 2")
    first_load = min(
        e.end
        for e in traces[0]
        if e.kind == "issue" and e.operation.endswith(".load")
        if e.operands["coords"][:1] == again.operands["coords"][:1]
        and e.operands["tensor"] in "AB"
    )
    clocks = f"{round(first_load):,}"
    assert clocks in words[at + 1 : at + 5]


def test_why_does_warp_0_wait_here(asked: Any, traces: list[Trace]) -> None:
    trace = traces[0]
    wait = max(
        (
            e
            for e in trace
            if e.agent == "warp0" and e.operation.startswith("mbarrier.try_wait")
        ),
        key=lambda e: e.step - e.issued if e.issued >= 0 else 0,
    )
    step = (wait.issued + wait.step) // 2
    before = [b for e in trace.events[: step + 1] for b in e.barrier]
    change = next(b for b in reversed(before) if b.address == wait.operands["mbar"])
    reader = asked(step)
    reader.click(TABS.format("barriers"))
    said = reader.read("figcaption")
    found = re.search(
        r"warp0 \(MMA\) waits for (\S+) since step (\d+); ([^.]+)\.", said
    )
    assert found, said
    _, pending, nbytes = change.after
    missing = f"bytes left: {nbytes:,}" if nbytes else f"arrivals left: {pending}"
    assert found.groups() == (change.label, str(wait.issued), missing)


def test_which_k_tile_does_this_mma_use(asked: Any, traces: list[Trace]) -> None:
    """MMAs run in the order of K, four of 64 in a k-tile."""
    mmas = [e for e in traces[0] if e.operation == "tcgen05.mma" and e.kind == "issue"]
    nth = 4 * 5 + 2
    reader = asked(mmas[nth].step)
    reader.click(TABS.format("tensors"))
    said = reader.read("figcaption")
    assert f"K {64 * nth} to {64 * nth + 63}, of k-tile {nth // 4} of" in said


def test_which_barrier_broke(open_players: Any) -> None:
    fault = run_fault(GALLERY["expect-too-many"], "emulator").fault
    assert fault is not None
    reader = Reader(open_players(viz.fault(fault)))
    card = reader.read(".fp4ref-picture text")
    waits = {on for _, on, *_ in fault.edges}
    stuck = re.findall(r"\((mainloop\.full\[\d\])\)", " ".join(waits))
    found = re.search(r"This broke the chain: (\S+)", card)
    assert found, card
    assert found[1] in stuck
    assert reader.read("h1") == "A run that stops: DeadlockError"
    assert "Here the run stops with DeadlockError" in reader.read(".fp4ref-says")


def test_what_would_eager_have_done(asked: Any, traces: list[Trace]) -> None:
    """The same MMA, alone: nothing is loaded while it is in flight."""
    lands = [
        [e for e in trace if e.operation == "tcgen05.mma" and e.kind == "land"]
        for trace in traces
    ]
    nth = 9
    reader = asked(lands[0][nth].step)
    reader.click(TABS.format("schedules"))
    said = reader.read(".fp4ref-picture text")
    at, last = lands[1][nth].step, len(traces[1]) - 1
    assert (
        f"eager: this is step {at} of {last}; then in flight: loads 0, MMAs 0." in said
    )
    assert f"overlap at 0 of {last + 1:,} steps" in said
    reader.page.locator("[data-act=schedule]").select_option("eager")
    reader.clicks += 1
    assert f"MMA {nth + 1} of {4 * K_TILES}" in reader.read(".fp4ref-says")
    assert reader.clicks <= 3


def clocks_with(spans: list[tuple[float, float]], moments: np.ndarray) -> np.ndarray:
    """Which of some moments lie in one of the spans."""
    begin, end = np.array(spans).T
    return ((begin[:, None] <= moments) & (moments < end[:, None])).any(axis=0)


def test_the_shares_are_the_laboratorys(asked: Any, traces: list[Trace]) -> None:
    """Within 1 % of the laboratory's own times, at a million moments."""
    trace = traces[0]
    replay = Replay(Graph(trace))
    spans: dict[str, list[tuple[float, float]]] = {".load": [], "tcgen05.mma": []}
    for event in trace:
        for name, found in spans.items():
            if event.kind == "land" and event.operation.endswith(name):
                found.append((replay.ends[event.issued], replay.ends[event.step]))
    mmas = [e for e in trace if e.kind == "land" and e.operation == "tcgen05.mma"]
    start = min(replay.starts[e.step] for e in mmas)
    end = max(replay.ends[e.step] for e in mmas)
    moments = np.linspace(start, end, 100_000, endpoint=False)
    loads, busy = (clocks_with(found, moments) for found in spans.values())
    wanted = [loads & busy, loads & ~busy, ~loads & busy, ~loads & ~busy]
    said = asked(0).read(".fp4ref-picture text")
    shown = re.search(
        r"both loads and MMAs are in flight (\d+)% of the time, loads alone (\d+)%, "
        r"MMAs alone (\d+)%, neither (\d+)%",
        said,
    )
    assert shown, said
    for number, share in zip(shown.groups(), wanted, strict=True):
        assert int(number) == pytest.approx(100 * share.mean(), abs=1)
