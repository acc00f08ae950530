"""The table of expected events can fail: the emulator is changed, or its trace is."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from compared_events import SEED, EventMismatch, assignment, check, check_run, run
from expected_problem import Gemm

from fp4ref.errors import HardwareFault
from fp4ref.gemm import epilogue_start, epilogue_warp, partition
from fp4ref.gemm.epilogue import tile_writer
from fp4ref.gemm.load import tma_loader
from fp4ref.gemm.multiply import one_sm
from fp4ref.gemm.pipeline import Producer, Ring
from fp4ref.gemm.plan import Plan, rings
from fp4ref.gemm.plan.tmem_map import TmemMap
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.hardware import mbarrier, tcgen05, tma, tmem
from fp4ref.trace import Event, Trace

SMALL = Gemm(256, 256, 768, stages=2)

Mutate = Callable[[pytest.MonkeyPatch], None]


def stage_bytes_in_two_parts(patch: pytest.MonkeyPatch) -> None:
    whole = mbarrier.arrive_expect_tx

    def parts(warp: Any, address: int, nbytes: int) -> None:
        mbarrier.expect_tx(warp, address, 16)
        whole(warp, address, nbytes - 16)

    patch.setattr(mbarrier, "arrive_expect_tx", parts)


def another_k_tile_of_a(patch: pytest.MonkeyPatch) -> None:
    right = partition.a_coords
    patch.setattr(tma_loader, "a_coords", lambda work, k, p: right(work, 2 - k, p))


def b_row_as_tile_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tma_loader, "b_coords", lambda work, k, _: (256 * k, work.n, work.l))


def sfa_atom_as_tile_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tma_loader, "sfa_coords", lambda work, k, _: (0, k, work.m, work.l))


def sfb_in_other_columns(patch: pytest.MonkeyPatch) -> None:
    right = TmemMap.of

    def shifted(*asked: Any) -> TmemMap:
        found = right(*asked)
        return replace(found, sfb=tuple(column + 64 for column in found.sfb))

    patch.setattr(TmemMap, "of", shifted)


def commits_to_another_stage(patch: pytest.MonkeyPatch) -> None:
    right = Ring.at

    def reversed_empties(name: str, *rest: Any) -> Ring:
        ring = right(name, *rest)
        return replace(ring, empty=ring.empty[::-1]) if name == "mainloop" else ring

    patch.setattr(Ring, "at", reversed_empties)


def one_arrival_for_each_warp(patch: pytest.MonkeyPatch) -> None:
    right = epilogue_start.arrive_on_empty
    patch.setattr(rings, "ARRIVALS", 1)
    patch.setattr(epilogue_start, "arrive_on_empty", lambda count: right(count // 32))


def half_a_k_block(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(one_sm, "K_BLOCK_STEP", 1)


def negated_a(patch: pytest.MonkeyPatch) -> None:
    right = Plan.idesc
    patch.setattr(Plan, "idesc", lambda *asked: right(*asked) | 1 << 13)


def subtiles_stored_from_the_right(patch: pytest.MonkeyPatch) -> None:
    right = partition.subtile_coords
    patch.setattr(
        tile_writer, "subtile_coords", lambda work, i, *of: right(work, 3 - i, *of)
    )


def tail_waits_for_the_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        epilogue_warp.cleanup, "store_tail", lambda warp: tma.wait_group(warp, 0)
    )


def producer_never_peeks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Producer, "peek", lambda self: None)


def transposed_tiles(patch: pytest.MonkeyPatch) -> None:
    right = TileGrid.tile
    patch.setattr(TileGrid, "tile", lambda self, x: right(self, (x[1], x[0], x[2])))


def fewer_columns_in_a_subtile_load(patch: pytest.MonkeyPatch) -> None:
    right = tmem.ld

    def halves(warp: Any, taddr: int, shape: Any, repeat: int) -> Any:
        right(warp, taddr, shape, repeat // 2)
        return right(warp, taddr, shape, repeat)

    patch.setattr(tmem, "ld", halves)


MUTATIONS: list[Mutate] = [
    stage_bytes_in_two_parts,
    another_k_tile_of_a,
    b_row_as_tile_index,
    sfa_atom_as_tile_index,
    sfb_in_other_columns,
    commits_to_another_stage,
    one_arrival_for_each_warp,
    half_a_k_block,
    negated_a,
    subtiles_stored_from_the_right,
    tail_waits_for_the_writes,
    producer_never_peeks,
    transposed_tiles,
    fewer_columns_in_a_subtile_load,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda f: f.__name__)
def test_a_changed_kernel_is_found(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    trace = run(SMALL, "eager")
    with pytest.raises(EventMismatch):
        check_run(SMALL, trace, 2)


def arrives_instead_of_a_commit(patch: pytest.MonkeyPatch) -> None:
    def arrive(warp: Any, mbar: int, *_: Any) -> None:
        mbarrier.arrive(warp, mbar)

    patch.setattr(tcgen05, "commit", arrive)


def more_bytes_expected_than_come(patch: pytest.MonkeyPatch) -> None:
    right = Plan.k_tile_tx_bytes.compute
    patch.setattr(Plan, "k_tile_tx_bytes", property(lambda self: right(self) + 16))


def no_fence_before_the_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tcgen05, "fence_before_thread_sync", lambda warp: None)


@pytest.mark.parametrize(
    "mutate",
    [
        arrives_instead_of_a_commit,
        more_bytes_expected_than_come,
        no_fence_before_the_release,
    ],
    ids=lambda f: f.__name__,
)
def test_a_wrong_protocol_is_found_by_the_machine_or_the_table(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((EventMismatch, HardwareFault)):
        check_run(SMALL, run(SMALL, "eager"), 2)


@cache
def small() -> tuple[Trace, Any]:
    """One tile with everything: C, bias and block scales."""
    g = Gemm(1, 33, 288, d="nvfp4", c="bf16", loads_c=True, bias=True)
    trace = run(g, SEED, 1)
    tiles = assignment(g, trace, 1, None)
    check(g, trace, tiles)
    return trace, (g, tiles)


def changed(events: list[Event]) -> Trace:
    """A trace of these events, numbered again."""
    at = {event.step: i for i, event in enumerate(events)}
    return Trace(
        [replace(e, step=at[e.step], issued=at.get(e.issued, -1)) for e in events]
    )


def one_of_each(trace: Trace) -> list[Event]:
    """One event of each agent, operation and kind; another one with another seed."""
    classes: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in trace:
        classes[event.agent, event.operation, event.kind].append(event)
    rng = random.Random(SEED)
    return [rng.choice(events) for events in classes.values()]


def test_a_trace_without_one_of_its_events_is_found() -> None:
    trace, (g, tiles) = small()
    for event in one_of_each(trace):
        rest = trace.events[: event.step] + trace.events[event.step + 1 :]
        with pytest.raises(EventMismatch):
            check(g, changed(rest), tiles)


def test_a_trace_with_one_event_twice_is_found() -> None:
    trace, (g, tiles) = small()
    for event in one_of_each(trace):
        twice = [*trace.events[: event.step + 1], replace(event, step=-2)]
        with pytest.raises(EventMismatch):
            check(g, changed(twice + trace.events[event.step + 1 :]), tiles)


def test_a_trace_with_one_other_operand_is_found() -> None:
    trace, (g, tiles) = small()
    for event in one_of_each(trace):
        for key, value in event.operands.items():
            if key == "done":
                continue
            other: Any = [*value, 0] if isinstance(value, list) else f"{value}x"
            if isinstance(value, bool):
                other = not value
            elif isinstance(value, int):
                other = value + 1
            events = list(trace.events)
            bent = replace(event, operands={**event.operands, key: other})
            events[event.step] = bent
            with pytest.raises(EventMismatch):
                check(g, changed(events), tiles)


def swapped(trace: Trace, first: str, second: str) -> Trace:
    """Let the next landing of `second` come before the first one of `first`."""
    lands = [e for e in trace if e.kind == "land"]
    one = next(e for e in lands if e.operation == first)
    two = next(
        e
        for e in lands
        if e.operation == second and e.step > one.step and e.cta == one.cta
    )
    events = list(trace.events)
    events.remove(two)
    events.insert(events.index(one), two)
    return changed(events)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tcgen05.mma", "tcgen05.mma"),
        ("tcgen05.mma", "tcgen05.commit"),
        ("tcgen05.cp", "tcgen05.mma"),
        ("cp.async.bulk.tensor.3d.store", "cp.async.bulk.tensor.3d.store"),
    ],
)
def test_landings_against_the_promised_order_are_found(first: str, second: str) -> None:
    g = replace(SMALL, m=128, n=128)
    trace = run(g, "eager", 1)
    tiles = assignment(g, trace, 1, None)
    check(g, trace, tiles)
    with pytest.raises(EventMismatch):
        check(g, swapped(trace, first, second), tiles)
