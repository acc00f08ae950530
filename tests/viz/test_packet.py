"""test_packet: a packet holds the trace's events and, byte for byte, its memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.errors import InputError
from fp4ref.trace import Range, Trace
from fp4ref.viz.packet import COMPUTED, NOT_KEPT, pack, trace_packet, unpack


def test_pack_and_unpack_are_inverse() -> None:
    header, payload = unpack(pack({"a": [1, 2]}, b"\x00\xff"))
    assert (header, payload) == ({"a": [1, 2]}, b"\x00\xff")


def test_events_survive(small: fp4ref.Run) -> None:
    assert small.trace is not None
    header, _ = unpack(pack(*trace_packet(small.trace)))
    columns, tables = header["columns"], header["tables"]
    for event in small.trace:
        i = event.step
        assert columns["sm"][i] == event.sm
        assert columns["issued"][i] == event.issued
        assert tables["agent"][columns["agent"][i]] == event.agent
        assert tables["operation"][columns["operation"][i]] == event.operation
        assert tuple(tables["frames"][columns["frames"][i]]) == event.frames
        assert tables["source"][columns["source"][i]] == event.source
        ranges = [tuple(tables["range"][r]) for r, _ in columns["writes"][i]]
        base = {"gmem": small.trace.base["gmem"]}
        assert ranges == [
            (w.space, w.start - base.get(w.space, 0), *w[2:]) for w in event.writes
        ]


def test_payload_is_what_the_events_wrote(small: fp4ref.Run) -> None:
    trace = small.trace
    assert trace is not None
    header, payload = trace_packet(trace)
    kept = 0
    for event in trace:
        state = trace.at(event.step)
        for where, (_, at) in zip(
            event.writes, header["columns"]["writes"][event.step], strict=True
        ):
            if at >= 0:
                kept += 1
                stored = np.frombuffer(payload, np.uint8, where.size, at)
                assert (stored == state.read(where).ravel()).all(), event
            elif at == COMPUTED:
                assert event.operation == "tcgen05.mma"
            else:
                assert where.space == "gmem"
    assert kept > 50


def test_tiles_beyond_the_limit_keep_their_barriers_only(small: fp4ref.Run) -> None:
    assert small.trace is not None
    header, payload = trace_packet(small.trace, tiles=0)
    assert len(payload) < 4096
    for event, writes in zip(small.trace, header["columns"]["writes"], strict=True):
        for where, (_, at) in zip(event.writes, writes, strict=True):
            if where.size > 16:
                assert at == NOT_KEPT


def test_wide_integers_become_text(small: fp4ref.Run) -> None:
    assert small.trace is not None
    header, _ = trace_packet(small.trace)
    mma = small.trace.select(operation="tcgen05.mma")[0]
    number = header["columns"]["operands"][mma.step]
    a_desc = header["tables"]["operands"][number]["a_desc"]
    assert int(a_desc, 16) == mma.operands["a_desc"] > 2**53


def test_bad_input_is_named(small: fp4ref.Run) -> None:
    assert small.trace is not None
    with pytest.raises(InputError, match="no events"):
        trace_packet(Trace())
    with pytest.raises(InputError, match="SM 7 did nothing"):
        trace_packet(small.trace, sms=[7])


def test_a_packet_does_not_depend_on_global_addresses(small: fp4ref.Run) -> None:
    """They differ from run to run; a page must not."""
    trace = small.trace
    assert trace is not None

    def moved(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(
            r._replace(start=r.start + 4096) if r.space == "gmem" else r for r in ranges
        )

    other = Trace(
        [replace(e, reads=moved(e.reads), writes=moved(e.writes)) for e in trace],
        trace.deltas,
        trace.images,
        trace.base | {"gmem": trace.base["gmem"] + 4096},
        trace.meta
        | {"allocations": [[n, a + 4096, b] for n, a, b in trace.meta["allocations"]]},
    )
    assert pack(*trace_packet(other)) == pack(*trace_packet(trace))
    load = next(e.step for e in trace if e.kind == "land" and e.agent == "tma")
    text = viz.play(trace, step=load).text()
    assert "of A at offset 0x0" in text
    assert viz.play(other, step=load).text() == text
