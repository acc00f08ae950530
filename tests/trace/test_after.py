"""after: an event names what had to come first; files and Perfetto keep it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from fuzz_files import TraceParts, archive, npy

import fp4ref
from fp4ref.trace import Event, Trace

SCHEDULES = ("late", 3)


@pytest.fixture(scope="module", params=SCHEDULES)
def trace(request: pytest.FixtureRequest) -> Trace:
    """Two tiles with four rounds of the stages."""
    rng = np.random.default_rng(5)
    a, b = (
        fp4ref.quantize(rng.standard_normal((rows, 1024), np.float32))
        for rows in (128, 256)
    )
    found = fp4ref.run(a, b, schedule=request.param, sms=1).trace
    assert found is not None
    return found


def waited_for(trace: Trace, landing: Event) -> list[Event]:
    """Landings of tcgen05 work that was in flight when `landing` was issued."""
    issuer = trace.events[landing.issued].agent
    return [
        e
        for e in trace
        if (e.kind, e.agent, e.cta) == ("land", "tcgen05", landing.cta)
        and trace.events[e.issued].agent == issuer
        and e.issued < landing.issued < e.step
    ]


def test_an_mma_names_the_copies_that_it_waits_for(trace: Trace) -> None:
    copies = 0
    for mma in trace.select(operation="tcgen05.mma", agent="tcgen05"):
        first = waited_for(trace, mma)
        assert mma.after == tuple(e.step for e in first)
        assert max(mma.after, default=-1) < mma.step
        assert trace.events[mma.issued].after == tuple(sorted(e.issued for e in first))
        copies += sum(e.operation == "tcgen05.cp" for e in first)
    assert copies >= 8


def test_a_commit_waits_and_a_copy_does_not(trace: Trace) -> None:
    for commit in trace.select(operation="tcgen05.commit", agent="tcgen05"):
        assert commit.after == tuple(e.step for e in waited_for(trace, commit))
    copies = trace.select(operation="tcgen05.cp")
    assert copies
    assert not any(e.after for e in copies)


def test_a_store_writes_after_it_has_read(trace: Trace) -> None:
    reads = {e.issued: e.step for e in trace if e.agent == "tma.read"}
    writes = [e for e in trace if e.agent == "tma" and e.issued in reads]
    assert writes
    for write in writes:
        assert write.after == (reads[write.issued],)


def test_only_asynchronous_work_waits(trace: Trace) -> None:
    assert {e.kind for e in trace if e.after} == {"issue", "land"}


def test_a_file_keeps_it_and_an_older_file_has_none(
    trace: Trace, tmp_path: Path
) -> None:
    path = trace.save(tmp_path / "whole")
    assert Trace.load(path).events == trace.events
    parts = TraceParts(path.read_bytes())
    for event in parts.header["events"]:
        del event["after"]
    header = np.frombuffer(json.dumps(parts.header).encode(), np.uint8)
    arrays = {**parts.arrays, "header": header}
    path.write_bytes(archive({f"{n}.npy": npy(a) for n, a in arrays.items()}))
    assert Trace.load(path).events == [replace(e, after=()) for e in trace]


def test_perfetto_draws_an_arrow_for_each(trace: Trace) -> None:
    rows = json.loads(json.dumps(trace.to_perfetto()))["traceEvents"]
    track = {
        span["args"]["step"]: (span["pid"], span["tid"])
        for span in rows
        if span["ph"] == "X"
    }
    starts, ends = (
        {row["id"]: row for row in rows if row["ph"] == phase} for phase in "sf"
    )
    drawn = []
    for number, start in starts.items():
        end = ends[number]
        for row in (start, end):
            assert (row["pid"], row["tid"]) == track[row["ts"]]
        assert end["bp"] == "e"
        drawn.append((start["ts"], end["ts"]))
    assert len(starts) == len(ends)
    wanted = [(b, e.step) for e in trace if e.kind == "land" for b in e.after]
    assert sorted(drawn) == sorted(wanted)
    assert wanted
