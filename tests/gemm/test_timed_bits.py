"""timed: the same bits as every other schedule, and a time in every event."""

from __future__ import annotations

import numpy as np
import pytest
from gemm_timed import CASES, operands, ran

import fp4ref
from fp4ref.trace import Trace


def bits(run) -> bytes:
    parts = [run.d] if isinstance(run.d, np.ndarray) else [run.d.codes, run.d.scales]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_those_of_other_schedules(name: str) -> None:
    timed = ran(name, "emulator", "timed")
    assert bits(timed) == bits(ran(name, "emulator", "eager"))
    assert bits(timed) == bits(ran(name, "emulator", "late"))


@pytest.mark.parametrize("name", ["clc", "pair"])
def test_compiled_code_has_the_same_bits_and_nearly_the_same_time(name: str) -> None:
    """It waits and arrives as the emulator's roles do; some of its stores are cut."""
    kernel, emulated = ran(name, "ptx", "timed"), ran(name, "emulator", "timed")
    assert bits(kernel) == bits(emulated)
    assert last(kernel.trace) == pytest.approx(last(emulated.trace), rel=0.02)


def last(trace: Trace) -> float:
    return max(event.end for event in trace)


@pytest.mark.parametrize("name", CASES)
def test_every_event_has_its_place_on_the_clock(name: str) -> None:
    """Nothing ends before it starts, and no warp does two things at a time."""
    trace = ran(name, "emulator", "timed").trace
    by_warp: dict[tuple[object, str], float] = {}
    for event in trace:
        assert 0 <= event.start <= event.end
        if event.kind == "land":
            assert event.start >= trace.events[event.issued].end
            assert all(event.end >= trace.events[b].end for b in event.after)
        else:
            key = event.cta, event.agent
            assert event.start == by_warp.get(key, event.start)
            by_warp[key] = event.end


def test_other_schedules_have_no_times() -> None:
    a, b = operands(128, 128, 256)
    trace = fp4ref.run(a, b, schedule="late", trace=True).trace
    assert {(event.start, event.end) for event in trace} == {(None, None)}
    assert "timing" not in trace.meta


def test_a_machine_says_the_same_twice() -> None:
    a, b = operands(256, 256, 512)
    one, two = (fp4ref.run(a, b, schedule="timed", trace=True).trace for _ in range(2))
    assert [*one] == [*two]


def test_times_survive_the_file_and_are_microseconds_in_perfetto(tmp_path) -> None:
    trace = ran("clc", "emulator", "timed").trace
    again = Trace.load(trace.save(tmp_path / "timed"))
    assert [*again] == [*trace]
    rows = [row for row in trace.to_perfetto()["traceEvents"] if row["ph"] == "X"]
    clock = trace.meta["timing"]["clock"]
    for event, row in zip(trace, rows, strict=True):
        end = (row["ts"] + row["dur"]) * clock / 1e6
        assert end == pytest.approx(event.end, abs=1e-6)


def test_tiles_are_spread_over_the_sms() -> None:
    trace = ran("clc", "emulator", "timed").trace
    done = [e.sm for e in trace if e.operation == "mma.exit"]
    assert abs(done.count(0) - done.count(1)) <= 1
