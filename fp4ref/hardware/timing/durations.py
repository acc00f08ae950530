"""durations: how long each thing takes on the model's clock, in clocks of an SM.

Every number is a row of ``fp4ref/data/b200_parameters.toml`` by the same name, or
follows from one: rates of the whole chip become bytes a clock of one SM.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Final, Self

from fp4ref.errors import InputError
from fp4ref.parameters import Corner, Parameters, published

RATES: Final = (
    "clock",
    "sms",
    "smem_bandwidth",
    "tmem_load_bandwidth",
    "tma_fill_bandwidth",
    "l2_bandwidth",
    "hbm_bandwidth",
)
"""Fields that divide: they must be more than zero, and more of them is faster."""


@dataclass(frozen=True, slots=True)
class Durations:
    """What the clock of ``schedule="timed"`` is made of. All but the rates are clocks.

    A field may be an array of many values instead of a number: the replay of a trace
    (`fp4ref.lab.timing`) then has as many times of every event.

    Attributes
    ----------
    clock
        Hz, with the slowdown by power.
    sms
        Of the chip, whose L2 and memory the emulated SMs have their share of.
    smem_bandwidth, tmem_load_bandwidth, tma_fill_bandwidth, l2_bandwidth, hbm_bandwidth
        Bytes a clock, of one SM; of TMEM, of one warp.
    smem_port_shared
        Share of fills, staging and scales that takes a slot of the MMA's reads.
    mma_column
        A MMA's interval for each column of N.
    mma_fill, mma_pair
        What it takes beyond its interval, and what that of a pair takes more.
    scale_copy
        ``tcgen05.cp`` of one scale atom; copies and MMAs overlap.
    commit_latency, mbarrier_wake, remote_arrive
        From the last MMA to the arrival, from there to a waiter, and to another CTA.
    tma_l2_latency, tma_hbm_latency
        A load until its barrier, beyond its bytes: of bytes loaded before, and not.
    store_read_latency, store_write_latency
        A TMA store until its shared memory is read, and until it is written.
    warp_instruction, epilogue_element
        Of a warp: any operation, and arithmetic on one loaded accumulator element.
    cta_start
        From the exit of a CTA to the start of the next on its SM.
    launch
        Until the first instruction: no event has it.
    """

    clock: Any
    sms: Any
    smem_bandwidth: Any
    tmem_load_bandwidth: Any
    tma_fill_bandwidth: Any
    l2_bandwidth: Any
    hbm_bandwidth: Any
    smem_port_shared: Any
    mma_column: Any
    mma_fill: Any
    mma_pair: Any
    scale_copy: Any
    commit_latency: Any
    mbarrier_wake: Any
    remote_arrive: Any
    named_barrier: Any
    cluster_barrier: Any
    tmem_load_latency: Any
    tmem_store_latency: Any
    tmem_store_interval: Any
    tmem_wait: Any
    tmem_alloc: Any
    fence_proxy_async: Any
    smem_load_latency: Any
    stmatrix_interval: Any
    global_load_latency: Any
    tma_l2_latency: Any
    tma_hbm_latency: Any
    store_read_latency: Any
    store_write_latency: Any
    clc_latency: Any
    warp_instruction: Any
    epilogue_element: Any
    cta_start: Any
    launch: Any

    @classmethod
    def of(
        cls, rows: Parameters | None = None, corner: Corner = Corner.PUBLISHED
    ) -> Self:
        """Return the durations at one corner of the published ranges."""
        rows = rows or published()

        def at(name: str) -> float:
            return rows[name].at(corner)

        clock, sms = at("clock") / at("power_slowdown"), at("sms")
        special = {
            "clock": clock,
            "sms": sms,
            "tmem_load_bandwidth": at("tmem_read_bandwidth") / 4,
            "l2_bandwidth": at("l2_bandwidth") / sms / clock,
            "hbm_bandwidth": at("hbm_bandwidth") / sms / clock,
            "mma_column": at("mma_compute_interval"),
            "scale_copy": at("scale_copy_interval"),
            "tma_hbm_latency": at("first_load_latency"),
            "launch": at("launch") * clock,
        }
        others = {f.name for f in fields(cls)} - set(special)
        return cls(**special, **{name: at(name) for name in others})

    @classmethod
    def ideal(cls, **changed: float) -> Self:
        """Return a machine of which nothing takes time, but what is `changed`.

        Raises
        ------
        InputError
            There is no such field, or it has a value that it cannot have.
        """
        fastest = {f.name: 1e30 if f.name in RATES else 0.0 for f in fields(cls)}
        return cls.from_dict(fastest | {"clock": 1e9, "sms": 1.0} | changed)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make them of numbers by name, as `to_dict` gives them.

        Raises
        ------
        InputError
            A name is missing or unknown, or a number is negative, not finite, or a
            rate of zero.
        """
        names = {f.name for f in fields(cls)}
        if wrong := sorted(names ^ set(values)):
            word = "missing" if wrong[0] in names else "unknown"
            raise InputError(
                f"durations: {wrong[0]!r:.60} is {word}; they are "
                f"{', '.join(f.name for f in fields(cls))}"
            )
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"durations: {name} = {value!r:.60}: need a number")
            least = "more than zero" if name in RATES else "zero or more"
            if not isfinite(value) or value < 0 or (value == 0 and name in RATES):
                raise InputError(f"durations: {name} = {value}: need {least}")
        return cls(**values)

    def changed(self, **values: float) -> Self:
        """Return a copy with some of them changed.

        Raises
        ------
        InputError
            As `from_dict`.
        """
        return self.from_dict(asdict(self) | values)

    def to_dict(self) -> dict[str, Any]:
        """Numbers by name."""
        return asdict(self)
