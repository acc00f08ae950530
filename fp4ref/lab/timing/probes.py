"""probes: what published microbenchmarks did, on the clock.

Nothing is executed: only what a unit takes, by the rules that the machine uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any, Final

from fp4ref.hardware.timing import Durations, Timed
from fp4ref.parameters import Corner, published
from fp4ref.trace import Range

WITHIN: Final = 0.1
ROUNDS: Final = 64
"""Loads of each SM; the first ones are left out."""
_PAGE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A published figure beside the clock's.

    Attributes
    ----------
    published, model
        In `unit`.
    within
        Which share off it may be; None where it is not reproduced, and `remark` says
        why.
    """

    what: str
    published: float
    model: float
    unit: str
    within: float | None
    remark: str = ""

    @property
    def off(self) -> float:
        """Share by which the model is off."""
        return self.model / self.published - 1


def _work(unit: str, operation: str, sm: int, **given: Any) -> SimpleNamespace:
    """One piece of work, as the clock takes it."""
    names = {"ctaid": (0, 0, 0), "operands": {}, "reads": [], "writes": [], "after": ()}
    numbers = {"ready": 0.0, "starts": 0.0, "lands": 0.0, "number": -1, "landed": False}
    known = {"unit": unit, "operation": operation, "sm": sm}
    return SimpleNamespace(**names | numbers | known | given)


def _mma(m: int, n: int, cta_group: int, a_in_tmem: bool = False) -> SimpleNamespace:
    operands = {"idesc": m >> 4 << 24 | n >> 3 << 17, "cta_group": cta_group}
    if a_in_tmem:
        operands["a_tmem"] = 0
    writes = [Range(f"tmem{sm}", 0, 4) for sm in range(cta_group)]
    return _work("tcgen05", "tcgen05.mma", 0, operands=operands, writes=writes)


def interval(
    m: int, n: int, cta_group: int, durations: Durations, *, a_in_tmem: bool = False
) -> float:
    """Return the clocks between the starts of two MMAs that wait for nothing."""
    clock = Timed(durations)
    mmas = [_mma(m, n, cta_group, a_in_tmem) for _ in range(3)]
    for each in mmas:
        clock.serve(each)
    return float(mmas[2].starts - mmas[1].starts)


def mma_latency(
    m: int, n: int, cta_group: int, durations: Durations, count: int = 1
) -> float:
    """Return the clocks of MMAs with their commit and the wait for it."""
    clock, mmas = Timed(durations), [_mma(m, n, cta_group) for _ in range(count)]
    commit = _work("tcgen05", "tcgen05.commit", 0, after=tuple(mmas))
    for each in (*mmas, commit):
        clock.serve(each)
    return float(commit.lands + durations.mbarrier_wake)


def _load(sm: int, at: int, nbytes: int, **given: Any) -> SimpleNamespace:
    return _work(
        "tma",
        "cp.async.bulk.tensor.2d.load",
        sm,
        operands={"tx_bytes": nbytes} | given,
        reads=[Range("gmem", at, nbytes)],
        writes=[Range(f"smem{sm}", 0, nbytes)],
    )


def load_latency(nbytes: int, durations: Durations, *, hot: bool) -> float:
    """Return the clocks of one load until its barrier."""
    clock = Timed(durations)
    if hot:
        clock.serve(first := _load(0, 0, nbytes))
    load = _load(0, 0, nbytes)
    load.ready = first.lands if hot else 0.0
    clock.serve(load)
    return float(load.lands - load.ready)


def load_rate(nbytes: int, durations: Durations, sms: int = 2) -> float:
    """Return the bytes a second of a chip whose SMs each have so many in flight."""
    clock = Timed(durations)
    clock.sms = sms
    turns: list[tuple[float, int, int]] = [(0.0, sm, 0) for sm in range(sms)]
    ends: list[list[float]] = [[] for _ in range(sms)]
    while turns:
        now, sm, count = heappop(turns)
        load = _load(sm, (count * sms + sm) * _PAGE, nbytes)
        load.ready = now
        clock.serve(load)
        ends[sm].append(load.lands)
        if count + 1 < ROUNDS:
            heappush(turns, (load.lands, sm, count + 1))
    half = ROUNDS // 2
    took = max(each[-1] - each[half - 1] for each in ends)
    per_sm = (ROUNDS - half) * nbytes / took
    return float(per_sm * durations.sms * durations.clock)


