"""report: every table of the laboratory, with what kind of figure it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from fp4ref.lab import compiled_003
from fp4ref.lab.banks import Access, access
from fp4ref.lab.bounds import (
    RESOURCES,
    Band,
    band,
    issue_interval,
    published_intervals,
)
from fp4ref.lab.clock_tables import clock_tables
from fp4ref.lab.compiled import compiled_tables
from fp4ref.lab.experiments import experiment_tables
from fp4ref.lab.request import Request
from fp4ref.lab.staging import STAGINGS, fits
from fp4ref.lab.table import (
    DOCUMENTED,
    MODEL,
    MODEL_AND_DOCUMENTED,
    MODEL_AND_H200,
    MODEL_AND_MEASURED,
    Table,
)
from fp4ref.lab.workload import Workload, workloads
from fp4ref.layout import SwizzleMode, swizzled_offsets
from fp4ref.parameters import Corner, Machine

_DIGITS: Final = ".123456789abcdefghijklmnopqrstuvw"


def tables(request: Request) -> tuple[Table, ...]:
    """Return every table, in the order of reading."""
    bands = [band(work, request.parameters) for work in workloads().values()]
    found = [
        _parameters(request),
        _intervals(request.parameters.machine(Corner.PUBLISHED)),
        _bytes(list(workloads().values())),
        _bounds(bands),
        _resources(bands),
        _stagings(),
        _patterns(
            "kernel_banks",
            "This kernel's own accesses",
            "Rows of an epilogue warp, swizzled as TMA has them.",
            list(kernel_accesses()),
        ),
        _fits(),
        *compiled_tables(),
        compiled_003.table(),
        *clock_tables(request.parameters),
        *experiment_tables(request.parameters),
    ]
    if request.patterns:
        found.append(
            _patterns("banks", "Your patterns", _PHASES, list(request.patterns))
        )
    return tuple(found)


_PHASES: Final = (
    "Phases of 32, 16 or 8 lanes for 4, 8 or 16 bytes a lane, twice as many in a load "
    "whose lanes agree in pairs: an H200 counted so; it is in no PTX text."
)


def by_bank(found: Access) -> str:
    """Draw an access in text: a line a phase, a sign a bank, the words it gives."""
    lines = ["lanes, bank 0   4   8   12  16  20  24  28"]
    for phase in found.phases:
        if phase.lanes:
            signs = "".join(_DIGITS[count] for count in phase.words)
            lanes = f"{phase.lanes[0]}-{phase.lanes[-1]}"
            passes = f"{phase.passes} pass{'es' * (phase.passes > 1)}"
            lines.append(f"{lanes:12}{signs}  {passes}")
    return "\n".join(lines)


def kernel_accesses() -> Iterator[tuple[str, Access]]:
    """Yield accesses of this kernel's epilogue: own rows written, one row read."""
    for span in (32, 64, 128):
        at = swizzled_offsets(SwizzleMode.of_span(span), 32, span)
        rows = [int(offset) for offset in at[:, 0]]
        yield f"{span} bytes, a lane writes 16", access(rows, 16)
    row = [int(offset) for offset in at[0, ::4]]
    yield "128 bytes, a lane reads 4", access(row, 4, load=True)


def _parameters(request: Request) -> Table:
    rows, cells = [], []
    for each in request.parameters.values():
        names = ("name", "value", "low", "high", "unit", "card", "trust", "source")
        rows.append({n: getattr(each, n) for n in (*names, "remark", "line")})
        span = "do not use"
        if each.value is not None:
            span = f"{each.value:g}"
            if each.low != each.high:
                span += f" ({each.low:g} to {each.high:g})"
        cells.append((each.name, span, each.unit, f"{each.card} {each.trust}"))
    note = "Trust: A checked tables, B one source, C weak, D derived, X do not use."
    headings = ("parameter", "value (range)", "unit", "card, trust")
    title = "Published figures of a B200"
    return Table(
        "parameters", title, DOCUMENTED, note, headings, tuple(cells), tuple(rows)
    )


def _intervals(machine: Machine) -> Table:
    rows, cells = [], []
    for each in published_intervals():
        shape = (each.m, each.n, each.cta_group)
        clocks = issue_interval(*shape, machine, a_in_tmem=each.a_in_tmem)
        rows.append(asdict(each) | {"model_clocks": clocks})
        where = "TMEM" if each.a_in_tmem else "SMEM"
        off = f"{clocks - each.clocks:+.1f}" if clocks != each.clocks else "0"
        cells.append((*map(str, shape), where, f"{each.clocks:g}", f"{clocks:g}", off))
    note = (
        "max(compute, operand bytes / 128) beside what was published of a B200. K and "
        "the kind do not enter."
    )
    headings = ("M", "N", "cta_group", "A in", "published, clk", "model, clk", "off by")
    title = "Clocks between two MMAs"
    kind = MODEL_AND_DOCUMENTED
    return Table("intervals", title, kind, note, headings, tuple(cells), tuple(rows))


