"""Every event of the kernel, against an independent table written from formulas."""

from __future__ import annotations

import ast
import datetime
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import expected_events as table
import numpy as np
import pytest
from expected_events import Expected, Gemm, Step, Tile, event_count

import fp4ref
from fp4ref.errors import HardwareFault
from fp4ref.gemm import (
    epilogue_warp,
    mma_warp,
    partition,
    producer_warp,
    shared_storage,
)
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.pipeline import Producer, Ring
from fp4ref.gemm.plan.tmem_map import TmemMap
from fp4ref.gemm.tile_scheduler import TileGrid
from fp4ref.hardware import mbarrier, tma
from fp4ref.numerics import ScaleFormat
from fp4ref.trace import Event, Trace

SEED = int(os.environ.get("FP4REF_SEED", f"{datetime.date.today():%Y%m%d}"))


class EventMismatch(AssertionError):
    """The trace and the table differ."""


def step_of(event: Event) -> Step:
    return Step(event.operation, event.kind, dict(event.operands))


def check_warp(name: str, events: list[Event], expected: table.Agent) -> list[Event]:
    """Drive one role with the trace's answers; return what it issued."""
    answer: bool | None = None
    issued = []
    for position, event in enumerate([*events, None]):
        try:
            want = expected.send(answer)
        except StopIteration:
            if event is not None:
                raise EventMismatch(f"{name}: more than expected: {event}") from None
            return issued
        if event is None:
            raise EventMismatch(f"{name}: ends after {position} events, before {want}")
        got, answer = step_of(event), None
        if want.operation == "mbarrier.test_wait.parity":
            answer = got.payload.get("done")
            if not isinstance(answer, bool):
                raise EventMismatch(f"{name} event {position}: no answer in {got}")
            want = replace_payload(want, done=answer)
        if got != want:
            raise EventMismatch(f"{name} event {position}:\n  is  {got}\n  not {want}")
        if event.kind == "issue":
            issued.append(event)
    raise AssertionError("unreachable")


def replace_payload(step: Step, **more: Any) -> Step:
    return step._replace(payload={**step.payload, **more})


def check_units(cta: object, landed: list[Event], issued: list[Event]) -> None:
    """Everything lands once on its units, after its issue; order where promised."""
    want = Counter((u, e.step) for e in issued for u in table.UNITS[e.operation])
    got = Counter((e.agent, e.issued) for e in landed)
    if got != want:
        raise EventMismatch(f"{cta}: landings {got - want}, missing {want - got}")
    by_step = {e.step: e for e in issued}
    for event in landed:
        origin = by_step[event.issued]
        if step_of(event) != step_of(origin)._replace(kind="land"):
            raise EventMismatch(f"{cta}: {event} is not what was issued: {origin}")
        if event.step <= event.issued:
            raise EventMismatch(f"{cta}: {event} lands before its issue")
    check_promised_order(landed)


def check_promised_order(landed: list[Event]) -> None:
    """What `is_promised` orders lands in that order; a store reads before it writes."""
    units = ("tcgen05", "clc")
    line = sorted((e for e in landed if e.agent in units), key=lambda e: e.issued)
    steps = [step_of(e) for e in line]
    for j, second in enumerate(line):
        for i in range(j):
            if line[i].step > second.step and table.is_promised(steps[i], steps[j]):
                raise EventMismatch(f"{second} lands before {line[i]}")
    read_at = {e.issued: e.step for e in landed if e.agent == "tma.read"}
    for event in landed:
        is_write = event.agent == "tma" and event.operation.endswith("store")
        if is_write and event.step < read_at[event.issued]:
            raise EventMismatch("a store writes before it reads")


def assignment(g: Gemm, trace: Trace, sms: int, only: list[Tile] | None) -> Any:
    """Tiles of each CTA: its own, then what the CLC's 16 bytes say."""
    order = [t for t in g.order() if only is None or t in only]
    ctas = min(sms, len(order))
    if not g.clc:
        return {(i, 0, 0): order[i::ctas] for i in range(ctas)}
    found = {g.ctaid(tile): [tile] for tile in order[:ctas]}
    for event in trace:
        if event.agent == "clc":
            answer = trace.at(event.step).read(event.writes[0]).tobytes()
            if (tile := g.tile_of_answer(answer)) is not None:
                found[event.cta].append(tile)
    taken = sorted(tile for tiles in found.values() for tile in tiles)
    if taken != sorted(order):
        raise EventMismatch(f"tiles {taken} were worked on, not {sorted(order)}")
    return found


