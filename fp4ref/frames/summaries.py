"""Parts 5 to 8. summaries: the summaries of the document, computed from a trace.

The document ends Parts 5 to 8 with totals, a timeline and performance figures. Counts
and bytes are facts of a trace and are computed here. Cycles are not: a trace has an
order, no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor, UnscaledKind
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.hardware.tcgen05 import InstrDescriptor
from fp4ref.hardware.tmem import CELL_NBYTES, LANES
from fp4ref.numerics.kinds import KINDS
from fp4ref.trace import Event, Trace

Values = dict[str, Any]

WARP_THREADS = 32


def _issued(trace: Trace, operation: str) -> list[Event]:
    return [e for e in trace if e.operation == operation and e.kind == "issue"]


def _loads(trace: Trace) -> list[Event]:
    """Tensor loads of the mainloop."""
    return [
        e
        for e in trace
        if e.kind == "issue"
        and e.operation.endswith("load")
        and e.operands["tensor"] in ("A", "B", "SFA", "SFB")
    ]


def _nbytes(events: Iterable[Event], key: str) -> int:
    return sum(e.operands[key] for e in events)


def load_summary(trace: Trace) -> Values:
    """What the load warp moved. Frame 5.8.

    `waits` counts the times it was blocked because no stage was empty.
    """
    loads = _loads(trace)
    by_tensor: Counter[str] = Counter()
    for event in loads:
        by_tensor[event.operands["tensor"]] += event.operands["tx_bytes"]
    expected = [
        e
        for e in trace.select(agent="warp2", operation="mbarrier.arrive.expect_tx")
        if "5.4.8" in e.frames
    ]
    waits = trace.select(agent="warp2", operation="mbarrier.try_wait", frame="5.4.1")
    return {
        "k_tiles": len(expected),
        "bytes": dict(by_tensor),
        "total_bytes": sum(by_tensor.values()),
        "expected_bytes": _nbytes(expected, "tx_bytes"),
        "stages": len({(e.cta, e.operands["mbar"]) for e in loads}),
        "waits": sum(e.issued >= 0 for e in waits),
    }


def overlap(trace: Trace) -> Values:
    """How many loads were in flight at once. Frame 5.9.

    Depends on the schedule: eager lands each load at its issue, late lands none before
    every warp is blocked.
    """
    in_flight = most = most_bytes = nbytes = 0
    for event in trace:
        if event.agent == "tma" and event.operation.endswith("load"):
            in_flight -= 1
            nbytes -= event.operands["tx_bytes"]
        elif event.kind == "issue" and event.operation.endswith("load"):
            in_flight += 1
            nbytes += event.operands["tx_bytes"]
            most, most_bytes = max(most, in_flight), max(most_bytes, nbytes)
    return {
        "loads": sum(e.kind == "issue" and e.operation.endswith("load") for e in trace),
        "most_in_flight": most,
        "most_bytes_in_flight": most_bytes,
        "in_flight_at_end": in_flight,
    }


def mma_summary(trace: Trace) -> Values:
    """What the MMA warp issued. Frame 6.11."""
    copies, mmas = _issued(trace, "tcgen05.cp"), _issued(trace, "tcgen05.mma")
    first = [e for e in mmas if not e.operands["enable_input_d"]]
    columns = sum(_shape(e)[1] for e in first)
    return {
        "mmas": len(mmas),
        "scale_copies": len(copies),
        "scale_bytes": _nbytes(copies, "nbytes"),
        "commits": len(_issued(trace, "tcgen05.commit")),
        "accumulators": len(first),
        "accumulator_bytes": columns * LANES * CELL_NBYTES,
    }


def _macs(trace: Trace) -> int:
    total = 0
    for event in _issued(trace, "tcgen05.mma"):
        total += prod(_shape(event))
    return total


def _shape(mma: Event) -> tuple[int, int, int]:
    """M, N and K of an MMA; N lies at the same bits in every descriptor."""
    operands, group = mma.operands, mma.operands.get("cta_group", 1)
    kind = KINDS[operands["kind"]] if operands["kind"] in KINDS else KINDS["mxf4nvf4"]
    word = operands["idesc"]
    if not kind.scaled:
        name: UnscaledKind = "f16" if kind.name == "f16" else "f8f6f4"
        found = UnscaledInstrDescriptor.decode(word, name, group)
        return found.m, found.n, kind.k
    if kind.name == "mxf8f6f4":
        of_32 = Mxf8f6f4InstrDescriptor.decode(word, group)
        return of_32.m, of_32.n, kind.k
    shape = InstrDescriptor.decode(word, group)
    return shape.m, shape.n, kind.k


def _written(trace: Trace) -> tuple[int, int]:
    """Bytes of D and of its scales that reached global memory."""
    stores = [e for e in trace if e.agent == "tma" and e.operation.endswith("store")]
    scales = trace.select(operation="st.global")
    return (
        sum(w.size for e in stores for w in e.writes),
        sum(w.size for e in scales for w in e.writes),
    )


def intensity(trace: Trace) -> Values:
    """Operations for each byte of global memory. Frame 6.12."""
    macs = _macs(trace)
    read = _nbytes(_loads(trace), "tx_bytes")
    written = sum(_written(trace))
    return {
        "macs": macs,
        "operations": 2 * macs,
        "read_bytes": read,
        "written_bytes": written,
        "operations_per_byte": 2 * macs / (read + written),
    }


def epilogue_summary(trace: Trace) -> Values:
    """What the epilogue warps did. Frame 7.12."""
    loads = _issued(trace, "tcgen05.ld")
    d, sfd = _written(trace)
    releases = trace.select(operation="mbarrier.arrive", frame="7.10")
    return {
        "warps": len({(e.cta, e.agent) for e in loads}),
        "tmem_loads": len(loads),
        "tmem_bytes": sum(r.size for e in trace for r in _tmem_reads(e)),
        "stores": sum(
            e.kind == "issue" and e.operation.endswith("store") for e in trace
        ),
        "d_bytes": d,
        "sfd_bytes": sfd,
        "arrivals": _nbytes(releases, "count"),
    }


def _tmem_reads(event: Event) -> Iterable[Any]:
    return event.reads if (event.agent, event.kind) == ("tmem", "land") else ()


def epilogue_traffic(trace: Trace) -> Values:
    """How much smaller D is than the accumulators. Frame 7.13."""
    summary = epilogue_summary(trace)
    written = summary["d_bytes"] + summary["sfd_bytes"]
    return {
        "tmem_read_bytes": summary["tmem_bytes"],
        "written_bytes": written,
        "ratio": summary["tmem_bytes"] / written,
    }


def cleanup_summary(trace: Trace) -> Values:
    """What the CTAs gave back, and what they waited for first. Frame 8.8."""
    inits = trace.select(operation="mbarrier.init")
    freed = _nbytes(trace.select(operation="tcgen05.dealloc"), "columns")
    smem = [
        w.end - trace.base[w.space]
        for e in trace
        for w in e.writes
        if w.space.startswith("smem")
    ]
    return {
        "ctas": len({e.cta for e in trace}),
        "tmem_columns": freed,
        "tmem_bytes": freed * LANES * CELL_NBYTES,
        "mbarriers": len(inits),
        "smem_bytes_used": max(smem, default=0),
        "mainloop_stages_awaited": len(trace.select(frame="8.1")),
        "accumulators_awaited": len(trace.select(frame="8.3")),
        "store_tails": len(trace.select(frame="7.11")),
    }


_MILESTONES = (
    ("first load issued", "5.4.4", "cp.async.bulk.tensor", "issue"),
    ("first load landed", "5.4.4", "cp.async.bulk.tensor", "land"),
    ("first MMA issued", "6.6.9", "tcgen05.mma", "issue"),
    ("accumulator committed", "6.10", "tcgen05.commit", "issue"),
    ("accumulator first read", "7.5", "tcgen05.ld", "issue"),
    ("first store issued", "7.9", "cp.async.bulk.tensor", "issue"),
    ("accumulator released", "7.10", "mbarrier.arrive", "sync"),
    ("TMEM freed", "8.5", "tcgen05.dealloc", "sync"),
)


def timeline(trace: Trace) -> Values:
    """First step of each milestone, and the span of every agent. Frame 8.9.

    Steps are an order, not a time.
    """
    spans: dict[str, list[int]] = {}
    for event in trace:
        span = spans.setdefault(f"{event.cta} {event.agent}", [event.step, event.step])
        span[1] = event.step
    milestones = {}
    for name, label, operation, kind in _MILESTONES:
        found = trace.select(frame=label, operation=operation)
        milestones[name] = next((e.step for e in found if e.kind == kind), -1)
    return {"steps": len(trace), "milestones": milestones, "agents": spans}


def metrics(trace: Trace) -> Values:
    """All totals of the run; no time, which needs a device. Frame 8.10."""
    mma, work = mma_summary(trace), intensity(trace)
    return work | {
        "mmas": mma["mmas"],
        "total_bytes": work["read_bytes"] + work["written_bytes"],
        "accumulator_bytes": mma["accumulator_bytes"],
        "tmem_bytes": cleanup_summary(trace)["tmem_bytes"],
    }
