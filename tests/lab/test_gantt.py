"""gantt: bars with stalls and the critical path, by the trace's or other durations."""

from __future__ import annotations

import pytest
from gemm_timed import ran

from fp4ref.errors import InputError
from fp4ref.lab.timing.gantt import Gantt


@pytest.fixture(scope="module")
def chart() -> Gantt:
    return Gantt(ran("clc", "emulator", "timed").trace)


def test_bars_have_the_times_of_the_trace_and_a_warp_does_one_thing(chart) -> None:
    trace = chart.graph.trace
    assert chart.end == pytest.approx(max(event.end for event in trace))
    for bar in chart.bars:
        event = trace.events[bar.step]
        assert bar.end == pytest.approx(event.end, abs=1e-6)
        assert bar.start <= bar.end + 1e-6
        if event.kind == "land":
            assert bar.start == pytest.approx(trace.events[event.issued].end, abs=1e-6)


def test_every_stall_and_every_link_of_the_path_is_a_bar(chart) -> None:
    told = [bar.stall for bar in chart.bars if bar.stall is not None]
    assert told == chart.stalls != []
    critical = {bar.step for bar in chart.bars if bar.critical}
    assert critical == {link.step for link in chart.critical_path}


def test_what_if_takes_other_durations_and_leaves_the_chart_as_it_was(chart) -> None:
    before = chart.end
    slow = chart.what_if(mbarrier_wake=chart.replay.durations.mbarrier_wake + 100)
    assert slow.end > before + 100
    assert slow.what_if(mbarrier_wake=88).end == pytest.approx(chart.end) == before
    with pytest.raises(InputError, match="mbarrier_wait"):
        chart.what_if(mbarrier_wait=1)
    with pytest.raises(InputError, match="need zero or more"):
        chart.what_if(mbarrier_wake=-1)


def test_perfetto_has_each_bar_with_its_reason(chart) -> None:
    slow = chart.what_if(tma_fill_bandwidth=10)
    rows = [row for row in slow.to_perfetto()["traceEvents"] if row["ph"] == "X"]
    told = {row["args"]["step"]: row for row in rows}
    scale = 1e6 / slow.replay.durations.clock
    for bar in slow.bars:
        row = told[bar.step]
        assert row["ts"] == pytest.approx(bar.start * scale)
        assert row["dur"] == pytest.approx((bar.end - bar.start) * scale)
        assert ("waits" in row["args"]) == (bar.stall is not None)
        assert row["args"]["critical"] == bar.critical
