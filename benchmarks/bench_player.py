"""bench_player: the page with the default walk's trace: its size, and how soon it acts.

Beside it what else a reader of a trace would open: the same events as Perfetto's JSON
(no bytes of memory) and the trace file itself (which no browser reads). The time is
from navigation to the first picture in a headless Chromium, median of five. A step and
a jump are from the call to the drawn layout, for each view, with words and follow on.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from fp4ref import viz
from fp4ref.walk import load_problem, walk

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import browser

RUNS = 5
STEPS, JUMPS = 60, 30
ACTS = """([view, steps, jumps]) => {
  const player = document.querySelector(".fp4ref-player"), {fp4ref} = player;
  const last = fp4ref.machine.length - 1, took = {step: [], jump: []};
  const go = (name, to) => {
    const clock = performance.now();
    fp4ref.go(to);
    player.getBoundingClientRect();
    took[name].push(performance.now() - clock);
  };
  fp4ref.show(view);
  fp4ref.go(Math.floor(last / 2));
  for (let i = 1; i <= steps; i++) go("step", Math.floor(last / 2) + i);
  for (let i = 0; i < jumps; i++) go("jump", (i * 7919) % last);
  return took;
}"""
"""Steps through the middle of the run, and jumps all over it."""


def main() -> None:
    """Measure once and print one table."""
    problem = load_problem()
    _, run, kernel = walk(problem)
    others = [
        walk(problem, schedule=each, backend="emulator").run
        for each in ("eager", 0, "late")
    ]
    trace = run.trace
    assert trace is not None
    clock = time.perf_counter()
    page = viz.play(run, kernel, schedules=others, sms=(0, 1), tiles=3).page()
    made = time.perf_counter() - clock
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walk.html"
        file.write_text(page, "utf-8")
        sizes = {
            "the player's page": len(page.encode()),
            "Perfetto's JSON": len(json.dumps(trace.to_perfetto()).encode()),
            "trace file": trace.save(Path(folder) / "walk").stat().st_size,
        }
        shown, to_end = times(file) if not browser.why_not() else ([], [])
        if shown:
            print_acts(file)
    table = Table(title=f"default walk, {len(trace):,} events")
    for name in ("", "MB", "times the page"):
        table.add_column(name, justify="left" if not name else "right")
    for name, nbytes in sizes.items():
        ratio = nbytes / sizes["the player's page"]
        table.add_row(name, f"{nbytes / 1e6:.2f}", f"{ratio:.2f}")
    console = Console()
    console.print(table)
    console.print(f"page made in {made:.2f} s")
    if shown:
        console.print(
            f"first picture after {median(shown):.2f} s; then to the last step, with "
            f"every MMA computed in the page: {median(to_end):.2f} s"
        )
    else:
        console.print(f"not opened: {browser.why_not()}")


def print_acts(file: Path) -> None:
    """Print how long a step and a jump take in each view."""
    table = Table(title="milliseconds in the page")
    for name in ("view", "step, median", "p95", "jump, median", "p95"):
        table.add_column(name, justify="left" if name == "view" else "right")
    with browser.launch() as running, browser.local_page(running) as page:
        page.goto(file.as_uri())
        page.locator(".fp4ref-picture svg").wait_for()
        tabs = page.locator("[role=tab]")
        views = tabs.evaluate_all("(all) => all.map((tab) => tab.dataset.view)")
        for view in views:
            took = page.evaluate(ACTS, [view, STEPS, JUMPS])
            cells = [
                f"{value:.1f}"
                for name in ("step", "jump")
                for value in (median(took[name]), quantiles(took[name], n=20)[-1])
            ]
            table.add_row(view, *cells)
    Console().print(table)


def times(file: Path) -> tuple[list[float], list[float]]:
    """Seconds to the first picture, and from there to the last step."""
    shown, to_end = [], []
    with browser.launch() as running:
        for _ in range(RUNS):
            page = running.new_page()
            clock = time.perf_counter()
            page.goto(file.as_uri())
            page.locator(".fp4ref-picture svg").wait_for()
            shown.append(time.perf_counter() - clock)
            clock = time.perf_counter()
            page.locator(".fp4ref-player").press("End")
            page.wait_for_function(
                "() => { const p = document.querySelector('.fp4ref-player');"
                "return p.fp4ref.machine.step === p.fp4ref.machine.length - 1 }"
            )
            to_end.append(time.perf_counter() - clock)
            page.close()
    return shown, to_end


if __name__ == "__main__":
    main()
