"""bounds: the shortest time in which a machine can do a workload, and what binds.

Each resource alone needs a time, and no kernel is faster than the longest of them. The
busiest SM has whole waves of tiles. A MMA is issued every

    II = max(compute, bytes of A and B that one SM reads / bytes of SMEM a clock)

which two of the resources say: "MMA" is the first part, "SMEM" the second. Run at the
slow and the fast end of every published range, a bound becomes a band.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import ceil
from typing import Final

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.lab.workload import K_NBYTES, Workload
from fp4ref.parameters import MAY_BE_ZERO, Corner, Machine, Parameters

RESOURCES: Final = ("MMA", "SMEM", "scale copies", "TMEM", "L2", "GMEM")


@dataclass(frozen=True, slots=True)
class Bound:
    """What each resource of a machine needs for a workload, alone.

    Attributes
    ----------
    seconds
        By resource.
    start
        Seconds that no tile hides: launch, first load, and the end of the last MMAs
        with their accumulator read.
    """

    seconds: dict[str, float]
    start: float

    @property
    def shortest(self) -> float:
        """No kernel takes fewer seconds."""
        return max(self.seconds.values())

    @property
    def binding(self) -> str:
        """Which resource that is; of equal ones the first."""
        return max(self.seconds, key=self.seconds.__getitem__)


@dataclass(frozen=True, slots=True)
class Band:
    """Bounds of one workload at all corners of the published ranges.

    Attributes
    ----------
    low
        Seconds: the bound of the fast corner.
    high
        Seconds: the bound of the slow corner, and its start.
    """

    workload: Workload
    bounds: dict[Corner, Bound]

    @property
    def low(self) -> float:
        """No machine within the ranges is faster."""
        return self.bounds[Corner.FAST].shortest

    @property
    def high(self) -> float:
        """A kernel that keeps the binding resource busy is no slower."""
        slow = self.bounds[Corner.SLOW]
        return slow.shortest + slow.start

    @property
    def holds_record(self) -> bool | None:
        """Whether the record lies in the band; None without one."""
        seconds = self.workload.record_seconds
        return None if seconds is None else self.low <= seconds <= self.high


@dataclass(frozen=True, slots=True)
class Interval:
    """A published interval.

    Attributes
    ----------
    clocks
        Between two MMAs, as published.
    """

    m: int
    n: int
    cta_group: int
    a_in_tmem: bool
    clocks: float


@cache
def published_intervals() -> tuple[Interval, ...]:
    """Return the intervals of ``fp4ref/data/b200_intervals.toml``."""
    text = resources.files("fp4ref.data").joinpath("b200_intervals.toml")
    return tuple(Interval(*r) for r in tomllib.loads(text.read_text("utf-8"))["rows"])


def issue_interval(
    m: int, n: int, cta_group: int, machine: Machine, *, a_in_tmem: bool = False
) -> float:
    """Return the clocks between two MMAs of one kind.

    Parameters
    ----------
    m, n
        Shape of the MMA, of the pair with ``cta_group`` 2.
    a_in_tmem
        Whether A is read from TMEM, and takes nothing of SMEM.

    Raises
    ------
    InputError
        A shape without a published interval.
    """
    if cta_group not in (1, 2) or m not in ((64, 128), (128, 256))[cta_group - 1]:
        raise InputError(
            f"M {m} with cta_group {cta_group}: intervals are published for M = 64 "
            "and 128 of one SM, 128 and 256 of a pair"
        )
    require_integer(n, "N", 8, 256)
    compute, operands = _interval_parts(m, n, cta_group, machine, a_in_tmem)
    return max(compute, operands)


def _interval_parts(
    m: int, n: int, cta_group: int, machine: Machine, a_in_tmem: bool
) -> tuple[float, float]:
    """Return what computing takes, and what reading the operands takes."""
    half = cta_group == 2 and m == 128
    compute = machine.mma_compute_interval * n * (0.5 if half else 1)
    rows = n / cta_group + (0 if a_in_tmem else m / cta_group)
    return compute, rows * K_NBYTES / machine.smem_bandwidth


def bound(work: Workload, machine: Machine) -> Bound:
    """Return the times of a workload on a machine.

    Raises
    ------
    InputError
        A negative figure, or a rate of zero.
    """
    _check(machine)
    places = max(1, int(machine.sms) // work.cta_group)
    waves = ceil(work.tiles / places)
    clock = machine.clock / machine.power_slowdown
    compute, _ = _interval_parts(
        work.tile_m, work.tile_n, work.cta_group, machine, False
    )
    smem = work.mma_read_nbytes + machine.smem_port_shared * work.smem_other_nbytes
    tmem = work.tmem_nbytes / machine.tmem_read_bandwidth
    copies = work.k_tiles * work.scale_atoms * machine.scale_copy_interval
    seconds = {
        "MMA": waves * work.mmas * compute / clock,
        "SMEM": waves * smem / machine.smem_bandwidth / clock,
        "scale copies": waves * copies / clock,
        "TMEM": waves * tmem / clock,
        "L2": work.l2_nbytes / machine.l2_bandwidth,
        "GMEM": work.gmem_nbytes / machine.hbm_bandwidth,
    }
    ends = machine.first_load_latency + machine.mma_end_latency + tmem
    return Bound(seconds, machine.launch + ends / clock)


def band(work: Workload, parameters: Parameters) -> Band:
    """Return the bounds of a workload at all corners."""
    return Band(work, {c: bound(work, parameters.machine(c)) for c in Corner})


def _check(machine: Machine) -> None:
    for name in Machine.__dataclass_fields__:
        value = getattr(machine, name)
        if value < 0 or (value == 0 and name not in MAY_BE_ZERO):
            need = "zero or more" if name in MAY_BE_ZERO else "more than zero"
            raise InputError(f"machine: {name} = {value}: need {need}")
