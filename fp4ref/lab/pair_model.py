"""pair_model: the model of two queues as a predictor, with bands and parts left out.

A prediction is made at the published figures; its interval has the prediction with each
figure at its low and at its high end, all others as they are.
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
from fp4ref.lab.two_queues import steady
from fp4ref.lab.variants import kernel
from fp4ref.parameters import Parameters, published

NAME: Final = "two queues"
USED: Final = {
    "smem_bandwidth": "smem_bandwidth",
    "mma_compute_interval": "mma_column",
    "tma_fill_bandwidth": "tma_fill_bandwidth",
    "first_load_latency": "tma_hbm_latency",
    "smem_load_latency": "smem_load_latency",
    "mma_fill": "mma_fill",
    "mma_pair": "mma_pair",
    "commit_latency": "commit_latency",
    "mbarrier_wake": "mbarrier_wake",
}
"""Parameters that the model takes, and what the clock calls them."""
_BY_SOURCE: Final = {
    "SMEM's width and the MMA's interval": ("smem_bandwidth", "mma_compute_interval"),
    "the rate of fills": ("tma_fill_bandwidth",),
    "the latency of loads": ("first_load_latency",),
    "the latency of shared memory": ("smem_load_latency",),
    "the latency of MMAs, commit and mbarrier": (
        *("mma_fill", "mma_pair", "commit_latency", "mbarrier_wake"),
    ),
}
_FITTED: Final = {
    "that the port is shared": {"port_shared": 0.0},
    "that tiles differ": {"unevenness": 0.0},
}


REASONS: Final = {
    "F12": "an older kernel: what it was before the change is not given, and the model "
    "compares it with the baseline",
    "F17": "that a store of one row's 32 bytes takes a whole slot of L1 is a guess",
    "F19a": "here the next K-loop meets the stores of phase 2B in any case, so giving "
    "back earlier changes little",
    "F23C": "phase 1 of a warp with twice the rows grows too little: the bytes of the "
    "other warps weigh too much in it",
    "F25": "the model's warps are all alike, and the baseline's figure is of one warp",
    "TN128": "each tile begins in stage 0, so the wait for the first stage comes twice "
    "as often; how that older kernel ran its ring is not said",
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


def model(clock: Durations, parts: Fitted) -> Predictor:
    """Return a predictor with these durations and fitted figures."""

    @cache
    def predictor(switches: tuple[str, ...]) -> Mapping[str, float] | None:
        found = kernel(switches)
        if found is None:
            return None
        cycles = steady(found, clock, parts)
        return cycles | {RUN_TIME: cycles["tile"] * found.tiles}

    return predictor


@cache
def two_queues(rows: Parameters | None = None) -> Predictor:
    """Return the model as it is compared, at the published values."""
    return model(Durations.of(rows), fitted())


def left_out(rows: Parameters | None = None) -> dict[str, Predictor]:
    """Return the model without each source of its figures, by what is left out.

    A rate that is left out is no limit, a latency takes no time. The fit stays.
    """
    clock, parts, ideal = Durations.of(rows), fitted(), Durations.ideal()
    found = {}
    for what, names in _BY_SOURCE.items():
        changed = {USED[name]: getattr(ideal, USED[name]) for name in names}
        found[what] = model(replace(clock, **changed), parts)
    for what, changed in _FITTED.items():
        found[what] = model(clock, replace(parts, **changed))
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

    def ratio(clock: Durations, parts: Fitted) -> float:
        predictor = model(clock, parts)
        after, before = predictor(new), predictor(old)
        if after is None or before is None:
            raise InputError(f"{', '.join(new)}: the model knows nothing of it")
        return after[what] / before[what]

    rows = rows or published()
    clock, parts = Durations.of(rows), fitted()
    ends: dict[str, tuple[float, float]] = {}
    for name, of_clock in USED.items():
        row = rows[name]
        if row.low != row.high:
            low, high = (
                ratio(replace(clock, **{of_clock: end}), parts)
                for end in (row.low, row.high)
            )
            ends[name] = low, high
    for each in (row for row in fitted_rows() if row.low != row.high):
        low, high = (
            ratio(clock, replace(parts, **{each.name: end}))
            for end in (each.low, each.high)
        )
        ends[each.name] = low, high
    value = ratio(clock, parts)
    every = [value, *(end for pair in ends.values() for end in pair)]
    return Interval(value, min(every), max(every), ends)
