"""Several boxes of an operand on one barrier, and data in the peer of its CTA."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig, compare
from fp4ref.evidence.difference import Difference
from fp4ref.evidence.faults.change import Change, changed_emulator
from fp4ref.evidence.hardware_events import Key, hardware_events
from fp4ref.trace import Barrier, Event, Range, Trace

FULL = 0
NBYTES = 64
Load = tuple[str, tuple[int, int, int], str, int]
"""Tensor, coordinates, space and address of a box."""


def landing(step: int, load: Load, last: bool) -> Event:
    tensor, coords, space, start = load
    operands: dict[str, Any] = {"tensor": tensor, "coords": list(coords)}
    after = (1, 1, 0) if last else (0, 0, NBYTES)
    return Event(
        step,
        0,
        (0, 0, 0),
        "tma",
        "cp.async.bulk.tensor.3d.load",
        "land",
        operands,
        writes=(Range(space, start, NBYTES), Range("smem0", FULL, 8)),
        barrier=(Barrier("smem0", FULL, "full[0]", (0, 0, NBYTES), after),),
    )


def trace_of(loads: tuple[Load, ...]) -> Trace:
    """One phase of one barrier in SM 0; box `i` holds the bytes of its coordinates."""
    events, deltas = [], []
    for step, load in enumerate(loads):
        events.append(landing(step, load, step == len(loads) - 1))
        data = np.full((1, NBYTES), sum(load[1]) % 256, np.uint8)
        deltas.append((data, np.zeros((1, 8), np.uint8)))
    started = [note(sm) for sm in range(2)]
    return traced([*started, *events], [(), (), *deltas], 2)


def note(sm: int) -> Event:
    return Event(0, sm, (sm, 0, 0), "warp0", "elect.sync", "sync", {})


def traced(events: list[Event], deltas: list[Any], sms: int) -> Trace:
    """A trace of one cluster, a CTA on each SM."""
    events = [replace(event, step=step) for step, event in enumerate(events)]
    images = {f"smem{sm}": np.zeros(1024, np.uint8) for sm in range(sms)}
    meta = {"cluster": [sms, 1, 1]}
    return Trace(events, deltas, images, dict.fromkeys(images, 0), meta)


def test_a_multicast_is_one_issue_and_several_events() -> None:
    """Two pairs receive B: each leader's barrier is told of what both its CTAs got."""
    spaces = [f"smem{sm}" for sm in range(4)]
    boxes = tuple(Range(space, 64, NBYTES) for space in spaces)
    told = tuple(
        Barrier(space, FULL, "full[0]", (0, 0, 2 * NBYTES), (1, 1, 0))
        for space in ("smem0", "smem2")
    )
    words = tuple(Range(b.space, b.address, 8) for b in told)
    operands: dict[str, Any] = {"tensor": "B", "coords": [0, 64, 0]}
    name = "cp.async.bulk.tensor.3d.load"
    load = Event(
        0, 0, (0, 0, 0), "tma", name, "land", operands, (), boxes + words, told
    )
    data = [np.full((1, NBYTES), 1 + rank, np.uint8) for rank in range(4)]
    deltas = [(), (), (), (), (*data, *[np.zeros((1, 8), np.uint8)] * 2)]
    found = hardware_events(traced([*map(note, range(4)), load], deltas, 4))
    assert [key.rank for key in found] == [0, 1, 2, 3]
    assert [int(e.data[0, 0]) for e in found.values()] == [1, 2, 3, 4]
    assert len({e.event.step for e in found.values()}) == 1


LOADS: tuple[Load, ...] = (
    ("A", (0, 128, 0), "smem0", 64),
    ("A", (0, 256, 0), "smem1", 64),
    ("B", (0, 0, 0), "smem0", 128),
    ("B", (0, 64, 0), "smem1", 128),
)


@pytest.mark.parametrize("loads", list(permutations(LOADS)), ids=range(24))
def test_each_box_has_its_own_name_in_any_order(loads: tuple[Load, ...]) -> None:
    found = hardware_events(trace_of(loads))
    assert set(found) == {
        Key("A", 128, 0, 0, 0),
        Key("A", 256, 0, 0, 0, rank=1),
        Key("B", 128, 0, 0, 0),
        Key("B", 128, 64, 0, 0, rank=1),
    }
    for event in found.values():
        coords = event.event.operands["coords"]
        assert (event.data == sum(coords) % 256).all()


def test_scales_go_with_the_operand_that_they_scale() -> None:
    loads: tuple[Load, ...] = (
        ("A", (512, 128, 2), "smem0", 64),
        ("A", (640, 128, 2), "smem0", 128),
        ("SFA", (0, 8, 2), "smem0", 192),
        ("SFA", (0, 10, 2), "smem0", 256),
    )
    found = [key for key in hardware_events(trace_of(loads)) if key.tensor == "SFA"]
    assert found == [Key("SFA", 128, -1, 512, 2), Key("SFA", 128, -1, 640, 2)]


def wrong_box(tensor: str, schedule: str) -> Difference:
    """Let one operand's rows for the tile at (0, 0) be those of the next tile."""
    config = GemmConfig.nvfp4(cluster_m=2, tile_n=64, stages=2)
    a, b = wide_pair(0, 256, 128, 256)
    given = {"config": config, "sms": 2, "schedule": schedule}
    right = f"at = {tensor}_coords(work, k_tile, plan"
    there = "WorkTile(1 - work.m, 1 - work.n, work.l)"
    moved = f"({there} if work.m == work.n == 0 else work, k_tile, plan"
    wrong = f"at = {tensor}_coords{moved}"
    change = Change("fp4ref/gemm/load/multicast_loader.py", right, wrong)
    clean = fp4ref.run(a, b, **given)
    with changed_emulator(change):
        found = compare(clean, fp4ref.run(a, b, **given)).first_difference
    assert found
    return found


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("tensor", ["a", "b"])
def test_a_wrong_box_is_named_before_what_has_its_name_from_it(
    tensor: str, schedule: str
) -> None:
    found = wrong_box(tensor, schedule)
    assert found.key.tensor == tensor.upper()
    assert found.coordinates == "another box"
    assert found.values[0] != found.values[1]
