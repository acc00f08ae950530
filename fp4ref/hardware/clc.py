"""Part 2. clc: cancel a cluster that has not been launched, and learn its coordinates.

Cluster launch control lets a running CTA take the work of one that waits for an SM. The
16-byte answer holds ``ctaid.x``, ``ctaid.y | ctaid.z << 16``, a flag word and nothing.
Source: PTX, clusterlaunchcontrol; the layout of the answer from ptxas's lowering of
query_cancel (officially opaque). Also here: ``griddepcontrol``.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from fp4ref.errors import ClusterFault, HardwareFault, MisalignedAddress
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.trace import Bytes, Dim3, Range

RESPONSE_NBYTES = 16


class ClcFault(HardwareFault):
    """Cluster launch control was used against its rules."""


def try_cancel(warp: Warp, response: int, mbar: int) -> None:
    """``clusterlaunchcontrol.try_cancel.async``. Frames 1.10 and 2.4.

    Writes 16 bytes at `response` and completes 16 bytes on `mbar`.

    Raises
    ------
    MisalignedAddress
        `response` is not 16-byte aligned.
    ClusterFault
        `response` or `mbar` is in another CTA.
    ClcFault
        A thread of this CTA has read the answer that nothing is left.
    """
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
            remedy="ask from the CTA that needs the answer",
        )
    answer = Range(cta.smem.space, offset, RESPONSE_NBYTES)
    access = warp.machine.order.issue(warp.actor, "clusterlaunchcontrol.try_cancel")
    access.writes(cta.smem, answer)
    access.signals(bar_cta.smem, bar_offset)

    def land() -> None:
        pending = warp.machine.pending
        if pending:
            data = encode_response(pending.popleft())
            warp.machine.count("clc.canceled")
        else:
            # A fault only once a thread has read it: see `smem.ld`.
            warp.cta.clc_refusal = answer
            data = encode_response(None)
        cta.smem.write_async(answer, data.reshape(1, -1))
        phase = bar_cta.mbarriers.completed.get(bar_offset, 0)
        access.complete(bar_cta.smem, bar_offset, phase)
        bar_cta.mbarriers.update(
            bar_offset, tx_bytes=-RESPONSE_NBYTES, who="clc", issuer=warp.who
        )

    warp.issue(
        "clusterlaunchcontrol.try_cancel",
        {"response": response, "mbar": mbar, "tx_bytes": RESPONSE_NBYTES},
        land,
        unit="clc",
        writes=[answer],
    )


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
