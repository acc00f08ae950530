"""doubtful: figures of the documents that nobody could check, and what stands in.

An invented figure, or one that contradicts another, has an entry in the errata, or a
bound that is computed here from published figures, or a reason why neither can be.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.lab.bounds import Bound, band, bound, issue_interval
from fp4ref.lab.records import records
from fp4ref.lab.table import MODEL_AND_DOCUMENTED, Table
from fp4ref.lab.workload import Workload, workloads
from fp4ref.parameters import Corner, Parameters, published

FILE: Final = "fp4ref/data/doubtful_figures.toml"
DOCUMENTS: Final = ("000", "002", "003")
_TEXTS: Final = ("document", "where", "figure", "says")
_ANSWERS: Final = ("entries", "bound", "undecided")
_CUBLAS_SECONDS: Final = 0.365e-3


@dataclass(frozen=True, slots=True)
class Span:
    """A bound: from the slow to the fast end of every published range, in `unit`."""

    low: float
    high: float
    unit: str

    def __str__(self) -> str:
        """The span in words, to three digits."""
        low, high = (_short(end) for end in (self.low, self.high))
        return f"{low} {self.unit}" if low == high else f"{low} to {high} {self.unit}"


@dataclass(frozen=True, slots=True)
class Doubtful:
    """One figure.

    Attributes
    ----------
    document, where
        Which document, and its sections.
    figure
        As the document has it.
    says
        What it is taken for.
    entries
        Entries of the errata about it.
    bound
        Name of what stands in, one of `BOUNDS`; empty for none.
    undecided
        Why there is neither; empty if there is one.
    """

    document: str
    where: str
    figure: str
    says: str
    entries: tuple[str, ...]
    bound: str
    undecided: str
    line: int


@cache
def doubtful() -> tuple[Doubtful, ...]:
    """Return the figures of ``fp4ref/data/doubtful_figures.toml``."""
    text = resources.files("fp4ref.data").joinpath("doubtful_figures.toml")
    return read(text.read_text("utf-8"), FILE)


def read(text: str, file: str) -> tuple[Doubtful, ...]:
    """Read figures.

    Raises
    ------
    InputError
        With file and line: no TOML, a field missing, unknown or of another kind, no
        answer, or a bound that is not there.
    """
    try:
        tables = tomllib.loads(text).get("figure", [])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: no TOML: {error}") from None
    heads = [m.start() for m in re.finditer(r"^\[\[figure\]\]", text, re.M)]
    if not isinstance(tables, list) or len(heads) != len(tables):
        raise InputError(f"{file}:1: write each figure as a table [[figure]]")
    lines = [text.count("\n", 0, start) + 1 for start in heads]
    return tuple(_row(t, file, line) for t, line in zip(tables, lines, strict=True))


def _row(table: dict[str, Any], file: str, line: int) -> Doubtful:
    where = f"{file}:{line}: {table.get('figure', 'a row without its figure')}"
    if set(table) - {*_TEXTS, *_ANSWERS} or {*_TEXTS} - set(table):
        raise InputError(f"{where}: need {', '.join(_TEXTS)} and its answer")
    entries = table.get("entries", [])
    texts = [*(table[name] for name in _TEXTS), table.get("bound", "")]
    texts += [
        table.get("undecided", ""),
        *(entries if isinstance(entries, list) else [0]),
    ]
    if not all(isinstance(each, str) for each in texts):
        raise InputError(f"{where}: entries is a list of ids, all else are texts")
    if table["document"] not in DOCUMENTS:
        raise InputError(f"{where}: document: need {', '.join(DOCUMENTS)}")
    name, why = table.get("bound", ""), table.get("undecided", "")
    if name and name not in BOUNDS:
        raise InputError(f"{where}: bound {name!r}: there are {', '.join(BOUNDS)}")
    if bool(why) == bool(entries or name):
        raise InputError(f"{where}: need entries or a bound, or why there is neither")
    rest = {each: table[each] for each in _TEXTS}
    return Doubtful(
        **rest, entries=tuple(entries), bound=name, undecided=why, line=line
    )


def _parameter(
    name: str, unit: str, scale: float = 1.0
) -> Callable[[Parameters], Span]:
    def of(rows: Parameters) -> Span:
        row = rows[name]
        assert row.low is not None
        assert row.high is not None
        return Span(row.low / scale, row.high / scale, unit)

    return of


def _interval(
    m: int, n: int, group: int, mmas: int = 1
) -> Callable[[Parameters], Span]:
    """Clocks of so many MMAs, one after another."""

    def of(rows: Parameters) -> Span:
        ends = [
            mmas * issue_interval(m, n, group, rows.machine(corner))
            for corner in (Corner.FAST, Corner.SLOW)
        ]
        return Span(min(ends), max(ends), "clk")

    return of


def _ends(rows: Parameters, work: Workload) -> tuple[Bound, Bound]:
    """Bounds of a product at the fast and at the slow end."""
    fast, slow = (bound(work, rows.machine(c)) for c in (Corner.FAST, Corner.SLOW))
    return fast, slow


def _tflops_bf16(rows: Parameters) -> Span:
    work = workloads()["bf16-8192"]
    found = band(work, rows)
    return Span(work.flop / found.high / 1e12, work.flop / found.low / 1e12, "TFLOPS")


def _run_time_003(rows: Parameters) -> Span:
    found = band(workloads()["003"], rows)
    return Span(found.low * 1e3, found.high * 1e3, "ms")


def _mma_time_003(rows: Parameters) -> Span:
    fast, slow = _ends(rows, workloads()["003"])
    return Span(fast.seconds["MMA"] * 1e3, slow.seconds["MMA"] * 1e3, "ms, MMAs alone")


def _busy(seconds: float) -> Callable[[Parameters], Span]:
    def of(rows: Parameters) -> Span:
        fast, slow = _ends(rows, workloads()["003"])
        low, high = (100 * each.seconds["MMA"] / seconds for each in (fast, slow))
        return Span(low, high, "% of its run time")

    return of


def _peak_of_an_sm(rows: Parameters) -> Span:
    flop = 2 * 128 * 128 * 64
    rates = []
    for corner in (Corner.SLOW, Corner.FAST):
        machine = rows.machine(corner)
        clocks = issue_interval(128, 128, 1, machine)
        rates.append(flop / clocks * machine.clock / machine.power_slowdown / 1e12)
    return Span(min(rates), max(rates), "TFLOPS at most, NVFP4")


def _tmem_read_003(rows: Parameters) -> Span:
    work = workloads()["003"]
    row = rows["tmem_read_bandwidth"]
    assert row.low is not None
    assert row.high is not None
    return Span(work.tmem_nbytes / row.high, work.tmem_nbytes / row.low, "clk")


def _l1_busy_003(rows: Parameters) -> Span:
    """Share of a tile that its bytes take, without and with additions and stores."""
    work, tile = workloads()["003"], records().cycles["tile"]
    rate = rows.machine(Corner.PUBLISHED).smem_bandwidth
    inside = work.mma_read_nbytes + work.smem_other_nbytes
    return Span(
        100 * inside / rate / tile,
        100 * (inside + 2 * work.d_nbytes) / rate / tile,
        "% of a tile, by its bytes",
    )


BOUNDS: Final[dict[str, Callable[[Parameters], Span]]] = {
    "clock": _parameter("clock", "GHz", 1e9),
    "load_latency": _parameter("first_load_latency", "clk from memory"),
    "l2_capacity": _parameter("l2_capacity", "MB", 1e6),
    "mma_interval_of_one_sm": _interval(128, 128, 1),
    "mma_interval_of_a_pair": _interval(256, 256, 2),
    "mmas_of_a_tile": _interval(128, 128, 1, 32),
    "mmas_of_a_tile_003": _interval(256, 256, 2, 24),
    "peak_of_an_sm": _peak_of_an_sm,
    "tflops_bf16": _tflops_bf16,
    "run_time_003": _run_time_003,
    "mma_time_003": _mma_time_003,
    "busy_003": _busy(records().run_time / 1e3),
    "busy_cublas": _busy(_CUBLAS_SECONDS),
    "tmem_read_003": _tmem_read_003,
    "l1_busy_003": _l1_busy_003,
}


def span(name: str, rows: Parameters | None = None) -> Span:
    """Return what stands in for a figure.

    Raises
    ------
    KeyError
        There is no such bound.
    """
    return BOUNDS[name](rows or published())


def doubtful_table(rows: Parameters) -> Table:
    """Return every figure with what stands in for it."""
    table, cells = [], []
    for each in doubtful():
        stands = str(span(each.bound, rows)) if each.bound else ""
        table.append(
            {
                "document": each.document,
                "where": each.where,
                "figure": each.figure,
                "says": each.says,
                "entries": list(each.entries),
                "bound": stands,
                "undecided": each.undecided,
                "line": each.line,
            }
        )
        answer = [*(each.entries and [f"errata {', '.join(each.entries)}"])]
        answer += [text for text in (stands, each.undecided) if text]
        what = f"{each.figure}: {each.says}"
        cells.append((each.document, each.where, what, "; ".join(answer)))
    note = (
        "Figures that are invented, contradict another, or that nobody could check: an "
        "entry of the errata, a bound from published figures, or why there is neither."
    )
    headings = ("document", "section", "figure", "what stands in")
    title = "Doubtful figures"
    return Table(
        "doubtful",
        title,
        MODEL_AND_DOCUMENTED,
        note,
        headings,
        tuple(cells),
        tuple(table),
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
