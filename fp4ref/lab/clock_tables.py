"""clock_tables: what the machine's clock says, as tables of the laboratory."""

from __future__ import annotations

from functools import cache

import numpy as np

from fp4ref.execution.runs import run
from fp4ref.hardware.timing import Durations
from fp4ref.lab.bounds import published_intervals
from fp4ref.lab.table import MODEL, MODEL_AND_DOCUMENTED, MODEL_AND_MEASURED, Table
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.paths import by_operation, critical_path, stalls
from fp4ref.lab.timing.probes import interval, published_rows
from fp4ref.lab.timing.replay import Replay
from fp4ref.lab.timing.sizes import sizes
from fp4ref.lab.timing.what_if import BANDWIDTHS, drawn, faster, run_clocks, slowed
from fp4ref.parameters import Corner, Parameters
from fp4ref.tensors.quantize import quantize
from fp4ref.trace.timeline import shares

SHAPE = 256, 512, 1024
"""M, N and K of the run that the tables show: four tiles for each of two SMs."""
MACHINES = 1000
SHOWN = 8


@cache
def recorded() -> Graph:
    """Run the default kernel on the clock, by the published figures."""
    m, n, k = SHAPE
    random = np.random.default_rng(0)
    a, b = (quantize(random.standard_normal((r, k), dtype=np.float32)) for r in (m, n))
    trace = run(a, b, schedule="timed", sms=2, trace=True).trace
    assert trace is not None
    return Graph(trace)


@cache
def clock_tables(rows: Parameters) -> tuple[Table, ...]:
    """Return the tables, in the order of reading."""
    replay = Replay(recorded(), Durations.of(rows))
    return (
        _published(rows),
        _sizes(rows),
        _shares(),
        _stalls(replay),
        _path(replay),
        _machines(rows),
    )


def _published(rows: Parameters) -> Table:
    durations = Durations.of(rows)
    found = published_rows(durations)
    off = max(
        abs(
            interval(i.m, i.n, i.cta_group, durations, a_in_tmem=i.a_in_tmem) - i.clocks
        )
        for i in published_intervals()
    )
    values = tuple(
        {
            "what": each.what,
            "published": each.published,
            "model": each.model,
            "unit": each.unit,
            "within": each.within,
            "remark": each.remark,
        }
        for each in found
    )
    cells = tuple(
        (
            each.what,
            f"{each.published:g}",
            f"{each.model:.4g}",
            each.unit,
            f"{100 * each.off:+.1f}%"
            if each.within
            else f"{100 * each.off:+.0f}%, not",
        )
        for each in found
    )
    note = (
        "The clock's rules beside microbenchmarks of others; 'not' is a row that they "
        f"do not give. Intervals between MMAs are at most {off:g} clk off. "
        + " ".join(f"{each.what}: {each.remark}." for each in found if each.remark)
    )
    headings = ("what", "published", "model", "unit", "off by")
    title = "The clock beside published rows"
    return Table("clock", title, MODEL_AND_DOCUMENTED, note, headings, cells, values)


def _sizes(rows: Parameters) -> Table:
    found = sizes(rows)
    values = tuple(
        {
            "workload": each.name,
            "tile": list(each.tile),
            "cta_group": each.cta_group,
            "seconds": {corner.value: s for corner, s in each.seconds.items()},
            "record_seconds": each.record_seconds,
            "record_in_band": each.inside,
        }
        for each in found
    )
    cells = tuple(
        (
            each.name,
            f"{each.tile[0]} x {each.tile[1]}",
            f"{1e6 * min(each.seconds.values()):,.1f} to "
            f"{1e6 * max(each.seconds.values()):,.1f}",
            f"{1e6 * each.seconds[Corner.PUBLISHED]:,.1f}",
            f"{1e6 * each.record_seconds:,.1f}",
            "inside" if each.inside else "outside",
        )
        for each in found
    )
    note = (
        "Microseconds of this kernel from the tiles of a small run; the tiles of the "
        "records are not given."
    )
    headings = (
        "workload",
        "tile",
        "band, us",
        "published, us",
        "record, us",
        "record is",
    )
    title = "NVFP4 products on the clock"
    return Table(
        "clock_sizes", title, MODEL_AND_MEASURED, note, headings, cells, values
    )


