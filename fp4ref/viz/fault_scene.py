"""fault_scene: a fault of the machine, with the trace up to it."""

from __future__ import annotations

import re

from fp4ref.arguments import require_instance
from fp4ref.errors import HardwareFault
from fp4ref.trace import Trace
from fp4ref.viz.packet import Header, trace_packet
from fp4ref.viz.player import Player
from fp4ref.viz.run_scene import available


def fault(error: HardwareFault) -> Player:
    """Return a picture of a fault: rule, remedy, wait-for graph, and the trace so far.

    Raises
    ------
    InputError
        `error` is no fault of the machine.
    """
    require_instance(error, "error", HardwareFault, "Pass what fp4ref.run raised")
    header: Header = {"title": ""}
    payload = b""
    steps = 0
    trace = error.trace
    if isinstance(trace, Trace) and trace.events:
        sms = {e.sm for e in trace}
        header, payload = trace_packet(trace, sms=[min(sms)])
        steps = len(trace)
    words = {"edges": [], "root": None} | error.to_dict() | {"tmem": _tmem_place(error)}
    del words["races"]  # in the text of the report; the picture has no place for them
    header |= {"title": "", "fault": words}
    return Player(
        header,
        payload,
        steps=steps,
        step=max(0, steps - 1),
        view="fault",
        views=available(header),
        text=lambda _, __: str(error),
    )


def _tmem_place(error: HardwareFault) -> Header | None:
    """Find the TMEM address that the fault names."""
    found = re.search(r"tmem\d+ lane (\d+) column (0x[0-9a-f]+)", error.where)
    if found:
        return {"lane": int(found[1]), "column": int(found[2], 16)}
    address = re.search(r"taddr (0x[0-9a-f]+)", error.where)
    if not address:
        return None
    lane, column = divmod(int(address[1], 16), 1 << 16)
    return {"lane": min(lane, 127), "column": min(column, 511)}
