"""pair_model: the traced kernel as a predictor, with bands and parts left out.

A pair of CTAs works off the tiles of its own trace (`fp4ref.lab.traced`), on the clock
of ``schedule="timed"``. A prediction is made at the published figures and the fitted
ones; its interval has the prediction with each figure at its low and at its high end,
all others as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from fp4ref.errors import InputError
from fp4ref.hardware.timing import Durations
from fp4ref.lab.equilibrium import Predictor
from fp4ref.lab.fitted import Fitted, fitted
from fp4ref.lab.fitted import rows as fitted_rows
from fp4ref.lab.records import RUN_TIME
from fp4ref.lab.traced.changes import restarts, two_warps
from fp4ref.lab.traced.recorded import tile
from fp4ref.lab.traced.steady import Options, Span, steady, timeline
from fp4ref.lab.traced.tile import Step
from fp4ref.lab.variants import COPY_CLOCKS, Kernel, kernel
from fp4ref.lab.workload import workloads
from fp4ref.parameters import Parameters, published

NAME: Final = "traced kernel"
USED: Final = {
    "smem_bandwidth": "smem_bandwidth",
    "mma_compute_interval": "mma_column",
    "tma_fill_bandwidth": "tma_fill_bandwidth",
    "first_load_latency": "tma_hbm_latency",
    "tma_l2_latency": "tma_l2_latency",
    "global_load_latency": "global_load_latency",
    "smem_load_latency": "smem_load_latency",
    "smem_port_shared": "smem_port_shared",
    "tmem_load_latency": "tmem_load_latency",
    "tmem_wait": "tmem_wait",
    "warp_instruction": "warp_instruction",
    "epilogue_element": "epilogue_element",
    "mma_fill": "mma_fill",
    "mma_pair": "mma_pair",
    "commit_latency": "commit_latency",
    "mbarrier_wake": "mbarrier_wake",
    "remote_arrive": "remote_arrive",
}
"""Parameters that the prediction depends on, and what the clock calls them."""
_BY_SOURCE: Final = {
    "the MMA's interval": ("mma_compute_interval",),
    "SMEM's width, which is L1's": ("smem_bandwidth",),
    "the rate of fills": ("tma_fill_bandwidth",),
    "the latency of loads": ("first_load_latency", "tma_l2_latency"),
    "the latency of a thread's loads": ("global_load_latency", "smem_load_latency"),
    "TMEM's latency": ("tmem_load_latency", "tmem_wait"),
    "instructions of a warp": ("warp_instruction", "epilogue_element"),
    "the latency of MMAs, commit and mbarrier": (
        *("mma_fill", "mma_pair", "commit_latency", "mbarrier_wake", "remote_arrive"),
    ),
}
_UNEVEN: Final = "that tiles differ"


REASONS: Final = {
    "F12": "an older kernel: what it was before the change is not given, and the model "
    "compares it with the baseline",
    "F19b": "stores and the MMA's reads do not meet here, as smem_port_shared is left "
    "at its published 0: the K-loop gains by loads that come earlier, and by that only",
    "F23C": "the second quarter of a tile follows the first without the overlap that a "
    "loop over both has",
    "F25": "the model's warps are all alike, and the baseline's figure is of one warp",
    "TN128": "each tile begins in stage 0, so a tile's two round trips to memory come "
    "twice as often; how that older kernel ran its ring is not said, and with one that "
    "runs on it would be a third longer, not two thirds",
}
"""Why the model is off by more than `comparison.FAILURE_MARK` on a record."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A prediction and the least and most of it over all ranges.

    Attributes
    ----------
    by_figure
        Of each figure that was moved, what it gave at its low and high end.
    """

    value: float
    low: float
    high: float
    by_figure: dict[str, tuple[float, float]]


def clock_of(rows: Parameters | None, parts: Fitted) -> Durations:
    """Return the clock: the published figures, some of them fitted."""
    changed = {
        USED[row.published]: getattr(parts, row.name)
        for row in fitted_rows()
        if row.published
    }
    return replace(Durations.of(rows), **changed)


@cache
def _steps(found: Kernel) -> tuple[Step, ...]:
    steps = tile(found.trace)
    if found.ring_restarts:
        steps = tuple(restarts(steps, found.stages))
    return tuple(two_warps(steps)) if found.two_warps else steps


def _options(found: Kernel, clock: Durations, unevenness: float) -> Options:
    issued = COPY_CLOCKS - clock.warp_instruction
    early = {"both": issued, "second": clock.smem_load_latency, "": 0.0}
    return Options(
        unevenness=unevenness,
        saved=found.saved,
        to_first_mma=found.to_first_mma,
        to_last_mma=found.to_last_mma,
        copy_clocks=issued if found.copies else 0.0,
        first_half_clocks=early[found.copies],
        memory_share=found.tile_n / workloads()["003"].n,
    )


@cache
def _steady(found: Kernel, clock: Durations, unevenness: float) -> dict[str, float]:
    return steady(_steps(found), clock, _options(found, clock, unevenness))


def spans(found: Kernel, rows: Parameters | None = None) -> tuple[Span, ...]:
    """Return what the MMA warp and one epilogue warp of a kernel do."""
    parts = fitted()
    clock = clock_of(rows, parts)
    return timeline(_steps(found), clock, _options(found, clock, parts.unevenness))


def model(clock: Durations, unevenness: float) -> Predictor:
    """Return a predictor with these durations, and tiles that differ so much."""

    def predictor(switches: tuple[str, ...]) -> Mapping[str, float] | None:
        found = kernel(switches)
        if found is None:
            return None
        cycles = _steady(found, clock, unevenness)
        return cycles | {RUN_TIME: cycles["tile"] * found.tiles}

    return predictor


@cache
def traced_kernel(rows: Parameters | None = None) -> Predictor:
    """Return the model as it is compared, at the published values."""
    return model(clock_of(rows, fitted()), fitted().unevenness)


def left_out(rows: Parameters | None = None) -> dict[str, Predictor]:
    """Return the model without each source of its figures, by what is left out.

    A rate that is left out is no limit, a latency takes no time. The fit stays.
    """
    parts, ideal = fitted(), Durations.ideal()
    clock, found = clock_of(rows, parts), {}
    for what, names in _BY_SOURCE.items():
        changed = {USED[name]: getattr(ideal, USED[name]) for name in names}
        found[what] = model(replace(clock, **changed), parts.unevenness)
    found[_UNEVEN] = model(clock, 0.0)
    return found


def interval(
    new: tuple[str, ...],
    old: tuple[str, ...],
    what: str = RUN_TIME,
    rows: Parameters | None = None,
) -> Interval:
    """Return what switches do to a kernel, as a ratio, with its interval.

    Parameters
    ----------
    new, old
        Switches of the kernel, and of the one that it comes from.
    what
        Of which figure.

    Raises
    ------
    InputError
        There is no such switch.
    """

    def ratio(clock: Durations, unevenness: float) -> float:
        predictor = model(clock, unevenness)
        after, before = predictor(new), predictor(old)
        if after is None or before is None:
            raise InputError(f"{', '.join(new)}: the model knows nothing of it")
        return after[what] / before[what]

    rows, parts = rows or published(), fitted()
    clock = clock_of(rows, parts)
    ends: dict[str, tuple[float, float]] = {}
    for name, of_clock in USED.items():
        row = rows[name]
        if row.low != row.high:
            low, high = (
                ratio(replace(clock, **{of_clock: end}), parts.unevenness)
                for end in (row.low, row.high)
            )
            ends[name] = low, high
    (uneven,) = (row for row in fitted_rows() if not row.published)
    low, high = (ratio(clock, end) for end in (uneven.low, uneven.high))
    ends[uneven.name] = low, high
    value = ratio(clock, parts.unevenness)
    every = [value, *(end for pair in ends.values() for end in pair)]
    return Interval(value, min(every), max(every), ends)
