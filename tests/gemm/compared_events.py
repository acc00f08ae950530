"""compared_events: runs of the emulated kernel beside the table of expected events."""

from __future__ import annotations

import datetime
import os
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import expected_events as table
import numpy as np
from expected_events import Expected, event_count
from expected_problem import Gemm, Tile
from expected_steps import Agent, Step

import fp4ref
from fp4ref.gemm.config import GemmConfig
from fp4ref.numerics import ScaleFormat
from fp4ref.trace import Event, Trace

SEED = int(os.environ.get("FP4REF_SEED", f"{datetime.date.today():%Y%m%d}"))


class EventMismatch(AssertionError):
    """The trace and the table differ."""


def step_of(event: Event) -> Step:
    return Step(event.operation, event.kind, dict(event.operands))


def check_warp(name: str, events: list[Event], expected: Agent) -> list[Event]:
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


def vain_peeks(trace: Trace) -> int:
    """Count the peeks that a wait follows: told no, or forgotten before a round."""
    found, asked = 0, dict[tuple[Any, str], int]()
    for event in trace:
        who = event.cta, event.agent
        if event.operation == "mbarrier.test_wait.parity":
            asked[who] = event.operands["mbar"]
        elif event.operation == "mbarrier.try_wait.parity":
            found += asked.get(who) == event.operands["mbar"]
        elif event.operands.get("ring") == "mainloop":  # it has been entered
            asked.pop(who, None)
    return found


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
    config = GemmConfig.nvfp4(
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
        reuse_smem_c=g.reuse,
        delay_tma_store=g.delay,
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
    count = event_count(g, [len(mine) for mine in tiles.values()], vain_peeks(trace))
    if len(trace) != count:
        raise EventMismatch(f"{len(trace)} events, the formula says {count}")
