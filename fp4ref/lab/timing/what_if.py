"""what_if: a recorded trace on many machines at once, drawn from the published ranges.

A machine is one number from each range; the order in which the units serve is that of
the recording. So more of a rate, or less of a latency, can slow nothing down: every
time is a maximum of sums of these durations. What a configuration with other stages
does is another trace, and for it no such argument holds.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_integer
from fp4ref.hardware.timing import Durations
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.timing.replay import Replay
from fp4ref.parameters import Corner, Parameters

F64 = NDArray[np.float64]
FIXED: Final = ("clock", "sms", "launch", "smem_port_shared")
"""Fields on which no time of a replay depends, and what says who takes the port."""
BANDWIDTHS: Final = (
    "smem_bandwidth",
    "tmem_load_bandwidth",
    "tma_fill_bandwidth",
    "l2_bandwidth",
    "hbm_bandwidth",
)


def drawn(count: int, seed: int = 0, rows: Parameters | None = None) -> Durations:
    """Draw machines, each number evenly from its published range.

    Returns
    -------
    Durations
        Whose fields are arrays of `count`; those of `FIXED` are the published values.
    """
    require_integer(count, "count", 1)
    random = np.random.default_rng(require_integer(seed, "seed", 0))
    ends = [Durations.of(rows, corner) for corner in (Corner.SLOW, Corner.FAST)]
    values: dict[str, Any] = {}
    for field in fields(Durations):
        if field.name not in FIXED:
            low, high = sorted(getattr(each, field.name) for each in ends)
            values[field.name] = random.uniform(low, high, count)
    return replace(Durations.of(rows), **values)


def faster(durations: Durations, names: tuple[str, ...], factor: float) -> Durations:
    """Return machines with some rates multiplied, and some durations divided.

    Parameters
    ----------
    names
        Of `BANDWIDTHS` for rates, of other fields for durations.
    """
    changed = {
        name: getattr(durations, name) * (factor if name in BANDWIDTHS else 1 / factor)
        for name in names
    }
    return replace(durations, **changed)


def run_clocks(graph: Graph, durations: Durations) -> F64:
    """Return how long the whole run takes on each machine."""
    return np.asarray(Replay(graph, durations).end, np.float64)


def slowed(before: F64, after: F64, tolerance: float = 0.01) -> NDArray[np.intp]:
    """Return the machines on which a change costs more than a share of the time."""
    return np.flatnonzero(after > before * (1 + tolerance))
