"""Part 2. clc: cancel a cluster that has not been launched, and learn its coordinates.

Cluster launch control lets a running cluster take the work of one that waits for SMs.
One request takes one cluster; with ``.multicast::cluster::all`` every CTA of the asking
cluster gets the answer. The 16-byte answer holds ``ctaid.x``, ``ctaid.y | ctaid.z <<
16``, a flag word and nothing. Source: PTX, clusterlaunchcontrol; the layout of the
answer from ptxas's lowering of query_cancel (officially opaque). Also here:
``griddepcontrol``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from fp4ref.errors import ClusterFault, HardwareFault, MisalignedAddress
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.machine_state import MachineState
from fp4ref.hardware.sm import Blocked, Cta, Warp
from fp4ref.trace import Bytes, Dim3, Range

RESPONSE_NBYTES = 16

_NAME = "clusterlaunchcontrol.try_cancel"


class ClcFault(HardwareFault):
    """Cluster launch control was used against its rules."""


class _Request:
    """One request: the first answer that lands takes a cluster, and all are equal."""

    def __init__(self, machine: MachineState, shape: Dim3) -> None:
        self.machine, self.shape = machine, shape
        self.answer: Bytes | None = None
        self.refused = False

    def decide(self) -> Bytes:
        """Return the 16 bytes of the answer."""
        if self.answer is None:
            taken = self.machine.pending.cancel(self.shape)
            self.refused = taken is None
            self.answer = encode_response(taken)
            if not self.refused:
                self.machine.count("clc.canceled")
        return self.answer


def try_cancel(warp: Warp, response: int, mbar: int, multicast: bool = False) -> None:
    """``clusterlaunchcontrol.try_cancel.async``. Frames 1.10 and 2.4.

    Writes 16 bytes at `response` and completes 16 bytes on `mbar`; with `multicast`
    (``.multicast::cluster::all``) at the same offsets of every CTA of the cluster.

    Raises
    ------
    MisalignedAddress
        `response` is not 16-byte aligned.
    ClusterFault
        `response` or `mbar` is in another CTA, or a CTA of the multicast has exited.
    ClcFault
        A thread of this CTA has read the answer that nothing is left, or another
        request for the same 16 bytes is in flight.
    """
    offset, bar_offset = _check(warp, response, mbar)
    receivers = warp.cta.cluster.ctas if multicast else [warp.cta]
    request = _Request(warp.machine, warp.cta.cluster.shape)
    operands = {"response": response, "mbar": mbar, "tx_bytes": RESPONSE_NBYTES}
    if len(receivers) > 1:
        operands["ctas"] = len(receivers)
    first: AsyncOp | None = None
    for cta in receivers:
        cta.check_resident(warp, _NAME)
        answer = Range(cta.smem.space, offset, RESPONSE_NBYTES)
        _check_slot(warp, cta, answer)
        op = warp.issue(
            _NAME,
            operands,
            _landing(warp, request, cta, answer, bar_offset),
            unit="clc",
            writes=[answer],
            part_of=first,
        )
        first = first or op


def _check(warp: Warp, response: int, mbar: int) -> tuple[int, int]:
    """Return the offsets of answer and mbarrier, or raise what forbids a request."""
    cta, offset = warp.cta.resolve_shared(response)
    if offset % RESPONSE_NBYTES:
        raise MisalignedAddress(
            f"try_cancel response at {response:#x}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="the response is 16-byte aligned [PTX: clusterlaunchcontrol]",
            remedy="align it to 16 bytes",
        )
    if warp.cta.clc_failed:
        raise ClcFault(
            "try_cancel after a request that found no cluster left",
            who=warp.who,
            rule="a request after an observed failure is undefined [PTX: "
            "clusterlaunchcontrol.try_cancel]",
            remedy="stop asking when is_canceled is false",
        )
    bar_cta, bar_offset = warp.cta.resolve_shared(mbar)
    if cta is not warp.cta or bar_cta is not warp.cta:
        raise ClusterFault(
            f"try_cancel with response {response:#x} and mbarrier {mbar:#x}",
            who=warp.who,
            rule="both are .shared::cta addresses [PTX: clusterlaunchcontrol]",
            remedy="ask from the CTA that needs the answer; .multicast::cluster::all "
            "gives it to its peers too",
        )
    return offset, bar_offset


def _check_slot(warp: Warp, cta: Cta, answer: Range) -> None:
    """Raise `ClcFault` if another answer is on its way to the same bytes."""
    for op in warp.machine.in_flight:
        if op.unit == "clc" and any(answer.overlaps(other) for other in op.writes):
            raise ClcFault(
                "try_cancel for an answer slot that awaits another answer",
                who=warp.who,
                where=f"{cta.smem.describe(answer.start)}; asked first by {op.who} at "
                f"{op.statement}",
                rule="the 16 bytes of an answer are written asynchronously, and belong "
                "to one request until its mbarrier completes [PTX: "
                "clusterlaunchcontrol.try_cancel]",
                remedy="let one thread of the cluster ask, and wait for the answer; or "
                "use another slot",
            )


def _landing(
    warp: Warp, request: _Request, cta: Cta, answer: Range, bar_offset: int
) -> Callable[[], None]:
    """Issue the answer to one CTA; returns what lands it."""
    access = warp.machine.order.issue(warp.actor, _NAME)
    access.writes(cta.smem, answer)
    access.signals(cta.smem, bar_offset)

    def land() -> None:
        data = request.decide()
        if request.refused:
            # A fault only once a thread has read it: see `smem.ld`.
            cta.clc_refusal = answer
        cta.smem.write_async(answer, data.reshape(1, -1))
        phase = cta.mbarriers.completed.get(bar_offset, 0)
        access.complete(cta.smem, bar_offset, phase)
        cta.mbarriers.update(
            bar_offset, tx_bytes=-RESPONSE_NBYTES, who="clc", issuer=warp.who
        )

    return land


def encode_response(ctaid: Dim3 | None) -> Bytes:
    """The 16 bytes of an answer; None means that no cluster was left."""
    x, y, z = ctaid or (0, 0, 0)
    words = np.array([x, y | z << 16, int(ctaid is not None), 0], "<u4")
    return words.view(np.uint8)


def is_canceled(response: Bytes) -> bool:
    """``query_cancel.is_canceled``: whether a cluster was handed over."""
    return bool(response.view("<u4")[2] & 1)


def get_first_ctaid(response: Bytes) -> Dim3:
    """``query_cancel.get_first_ctaid``: coordinates of the cluster's first CTA.

    Raises
    ------
    ClcFault
        The answer says that nothing was canceled.
    """
    if not is_canceled(response):
        raise ClcFault(
            "get_first_ctaid of an answer that canceled nothing",
            rule="the coordinates are defined only if is_canceled is true [PTX: "
            "clusterlaunchcontrol.query_cancel]",
            remedy="test is_canceled first",
        )
    words = response.view("<u4")
    return int(words[0]), int(words[1] & 0xFFFF), int(words[1] >> 16)


def griddepcontrol_wait(warp: Warp) -> Generator[Blocked, None, None]:
    """``griddepcontrol.wait``: until earlier grids are done. Here they always are."""
    warp.record("griddepcontrol.wait", {})
    yield from ()


def griddepcontrol_launch_dependents(warp: Warp) -> None:
    """``griddepcontrol.launch_dependents``: later grids may start. Frame 8.2."""
    warp.machine.dependents_launched = True
    warp.record("griddepcontrol.launch_dependents", {})