def multicast_rate(ctas: int, durations: Durations, nbytes: int = 1 << 14) -> float:
    """Return the bytes a second that multicasts of hot bytes bring into all SMs.

    All SMs that clusters of this size can use.
    """
    clock = Timed(durations)
    clock.sms = ctas
    clock.serve(_load(0, 0, nbytes))
    loads = [
        _load(sm, 0, nbytes, cta_mask=(1 << ctas) - 1)
        for _ in range(ROUNDS)
        for sm in range(ctas)
    ]
    for each in loads:
        each.ready = 1e6
        clock.serve(each)
    took = loads[-1].starts - loads[0].starts
    busy = published()[f"sms_in_clusters_of_{ctas}"].at(Corner.PUBLISHED)
    return float((ROUNDS - 1) * nbytes / took * busy * durations.clock)


def published_rows(durations: Durations) -> tuple[Row, ...]:
    """Return published figures of section 3 and 5 beside the clock's.

    Rates and latencies of loads were measured at the boost clock of 1.965 GHz, without
    a slowdown by power.
    """
    boost = Durations.from_dict(durations.to_dict() | _boost(durations))
    found = []
    for m, n, ctas, clocks in MMA_LATENCIES:
        what = f"MMA {m} x {n}{' of a pair' * (ctas == 2)}, commit, wait"
        model = mma_latency(m, n, ctas, durations)
        found.append(Row(what, clocks, model, "clk", WITHIN))
    chain = mma_latency(128, 128, 1, durations, 16)
    what, clocks = "16 MMAs 128 x 128, commit, wait", 16 * 64 + 118
    found.append(Row(what, clocks, chain, "clk", WITHIN))
    cold, hot = (load_latency(2048, boost, hot=each) for each in (False, True))
    found.append(Row("TMA of 2 KiB from memory", 927, cold, "clk", WITHIN))
    found.append(Row("TMA of 2 KiB from L2", 363, hot, "clk", None, _GATHER))
    for kib, rate in LOAD_RATES:
        model = load_rate(kib << 10, boost) / 1e12
        what = f"TMA, {kib} KiB in flight in each SM"
        found.append(Row(what, rate, model, "TB/s", WITHIN))
    for ctas, rate, within, why in MULTICASTS:
        model = multicast_rate(ctas, boost) / 1e12
        what = f"TMA, multicast over {ctas} CTAs"
        found.append(Row(what, rate, model, "TB/s", within, why))
    return tuple(found)


def _boost(durations: Durations) -> dict[str, float]:
    """Return what differs at the clock of the measurements."""
    scale = durations.clock / BOOST
    names = ("l2_bandwidth", "hbm_bandwidth")
    return {"clock": BOOST} | {n: getattr(durations, n) * scale for n in names}


BOOST: Final = 1.965e9
MMA_LATENCIES: Final = (
    (128, 64, 1, 168),
    (128, 128, 1, 200),
    (128, 256, 1, 264),
    (256, 128, 2, 234),
    (256, 256, 2, 298),
)
"""M, N, cta_group and clocks, SemiAnalysisAI/microbench-blackwell 9a068d8: 136 + N / 2
for one SM and 170 + N / 2 for a pair."""
LOAD_RATES: Final = ((4, 1.15), (8, 2.0), (16, 3.6), (32, 5.8), (64, 7.2), (128, 7.2))
"""KiB in flight in each SM and TB/s of the chip, from the same, each 8 % about."""
_GATHER: Final = (
    "measured were 197 ns of a gather4 whose bytes are not given. They are in that "
    "time, and the model adds those of 2 KiB: the 512 of four rows of 128 would be 3 % "
    "more, so 12 % is the most that it can be off"
)
MULTICASTS: Final = (
    (2, 13.1, WITHIN, ""),
    (
        *(4, 8.6, None),
        "132 SMs are busy with clusters of 4, as published, and in the model. What "
        "else slows each of them from 45 bytes a clock to 33 no source says: requests "
        "of TMA and of multicast have no published rate. So the model is a bound",
    ),
)
"""CTAs, TB/s into shared memory, from the same."""
