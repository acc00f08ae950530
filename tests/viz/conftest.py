"""conftest: small runs, and the default walk, shown in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import local_page
from wide_operands import wide_pair

import fp4ref
from fp4ref import viz
from fp4ref.walk import load_problem, walk


@pytest.fixture(scope="session")
def small() -> fp4ref.Run:
    """One tile, two k-tiles, values of widely different scale."""
    rng = np.random.default_rng(3)
    scale = np.exp2(rng.integers(-9, 10, (128, 1))).astype(np.float32)
    x = rng.standard_normal((128, 512), np.float32) * scale
    w = rng.standard_normal((128, 512), np.float32)
    return fp4ref.run(fp4ref.quantize(x), fp4ref.quantize(w))


@pytest.fixture(scope="session")
def wide() -> fp4ref.Run:
    """Operands whose accumulators tell one rounding from another."""
    return fp4ref.run(*wide_pair(0, 128, 128, 512))


@pytest.fixture(scope="session")
def walk_runs() -> tuple[fp4ref.Run, fp4ref.Run]:
    """The default problem on the emulator and as compiled PTX, along steps."""
    _, run, kernel = walk(load_problem(), schedule=0)
    assert kernel is not None
    return run, kernel


@pytest.fixture(scope="session")
def scheduled_operands() -> tuple[fp4ref.BlockScaled, ...]:
    """Two tiles of two k-tiles."""
    rng = np.random.default_rng(4)
    return tuple(
        fp4ref.quantize(rng.standard_normal((rows, 512), np.float32))
        for rows in (256, 128)
    )


@pytest.fixture(scope="session")
def scheduled(
    scheduled_operands: tuple[fp4ref.BlockScaled, ...],
) -> dict[str, fp4ref.Run]:
    """Their product under each schedule, by its name."""
    names = ("timed", "eager", 0, "late")
    runs = [fp4ref.run(*scheduled_operands, schedule=each, sms=2) for each in names]
    return {run.meta["schedule"]: run for run in runs}


@pytest.fixture(scope="session")
def whole(scheduled: dict[str, fp4ref.Run]) -> viz.Player:
    """A player with all that these runs have to show."""
    own, *others = scheduled.values()
    return viz.play(own, schedules=others, sms=(0, 1), tiles=2)


Opener = Callable[..., Any]


SETTLED = """() => new Promise(done => {
  let frames = 4;
  const next = () => frames-- ? requestAnimationFrame(next) : done();
  next();
})"""
"""Once it knows its width, a player draws anew, in the frame after that."""


@pytest.fixture
def open_players(chromium: Any, tmp_path: Path) -> Iterator[Opener]:
    """Write players to a file and open it; outside requests and errors fail."""
    managers = []

    def opened(*players: viz.Player, query: str = "", **options: Any) -> Any:
        path = tmp_path / "page.html"
        first, *others = players
        more = "".join(p.static_html() for p in others)
        path.write_text(first.page().replace("</main>", f"{more}</main>"), "utf-8")
        manager = local_page(chromium, **options)
        page = manager.__enter__()
        managers.append(manager)
        page.goto(path.as_uri() + query)
        if options.get("java_script_enabled", True):
            page.locator(".fp4ref-picture svg").nth(len(players) - 1).wait_for()
            page.evaluate(SETTLED)
        return page

    yield opened
    for manager in managers:
        manager.__exit__(None, None, None)
