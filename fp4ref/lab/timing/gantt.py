"""gantt: a timed trace as bars, with why each warp waits and what decides the end.

    chart = Gantt(Trace.load("mine.json"))        # of the emulator, or of any PTX
    chart.bars, chart.stalls, chart.critical_path
    chart.what_if(mbarrier_wake=54).end           # the same work in the same order
    json.dump(chart.to_perfetto(), file)          # for ui.perfetto.dev

A change of the kernel itself, its stages or its tile, is another run and another chart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fp4ref.hardware.timing import Durations
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.paths import Link, Stall, critical_path, stalls
from fp4ref.lab.timing.replay import Replay
from fp4ref.trace import Trace


@dataclass(frozen=True, slots=True)
class Bar:
    """One event with its time.

    Attributes
    ----------
    agent
        The warp, or the unit that works.
    start, end
        In clocks. Of work the start is when it was issued.
    stall
        Whom it waits for; None if it does not.
    critical
        Whether a later end of it would be a later end of the run.
    """

    step: int
    sm: int
    agent: str
    operation: str
    start: float
    end: float
    stall: Stall | None
    critical: bool


class Gantt:
    """The chart of a trace.

    Parameters
    ----------
    trace
        Of a run with ``schedule="timed"``.
    durations
        Those of the trace by default.

    Raises
    ------
    InputError
        The trace has no times.
    """

    def __init__(self, trace: Trace, durations: Durations | None = None) -> None:
        self._of(Graph(trace), durations)

    def _of(self, graph: Graph, durations: Durations | None) -> None:
        self.graph, self.replay = graph, Replay(graph, durations)

    @property
    def end(self) -> float:
        """Clocks of the whole run."""
        return float(self.replay.end)

    @cached_property
    def stalls(self) -> list[Stall]:
        """Every wait that takes time, and whose arrival was last."""
        return stalls(self.replay)

    @cached_property
    def critical_path(self) -> list[Link]:
        """The chain of events that takes the whole run, the first one first."""
        return critical_path(self.replay)

    @cached_property
    def bars(self) -> list[Bar]:
        """Every event, in order of steps."""
        waits = {stall.step: stall for stall in self.stalls}
        critical = {link.step for link in self.critical_path}
        found = []
        for step, node in self.graph.nodes.items():
            event, start = node.event, self.replay.starts[step]
            if event.kind == "land":
                start = self.replay.ends[event.issued]
            times = float(start), float(self.replay.ends[step])
            who = event.sm, event.agent, event.operation
            found.append(Bar(step, *who, *times, waits.get(step), step in critical))
        return found

    def what_if(self, **changed: float) -> Gantt:
        """Return the chart by other durations, in the order that the run had.

        Parameters
        ----------
        **changed
            Fields of `fp4ref.hardware.timing.Durations`.

        Raises
        ------
        InputError
            There is no such duration, or it is negative.
        """
        other = object.__new__(Gantt)
        other._of(self.graph, self.replay.durations.changed(**changed))
        return other

    def to_perfetto(self) -> dict[str, Any]:
        """Return the chart in Perfetto's JSON, with stalls and the critical path."""
        found = self.graph.trace.to_perfetto()
        bars = {bar.step: bar for bar in self.bars}
        scale = 1e6 / self.replay.durations.clock
        for row in found["traceEvents"]:
            bar = bars.get(row.get("args", {}).get("step", -1))
            if bar is None or row["ph"] != "X":
                continue
            row["ts"], row["dur"] = bar.start * scale, (bar.end - bar.start) * scale
            row["args"]["critical"] = bar.critical
            if bar.stall is not None:
                stall = bar.stall
                by = f"{stall.by_operation} of {stall.by_agent}"
                row["args"]["waits"] = f"{stall.clocks:,.0f} clk on {stall.on} for {by}"
        # An arrow's end would be where the trace had it.
        rows = [row for row in found["traceEvents"] if row["ph"] in "MX"]
        return found | {"traceEvents": rows}