def _bytes(works: list[Workload]) -> Table:
    rows = [
        {
            "workload": w.name,
            "what": w.what,
            "shape": [w.m, w.n, w.k],
            "tile": [w.tile_m, w.tile_n],
            "cta_group": w.cta_group,
            "tiles": w.tiles,
            "stages": w.stages,
            "mmas_a_tile": w.mmas,
            "smem_mma_read_nbytes": w.mma_read_nbytes,
            "smem_other_nbytes": w.smem_other_nbytes,
            "tmem_nbytes": w.tmem_nbytes,
            "l2_nbytes": w.l2_nbytes,
            "gmem_nbytes": w.gmem_nbytes,
            "remark": w.remark,
        }
        for w in works
    ]
    cells = [
        (
            w.name,
            f"{w.tiles:,}",
            f"{w.stages:,}",
            str(w.mmas),
            f"{(w.mma_read_nbytes + w.smem_other_nbytes) / 1024:,.0f}",
            f"{w.tmem_nbytes / 1024:,.0f}",
            f"{w.l2_nbytes / 1e6:,.1f}",
            f"{w.gmem_nbytes / 1e6:,.1f}",
        )
        for w in works
    ]
    note = (
        "SMEM and TMEM: KiB of one SM and tile. L2 and GMEM: MB of the whole product; "
        "L2 without multicast or merged loads, GMEM each byte once."
    )
    headings = ("workload", "tiles", "stages", "MMAs", "SMEM", "TMEM", "L2", "GMEM")
    title = "Bytes by level"
    return Table("bytes", title, MODEL, note, headings, tuple(cells), tuple(rows))


def _bounds(bands: list[Band]) -> Table:
    rows, cells = [], []
    for each in bands:
        work, bounds = each.workload, each.bounds
        rows.append(
            {
                "workload": work.name,
                "low_seconds": each.low,
                "high_seconds": each.high,
                "binding": {c.value: b.binding for c, b in bounds.items()},
                "bound_seconds": {c.value: b.shortest for c, b in bounds.items()},
                "start_seconds": {c.value: b.start for c, b in bounds.items()},
                "record_seconds": work.record_seconds,
                "record_source": work.record_source,
                "record_in_band": each.holds_record,
            }
        )
        record, inside = "none", "none"
        if work.record_seconds is not None:
            record = _us(work.record_seconds)
            inside = "inside" if each.holds_record else "outside"
        binding = dict.fromkeys(bounds[c].binding for c in reversed(Corner))
        span = f"{_us(each.low)} to {_us(each.high)}"
        cells.append((work.name, span, ", ".join(binding), record, inside))
    note = (
        "Microseconds: from the bound of the fast end of every range to that of the "
        "slow end with its start. Binds: at the fast end, published, slow end."
    )
    headings = ("workload", "band, us", "binds", "record, us", "record is")
    title = "Shortest times"
    kind = MODEL_AND_MEASURED
    return Table("bounds", title, kind, note, headings, tuple(cells), tuple(rows))


def _resources(bands: list[Band]) -> Table:
    rows, cells = [], []
    for each in bands:
        fast, slow = each.bounds[Corner.FAST], each.bounds[Corner.SLOW]
        for name in fast.seconds:
            low, high = fast.seconds[name], slow.seconds[name]
            rows.append(
                {
                    "workload": each.workload.name,
                    "resource": name,
                    "low_seconds": low,
                    "high_seconds": high,
                }
            )
        spans = [f"{_us(fast.seconds[n])}-{_us(slow.seconds[n])}" for n in fast.seconds]
        cells.append((each.workload.name, *spans))
    headings = ("workload", *RESOURCES)
    note = "Microseconds that each resource alone needs, at both ends."
    title = "What each resource needs"
    return Table("resources", title, MODEL, note, headings, tuple(cells), tuple(rows))


def _stagings() -> Table:
    rows, cells = [], []
    for each in STAGINGS:
        writes = [w.passes for w in each.writes]
        reads = [r.passes for r in each.reads]
        first = each.write(0)
        rows.append(
            {
                "staging": each.name,
                "write_passes": writes,
                "read_passes": reads,
                "fewest_write": first.fewest,
                "first_write": first.to_dict(),
                "nbytes": each.nbytes,
            }
        )
        lanes, size = str(first.most_lanes), f"{each.nbytes:,}"
        cells.append((each.name, lanes, _span(writes), _span(reads), size))
    note = (
        "Document 003: a lane writes 16 bytes of its row, a warp reads a row. Without "
        "conflict a write takes 4 passes and a read 2. An H200 counted as many of "
        "each write and read. " + _PHASES
    )
    headings = ("staging", "lanes in one bank", "write", "read", "bytes")
    title = "Passes of document 003's staging"
    return Table(
        "staging", title, MODEL_AND_H200, note, headings, tuple(cells), tuple(rows)
    )


def _patterns(
    id: str, title: str, note: str, patterns: list[tuple[str, Access]]
) -> Table:
    rows = [{"pattern": name} | found.to_dict() for name, found in patterns]
    cells = [
        (name, str(a.width), str(a.passes), str(a.fewest), str(a.most_lanes))
        for name, a in patterns
    ]
    headings = ("pattern", "bytes a lane", "passes", "fewest", "lanes in one bank")
    return Table(id, title, MODEL, note, headings, tuple(cells), tuple(rows))


def _fits() -> Table:
    found = fits()
    cells = [
        (
            str(f.stages),
            f"{f.staging_nbytes:,}",
            f"{f.nbytes:,}",
            f"fits, {f.left:,} left" if f.fits else f"refused, {-f.left:,} too many",
        )
        for f in found
    ]
    note = "Stages of 32,768 bytes in the 232,448 that PTX gives a CTA."
    headings = ("stages", "staging", "together", "result")
    title = "Document 003's shared memory"
    rows = tuple(f.to_dict() for f in found)
    return Table("smem", title, MODEL, note, headings, tuple(cells), rows)


def _us(seconds: float) -> str:
    us = 1e6 * seconds
    return f"{us:,.{2 if us < 10 else 1 if us < 100 else 0}f}"


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