def check(g: Gemm, trace: Trace, tiles: dict[Any, list[Tile]]) -> None:
    """Compare every agent of every CTA, field by field, and the total."""
    agents: dict[tuple[Any, str], list[Event]] = defaultdict(list)
    for event in trace:
        agents[event.cta, event.agent].append(event)
    for sm, (cta, mine) in enumerate(tiles.items()):
        issued = []
        for name, role in Expected(g, mine).warps().items():
            events = agents.pop((cta, name), [])
            if any(e.sm != sm for e in events):
                raise EventMismatch(f"{cta} is not on SM {sm}")
            issued += check_warp(f"{cta} {name}", events, role)
        units = {u for names in table.UNITS.values() for u in names}
        landed = [e for u in units for e in agents.pop((cta, u), [])]
        check_units(cta, sorted(landed, key=lambda e: e.step), issued)
    if agents:
        raise EventMismatch(f"unknown agents {sorted(agents, key=str)}")


def false_peeks(trace: Trace) -> int:
    peeks = trace.select(operation="mbarrier.test_wait.parity")
    return sum(not e.operands["done"] for e in peeks)


@cache
def operand(rows: int, k: int, batches: int, ue8m0: bool, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    lead = (batches,) if batches > 1 else ()
    low, high = (120, 134) if ue8m0 else (0x20, 0x50)
    return fp4ref.BlockScaled(
        rng.integers(0, 16, (*lead, rows, k)).astype(np.uint8),
        rng.integers(low, high, (*lead, rows, k // 16)).astype(np.uint8),
        format="nvfp4",
        scale_format=ScaleFormat.UE8M0 if ue8m0 else ScaleFormat.UE4M3,
    )


def run(g: Gemm, schedule: str | int, sms: int = 2, **changes: Any) -> Trace:
    """Run the emulated kernel that `g` describes."""
    config = GemmConfig(
        tile_n=g.tile_n,
        d_format=g.d,
        c_format=g.c,
        beta=0.5 if g.loads_c else 0.0,
        bias=g.bias,
        scheduler="clc" if g.clc else "static",
        raster=g.raster,
        stages=g.stages,
        c_stages=g.c_stages,
        d_stages=g.d_stages,
        accumulator_stages=g.accumulator_stages,
        clc_stages=g.clc_stages,
        scale_buffers=g.scale_buffers,
        **changes,
    )
    a = operand(g.m, g.k, g.batches, g.ue8m0, 1)
    b = operand(g.n, g.k, g.batches, g.ue8m0, 2)
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, None: None}[g.c]
    lead = (g.batches,) if g.batches > 1 else ()
    c = np.ones((*lead, g.m, g.n), dtype) if g.loads_c else None
    bias = np.ones(g.n, np.float32) if g.bias else None
    ordering = "ptx" if g.scale_buffers == 2 else "shipped"
    found = fp4ref.run(
        a, b, c, bias=bias, config=config, schedule=schedule, sms=sms, ordering=ordering
    )
    assert found.trace is not None
    return found.trace


def check_run(g: Gemm, trace: Trace, sms: int) -> None:
    """Compare a run over the whole grid with the table and with the closed formula."""
    tiles = assignment(g, trace, sms, None)
    check(g, trace, tiles)
    count = event_count(g, [len(mine) for mine in tiles.values()], false_peeks(trace))
    if len(trace) != count:
        raise EventMismatch(f"{len(trace)} events, the formula says {count}")


CASES: list[tuple[Gemm, int]] = [
    (Gemm(128, 128, 256), 1),
    (Gemm(1, 1, 32), 2),
    (Gemm(127, 129, 96, d="bf16"), 1),
    (Gemm(129, 127, 384, d="f16", raster="n"), 2),
    (Gemm(300, 300, 256, d="nvfp4"), 3),
    (Gemm(129, 300, 1056, clc=False), 2),
    (Gemm(300, 129, 384, d="bf16", c="bf16", loads_c=True), 2),
    (Gemm(128, 300, 1536, c="f32", loads_c=True, c_stages=4, stages=3), 1),
    (Gemm(300, 1, 2048, bias=True), 3),
    (Gemm(129, 300, 96, d="nvfp4", tile_n=64, bias=True), 2),
    (Gemm(128, 129, 1056, tile_n=64, clc=False, d="f16"), 3),
    (Gemm(1, 300, 2048, d="nvfp4", c="f32", c_stages=4), 1),
    (Gemm(127, 300, 384, d="nvfp4", c="f16", loads_c=True, bias=True, clc=False), 1),
    (Gemm(128, 128, 1536, scale_buffers=1, stages=2), 1),
    (Gemm(128, 512, 384, ue8m0=True, accumulator_stages=1, d_stages=1), 1),
    (Gemm(129, 300, 32, batches=2, clc_stages=3, d_stages=3, raster="n"), 3),
    (Gemm(300, 129, 64, batches=3, d="nvfp4", bias=True, clc=False), 2),
]


def name(case: object) -> str:
    if not isinstance(case, Gemm):
        return str(case)
    default = Gemm(0, 0, 0)
    changed = [
        f"{k}={v}"
        for k, v in vars(case).items()
        if k not in "mnk" and v != getattr(default, k)
    ]
    return "-".join([f"{case.m}x{case.n}x{case.k}", *changed])


@pytest.mark.parametrize("schedule", ["eager", "late", "seed"])
@pytest.mark.parametrize(("g", "sms"), CASES, ids=name)
def test_every_agent_does_exactly_what_the_table_says(
    g: Gemm, sms: int, schedule: str
) -> None:
    policy = SEED if schedule == "seed" else schedule
    print(f"schedule {policy}; repeat with FP4REF_SEED={SEED}")
    check_run(g, run(g, policy, sms), sms)


def test_tile_5_0_of_example_72b_and_nothing_else() -> None:
    g = Gemm(2048, 2048, 2048, d="nvfp4", c="f32", c_stages=4)
    a, b = (operand(2048, 2048, 1, False, seed) for seed in (3, 4))
    config = GemmConfig.example_72b()
    trace = fp4ref.run(a, b, config=config, tiles=[(5, 0)]).trace
    assert trace is not None
    tiles = assignment(g, trace, 2, [(5, 0, 0)])
    assert tiles == {(5, 0, 0): [(5, 0, 0)]}
    check(g, trace, tiles)
    alone = replace(g, m=128, n=128)
    assert len(trace) == event_count(alone, [1], false_peeks(trace)) == 661


def test_the_table_shares_nothing_with_the_emulator() -> None:
    source = Path(table.__file__).read_text()
    tree = ast.parse(source)
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported == {"__future__", "collections.abc", "dataclasses", "typing"}


# The table can fail: the emulator is changed, or its trace is.

SMALL = Gemm(256, 256, 768, stages=2)

Mutate = Callable[[pytest.MonkeyPatch], None]


def stage_bytes_in_two_parts(patch: pytest.MonkeyPatch) -> None:
    whole = mbarrier.arrive_expect_tx

    def parts(warp: Any, address: int, nbytes: int) -> None:
        mbarrier.expect_tx(warp, address, 16)
        whole(warp, address, nbytes - 16)

    patch.setattr(producer_warp.mbarrier, "arrive_expect_tx", parts)


def another_k_tile_of_a(patch: pytest.MonkeyPatch) -> None:
    right = partition.a_coords
    patch.setattr(producer_warp, "a_coords", lambda work, k: right(work, 2 - k))


def b_row_as_tile_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        producer_warp, "b_coords", lambda work, k, _: (256 * k, work.n, work.l)
    )


def sfa_atom_as_tile_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_warp, "sfa_coords", lambda work, k: (0, k, work.m, work.l))


