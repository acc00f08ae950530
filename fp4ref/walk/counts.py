"""counts: what the machine did in a walk, from the trace alone."""

from __future__ import annotations

from fp4ref.trace import RecordedPlan, Trace
from fp4ref.trace.timeline import overlap


def machine_counts(trace: Trace) -> dict[str, int]:
    """Count what the machine did, from the trace alone.

    Raises
    ------
    TraceError
        The trace does not hold its kernel's plan.
    """
    p = RecordedPlan.required(trace.meta)
    counts: dict[str, int] = {}

    def add(name: str, amount: int = 1) -> None:
        counts[name] = counts.get(name, 0) + amount

    add("events", len(trace))
    add("ctas", len({e.cta for e in trace}))
    for e in trace:
        if e.kind == "land" and e.operation.endswith(".load"):
            add("tma_loads")
            add("tma_load_bytes", int(e.operands["tx_bytes"]))
        elif e.kind == "land" and e.operation.endswith(".store") and e.agent == "tma":
            add("tma_stores")
            add("tma_store_bytes", sum(w.size for w in e.writes))
        elif e.kind == "land":
            add(e.operation)
        elif e.operation == "mbarrier.try_wait.parity" and e.issued >= 0:
            add("blocked_waits")
        elif e.operation == "mbarrier.init":
            add("mbarriers")
        for change in e.barrier:
            add("phases_completed", change.before[0] != change.after[0])
            if change.label.startswith("mainloop.full[0]"):
                add("first_stage_fills", change.before[0] != change.after[0])
    mmas = counts.get("tcgen05.mma", 0)
    add("macs", mmas * p.tile_m * p.tile_n * p.mma_k)
    add("overlap_steps", overlap(trace))
    add("k_tiles", p.k_tiles(trace.meta["shape"]["k"]))
    add("ring_wraps", max(0, counts.pop("first_stage_fills", 0) - counts["ctas"]))
    return counts
