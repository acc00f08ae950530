"""The player draws one cluster: who issued, who received, which barriers were told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import viz
from fp4ref.errors import InputError
from fp4ref.execution.traced_machine import TracedMachine
from fp4ref.hardware import cluster, mbarrier, tma
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.trace import Trace

BOX = 2048
MASK = 0b1101
"""Ranks 0, 2 and 3 of four receive; rank 1 does not."""


def multicast(traced: TracedMachine) -> Trace:
    """Four CTAs; rank 2 sends one box to three of them, then rank 0 to the fourth."""
    on = traced.machine
    address = on.gmem.upload("B", np.arange(BOX, dtype=np.uint32).astype(np.uint8))
    m = TensorMap(DataType.UINT8, address, (128, 16), (128,), (128, 16))

    def body(warp: Warp) -> Iterator[Blocked]:
        base = warp.cta.smem_base
        mbarrier.init(warp, base, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, base, BOX)
        yield from cluster.wait(warp, cluster.arrive(warp))
        if warp.cta.rank == 2:
            tma.load(warp, m, (0, 0), base + 0x400, base, MASK)
        if warp.cta.rank == 0:
            yield from mbarrier.try_wait(warp, base, 0)
            tma.load(warp, m, (0, 0), base + 0x400, base, 1 << 1)
        yield from mbarrier.try_wait(warp, base, 0)
        yield from cluster.wait(warp, cluster.arrive(warp))

    def kernel(cta: Cta) -> list[Role]:
        return [body]

    on.launch(kernel, (2, 2, 1), cluster=(2, 2, 1))
    trace = traced.trace(traced.meta())
    assert trace is not None
    return trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return multicast(TracedMachine(4, "eager", "ptx", trace=True))


def test_the_view_is_there_for_a_cluster(trace: Trace, small: fp4ref.Run) -> None:
    viz.play(trace, view="cluster")
    with pytest.raises(InputError, match="cluster"):
        viz.play(small, view="cluster")


def test_it_names_each_receiver_and_its_barrier(
    trace: Trace, open_players: Any
) -> None:
    land = next(e for e in trace if e.kind == "land")
    page = open_players(viz.play(trace, view="cluster", step=land.step))
    label = page.locator(".fp4ref-picture svg").get_attribute("aria-label")
    assert "CTA 2 issued it; it also reaches CTA 0, 3." in label
    page.locator(".fp4ref-twin summary").click()
    rows = page.locator(".fp4ref-twin tbody tr").all_text_contents()
    assert len(rows) == 4
    for rank, row in enumerate(rows):
        gets = "gets 2,048 bytes at SMEM 0x800" in row
        told = "barrier 0x" in row and ": 1 arrivals, 0 bytes left" in row
        assert (gets, told) == (bool(MASK >> rank & 1),) * 2, row
    assert "issued here" in rows[2]
    assert "nothing" in rows[1]


def test_keys_go_to_the_steps_that_cross(trace: Trace, open_players: Any) -> None:
    """An issue that reaches others, and each of its landings."""
    issues = [e.step for e in trace if e.kind == "issue"]
    landings = [e.step for e in trace if e.kind == "land"]
    page = open_players(viz.play(trace, view="cluster", step=0))
    player = page.locator(".fp4ref-player")
    player.focus()
    found = []
    for _ in (*issues, *landings):
        page.keyboard.press("n")
        found.append(int(player.get_attribute("data-step")))
    assert (len(issues), len(landings)) == (2, 4)
    assert found == sorted(issues + landings)


def test_an_issue_says_who_will_receive(trace: Trace, open_players: Any) -> None:
    issue = next(e for e in trace if e.kind == "issue")
    page = open_players(viz.play(trace, view="cluster", step=issue.step))
    page.locator(".fp4ref-twin summary").click()
    rows = page.locator(".fp4ref-twin tbody tr").all_text_contents()
    assert ["to come" in row for row in rows] == [
        bool(MASK >> rank & 1) for rank in range(4)
    ]