def sfb_in_other_columns(patch: pytest.MonkeyPatch) -> None:
    right = TmemMap.of

    def shifted(config: GemmConfig) -> TmemMap:
        found = right(config)
        return replace(found, sfb=tuple(column + 64 for column in found.sfb))

    patch.setattr(TmemMap, "of", shifted)


def commits_to_another_stage(patch: pytest.MonkeyPatch) -> None:
    right = Ring.at

    def reversed_empties(name: str, *rest: Any) -> Ring:
        ring = right(name, *rest)
        return replace(ring, empty=ring.empty[::-1]) if name == "mainloop" else ring

    patch.setattr(Ring, "at", reversed_empties)


def one_arrival_for_each_warp(patch: pytest.MonkeyPatch) -> None:
    right = epilogue_warp.arrive_on_empty
    patch.setattr(shared_storage, "EPILOGUE_THREADS", 4)
    patch.setattr(epilogue_warp, "arrive_on_empty", lambda count: right(count // 32))


def half_a_k_block(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mma_warp, "K_BLOCK_STEP", 1)


def negated_a(patch: pytest.MonkeyPatch) -> None:
    right = GemmConfig.idesc
    patch.setattr(GemmConfig, "idesc", lambda self, form: right(self, form) | 1 << 13)


def subtiles_stored_from_the_right(patch: pytest.MonkeyPatch) -> None:
    right = partition.subtile_coords
    patch.setattr(
        epilogue_warp, "subtile_coords", lambda work, i, n: right(work, 3 - i, n)
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
    right = epilogue_warp.tmem.ld

    def halves(warp: Any, taddr: int, shape: Any, repeat: int) -> Any:
        right(warp, taddr, shape, repeat // 2)
        return right(warp, taddr, shape, repeat)

    patch.setattr(epilogue_warp.tmem, "ld", halves)


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
    patch.setattr(mma_warp.tcgen05, "commit", mbarrier.arrive)


def more_bytes_expected_than_come(patch: pytest.MonkeyPatch) -> None:
    right = GemmConfig.stage_tx_bytes.fget  # type: ignore[attr-defined]
    patch.setattr(GemmConfig, "stage_tx_bytes", property(lambda self: right(self) + 16))


def no_fence_before_the_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epilogue_warp.tcgen05, "fence_before_thread_sync", lambda warp: None)


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