def _shares() -> Table:
    found = shares(recorded().trace)
    cells = tuple(
        (
            str(each.sm),
            f"{each.end - each.start:,.0f}",
            *(
                f"{100 * x:.1f}%"
                for x in (each.both, each.loads, each.mmas, each.neither)
            ),
        )
        for each in found
    )
    note = (
        f"The default kernel on {' x '.join(map(str, SHAPE))}, two SMs, published "
        "figures: from the first MMA of an SM to its last, what is in flight."
    )
    headings = ("SM", "clk", "loads and MMAs", "loads", "MMAs", "neither")
    title = "What is in flight"
    values = tuple(each.to_dict() for each in found)
    return Table("clock_shares", title, MODEL, note, headings, cells, values)


def _stalls(replay: Replay) -> Table:
    total: dict[tuple[str, str, str], list[float]] = {}
    for each in stalls(replay):
        name = each.on.split("[")[0]
        key = each.agent, name, f"{each.by_operation} of {each.by_agent}"
        total.setdefault(key, []).append(each.clocks)
    most = sorted(total.items(), key=lambda item: (-sum(item[1]), item[0]))[:SHOWN]
    values = tuple(
        {"warp": key[0], "on": key[1], "by": key[2], "waits": len(c), "clocks": sum(c)}
        for key, c in most
    )
    cells = tuple((*key, str(len(c)), f"{sum(c):,.0f}") for key, c in most)
    note = "Both SMs of the same run; who waits on what, and whose arrival was last."
    headings = ("warp", "waits on", "last arrival", "times", "clk")
    return Table("clock_stalls", "Who waits", MODEL, note, headings, cells, values)


def _path(replay: Replay) -> Table:
    whole = float(replay.end)
    found = list(by_operation(replay, critical_path(replay)).items())[:SHOWN]
    values = tuple(
        {"operation": key[0], "way": key[1], "clocks": clocks} for key, clocks in found
    )
    cells = tuple(
        (*key, f"{clocks:,.0f}", f"{100 * clocks / whole:.1f}%")
        for key, clocks in found
    )
    note = (
        f"The chain of events that takes all {whole:,.0f} clk of the same run. warp: "
        "its own instructions; wait: from an arrival until it is seen; queue: behind "
        "other work of the unit; unit: being served; order: behind work that must land "
        "first."
    )
    headings = ("operation", "way", "clk", "share")
    title = "The critical path"
    return Table("clock_path", title, MODEL, note, headings, cells, values)


def _machines(rows: Parameters) -> Table:
    graph, machines = recorded(), drawn(MACHINES, 0, rows)
    before = run_clocks(graph, machines)
    values, cells = [], []
    for name in (*BANDWIDTHS, "epilogue_element", "mbarrier_wake", "tma_l2_latency"):
        after = run_clocks(graph, faster(machines, (name,), 2))
        gains = 1 - after / before
        slower = int(slowed(before, after).size)
        values.append(
            {
                "twice_as_fast": name,
                "machines": MACHINES,
                "slower": slower,
                "mean_gain": float(gains.mean()),
                "most_gain": float(gains.max()),
            }
        )
        gain, most = f"{100 * gains.mean():.1f}%", f"{100 * gains.max():.1f}%"
        cells.append((name, gain, most, str(slower)))
    note = (
        f"The same run on {MACHINES:,} machines, each figure drawn evenly from its "
        "published range, in the order that the units served: what is gained if one "
        "figure is twice as good, and how many machines get slower by over 1 %."
    )
    headings = ("twice as good", "mean gain", "most", "slower")
    title = "A thousand machines"
    return Table(
        "clock_machines", title, MODEL, note, headings, tuple(cells), tuple(values)
    )
