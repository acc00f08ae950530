"""events: a tile's steps one tile after another, each when all it comes after is done.

The earliest goes first, and a unit serves what comes first, as in the clock of
``schedule="timed"`` and with the same rules (`fp4ref.hardware.timing.work`). Two things
are otherwise. What warps send through the L1 of their SM goes by one after another, and
takes slots of the MMA's reads by the same share as fills do. And a TMA store takes
memory's time when its bytes have been read; that clock keeps it free from the issue on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final, NamedTuple

import numpy as np

from fp4ref.hardware import named_barrier
from fp4ref.hardware.timing import Durations
from fp4ref.hardware.timing.work import cost, work_of
from fp4ref.lab.traced import events_jit
from fp4ref.lab.traced.events_jit import F64, Table, left_of, work_off
from fp4ref.lab.traced.tile import LINE_NBYTES, Edge, Step

_KINDS: Final = {
    "start": events_jit.START,
    "wait": events_jit.WAIT,
    "order": events_jit.ORDER,
}

Took = Callable[[int, Step, float], float]
"""From a step of a warp, its place and what its operations take by the clock, to what
it takes."""


@dataclass(frozen=True, slots=True)
class Times:
    """When each step of each tile came, went on and ended: arrays by tile and step.

    Attributes
    ----------
    came, went, ended
        When all before it was done but what it waits for, when it went on, and when its
        end was.
    """

    came: F64
    went: F64
    ended: F64


class _Row(NamedTuple):
    """A step's part of a `Table`."""

    took: float
    own: float
    latency: float
    l1: int
    line: float
    port: int
    slots: float


def table(
    steps: Sequence[Step],
    d: Durations,
    took: Took = lambda place, step, clocks: clocks,
    memory_share: float = 1.0,
    sms: int = 2,
) -> Table:
    """Return the steps with their durations.

    Parameters
    ----------
    memory_share
        Of the bytes that a load brings from memory, those that no other pair's load of
        the same bytes at the same time brings.
    sms
        Of those that do the tile, which have their share of L2 and memory.
    """
    known: dict[str, int] = {}

    def server(name: str) -> int:
        return known.setdefault(name, len(known))

    takes: list[list[tuple[int, float]]] = []
    rows: list[_Row] = []
    for place, step in enumerate(steps):
        port = server(f"smem{step.sm}")
        if step.is_work:
            held, more = _work(step, d, memory_share, sms)
            takes.append([(server(name), clocks) for name, clocks in held])
            rows.append(_Row(0.0, 0.0, more, -1, 0.0, port, 0.0))
            continue
        clocks, own = _warp(step, d)
        line = step.lines * LINE_NBYTES / d.smem_bandwidth
        l1 = server(f"l1.{step.sm}") if step.lines else -1
        slots = line * d.smem_port_shared
        takes.append([])
        own_time = took(place, step, clocks)
        rows.append(_Row(own_time, own, 0.0, l1, line, port, slots))
    every = list(chain(*takes))
    return Table(
        np.array([s.is_work and s.agent == "tcgen05" for s in steps], np.int64),
        np.array([row.took for row in rows], np.float64),
        np.array([row.own for row in rows], np.float64),
        np.array([row.latency for row in rows], np.float64),
        _firsts([len(each) for each in takes]),
        np.array([number for number, _ in every], np.int64),
        np.array([held for _, held in every], np.float64),
        np.array([row.l1 for row in rows], np.int64),
        np.array([row.line for row in rows], np.float64),
        np.array([row.port for row in rows], np.int64),
        np.array([row.slots for row in rows], np.float64),
        *_after(steps, d),
        _firsts([len(step.edges) for step in steps]),
        np.array([edge.back for step in steps for edge in step.edges], np.int64),
        len(known),
    )


def run(found: Table, factors: F64) -> Times:
    """Work off as many tiles as there are rows of factors."""
    left = left_of(found.before_first, found.before_back, len(factors))
    times = work_off(found, factors, left)
    return Times(*(each.reshape(factors.shape) for each in times))


def factors(
    warps: Sequence[Sequence[int]],
    shape: tuple[int, int],
    unevenness: float,
    seed: int,
) -> F64:
    """Draw how much longer each warp takes in each tile; 1 on the mean.

    Parameters
    ----------
    warps
        The places of the steps of each, which all get the same.
    shape
        Tiles and steps.
    unevenness
        Standard deviation over the mean.
    """
    rng, found = random.Random(seed), np.ones(shape)
    for tile in range(shape[0]):
        for places in warps:
            drawn = 1 - unevenness + unevenness * rng.expovariate(1.0)
            found[tile, list(places)] = drawn
    return found


def _firsts(counts: Sequence[int]) -> events_jit.I64:
    return np.array([0, *accumulate(counts)], np.int64)


def _after(
    steps: Sequence[Step], d: Durations
) -> tuple[events_jit.I64, events_jit.I64, F64, events_jit.I64]:
    """Turn the edges around: what comes after each step."""
    after: list[list[tuple[int, float, int]]] = [[] for _ in steps]
    for place, step in enumerate(steps):
        for edge in step.edges:
            offset = edge.back * len(steps) + place
            after[edge.step].append((offset, _latency(edge, d), _KINDS[edge.kind]))
    every = list(chain(*after))
    return (
        _firsts([len(each) for each in after]),
        np.array([offset for offset, _, _ in every], np.int64),
        np.array([latency for _, latency, _ in every], np.float64),
        np.array([kind for _, _, kind in every], np.int64),
    )


def _latency(edge: Edge, d: Durations) -> float:
    return float(sum(getattr(d, name) for name in edge.latencies))


def _work(
    step: Step, d: Durations, memory_share: float, sms: int
) -> tuple[list[tuple[str, float]], float]:
    where = step.sm, step.reads, step.writes
    work = work_of(step.agent, step.operation, step.operands, where, d, sms)
    takes, latency = work.takes, work.latency
    if step.cold and work.cold_takes is not None:
        takes, latency = work.cold_takes, work.cold_latency
    share = {"hbm": memory_share}
    return [(name, held * share.get(name, 1.0)) for name, held in takes], latency


def _warp(step: Step, d: Durations) -> tuple[float, float]:
    """Return the clocks of a warp's operations, and until its own arrival."""
    clocks = sum(
        part.times * cost(part.operation, part.operands, part.registers, part.again, d)
        for part in step.parts
    )
    own = float(sum(getattr(d, name) for name in step.own))
    if step.operation in named_barrier.WAITS:
        # It arrives first, and then waits.
        return 0.0, max(own, clocks)
    return float(clocks), own
