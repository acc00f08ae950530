"""fault_scene: a fault of the machine, with the trace up to it."""

from __future__ import annotations

from fp4ref.arguments import require_instance
from fp4ref.errors import DeadlockError, HardwareFault
from fp4ref.trace import Trace
from fp4ref.trace.recorded_plan import RecordedPlan
from fp4ref.viz.fault_sides import fault_sides
from fp4ref.viz.packet import Header, trace_packet
from fp4ref.viz.player import Player
from fp4ref.viz.run_scene import available
from fp4ref.viz.strings import say
from fp4ref.viz.wait_graph import wait_graph


def fault(error: HardwareFault) -> Player:
    """Return a picture of a fault: what is wrong, whose it is, and the trace so far.

    A deadlock is its wait-for graph; any other fault its bytes and the two accesses
    that meet there.

    Raises
    ------
    InputError
        `error` is no fault of the machine.
    """
    require_instance(error, "error", HardwareFault, "Pass what fp4ref.run raised")
    header: Header = {"title": ""}
    payload = b""
    trace = error.trace if isinstance(error.trace, Trace) else Trace()
    steps = len(trace)
    if steps:
        header, payload = trace_packet(trace, sms=[min(e.sm for e in trace)])
    words = {"edges": [], "root": None} | error.to_dict()
    del words["races"]  # in the text of the report; the picture has the first one
    if isinstance(error, DeadlockError):
        words["graph"] = wait_graph(error, RecordedPlan.of(trace.meta))
    else:
        words["met"] = fault_sides(error, trace)
        words["tmem"] = words["met"]["cells"]
    header |= {"title": say("title.fault", type=words["type"]), "fault": words}
    return Player(
        header,
        payload,
        steps=steps,
        step=max(0, steps - 1),
        view="fault",
        views=available(header),
        text=lambda _, __: str(error),
    )
