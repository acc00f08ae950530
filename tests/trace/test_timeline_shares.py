"""timeline: bars and shares on the clock of the schedule "timed"."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_timed import operands, ran

import fp4ref
from fp4ref.errors import InputError
from fp4ref.trace.timeline import is_load, is_mma, shares


def in_flight(trace, chosen, sm, times):
    """Whether any of the chosen work is in flight, at each time, by brute force."""
    found = np.zeros(times.size, bool)
    for event in trace:
        if event.sm == sm and chosen(event):
            begin = trace.events[event.issued].end
            found |= (begin <= times) & (times < event.end)
    return found


@pytest.mark.parametrize("name", ["clc", "pair"])
def test_shares_are_those_of_sampled_times(name: str) -> None:
    trace = ran(name, "emulator", "timed").trace
    found = shares(trace)
    assert found
    for each in found:
        mmas = [e for e in trace if e.sm == each.sm and is_mma(e)]
        assert each.start == min(e.start for e in mmas)
        assert each.end == max(e.end for e in mmas)
        times = np.linspace(each.start, each.end, 20_000, endpoint=False)
        loads, multiplies = (
            in_flight(trace, chosen, each.sm, times) for chosen in (is_load, is_mma)
        )
        assert each.both == pytest.approx((loads & multiplies).mean(), abs=2e-3)
        assert each.loads == pytest.approx((loads & ~multiplies).mean(), abs=2e-3)
        assert each.mmas == pytest.approx((~loads & multiplies).mean(), abs=2e-3)
        assert each.both + each.loads + each.mmas + each.neither == pytest.approx(1)
        assert each.both > 0


def test_a_trace_without_times_has_no_shares() -> None:
    a, b = operands(128, 128, 256)
    trace = fp4ref.run(a, b, schedule=3, trace=True).trace
    with pytest.raises(InputError, match=r"^event .* has no time; record the trace"):
        shares(trace)
