"""experiments: document 003's records beside three models, as tables.

A figure of a model is the recorded one before the change, times the model's ratio.
"""

from __future__ import annotations

from typing import Any, Final

from fp4ref.lab.comparison import (
    BASELINE_MARK,
    FAILURE_MARK,
    SIGNS,
    Compared,
    all_models,
    baseline_errors,
    compare,
    predict,
    summed,
    without_worst,
)
from fp4ref.lab.doubtful import doubtful_table
from fp4ref.lab.fitted import rows as fitted_rows
from fp4ref.lab.pair_model import NAME, REASONS, interval, left_out, traced_kernel
from fp4ref.lab.records import CYCLES, RUN_TIME, Figure, records
from fp4ref.lab.table import DOCUMENTED, MODEL, MODEL_AND_DOCUMENTED, Table
from fp4ref.lab.variants import VARIANTS
from fp4ref.parameters import Parameters

_OPEN: Final = (
    ("F24, swizzled staging", "F24", ("bf16_arithmetic", "swizzled_staging")),
    ("a ring that runs on (no record)", "", ("running_ring",)),
    ("TN128 with such a ring", "", ("running_ring", "tile_of_128_columns")),
)
"""Predictions that no record can be held against: what, record, switches."""


def experiment_tables(rows: Parameters) -> tuple[Table, ...]:
    """Return every table about the records, in the order of reading."""
    models = all_models(NAME, traced_kernel(rows))
    found = compare(models)
    return (
        _records(),
        _baseline(rows),
        _fitted(),
        _comparison(found),
        _sums(found),
        _others(rows),
        _failures(found),
        _left_out(rows),
        _open(rows),
        doubtful_table(rows),
    )


def _records() -> Table:
    rows, cells = [], []
    for each in records().values():
        figure = each.compared
        change = "" if figure is None else f"{figure.what}: {_change(figure)}"
        rows.append(
            {
                "id": each.id,
                "title": each.title,
                "state": each.state,
                "verdict": each.verdict,
                "starts_from": each.base or "baseline",
                "switches": list(records().switches(each.id)),
                "depends": list(each.depends),
                "rests_on": list(each.rests_on),
                "place": each.place,
                "success": each.success,
                "fail_fast": each.fail_fast,
                "effort": each.effort,
                "rollback": each.rollback,
                "result": each.result,
                "why": each.why,
                "line": each.line,
                "figures": [_figure(figure) for figure in each.figures],
            }
        )
        cells.append((each.id, each.title, each.state, change, each.verdict))
    note = (
        "The figures are the document's, of a B200. Order that it recommends: "
        f"{', '.join(records().order)}."
    )
    headings = ("record", "what changed", "state", "compared figure", "verdict")
    title = "Document 003's experiments"
    return Table(
        "records", title, DOCUMENTED, note, headings, tuple(cells), tuple(rows)
    )


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "what": figure.what,
        "kind": figure.kind,
        "unit": figure.unit,
        "before": figure.before,
        "after": None if figure.after is None else _six(figure.after),
        "compared": figure.compared,
    }


def _baseline(rows: Parameters) -> Table:
    found = baseline_errors(traced_kernel(rows))
    table, cells = [], []
    for name in CYCLES:
        value, off = found[name]
        said = records().cycles[name]
        inside = abs(off) <= BASELINE_MARK
        table.append(
            {
                "count": name,
                "documented": said,
                "model": _six(value),
                "relative_error": _six(off),
                "within_mark": inside,
            }
        )
        verdict = "within 10 %" if inside else "off by more than 10 %"
        cells.append((name, f"{said:,.0f}", f"{value:,.0f}", _off(off), verdict))
    note = "Cycles of a tile, the document's beside the model's."
    headings = ("count", "document, clk", "model, clk", "off by", "mark")
    return Table(
        "baseline",
        "The baseline",
        MODEL_AND_DOCUMENTED,
        note,
        headings,
        tuple(cells),
        tuple(table),
    )


def _fitted() -> Table:
    table, cells = [], []
    for row in fitted_rows():
        span_of = f"{row.low:g} to {row.high:g}" if row.low != row.high else "none"
        table.append(
            {
                "name": row.name,
                "value": row.value,
                "low": row.low,
                "high": row.high,
                "unit": row.unit,
                "fits": row.fits,
                "published": row.published,
                "remark": row.remark,
            }
        )
        cells.append((row.name, f"{row.value:g}", row.unit, span_of, row.fits))
    note = (
        "Four figures that the model has from the baseline, three of them within their "
        "published range. All others are published."
    )
    headings = ("figure", "value", "unit", "searched in", "fits")
    return Table(
        "fitted", "What is fitted", MODEL, note, headings, tuple(cells), tuple(table)
    )


def _comparison(found: tuple[Compared, ...]) -> Table:
    table, cells = [], []
    for each in found:
        said = each.predicted
        table.append(
            {
                "record": each.record.id,
                "figure": _figure(each.figure),
                "models": {
                    name: {
                        "value": _six(p.value),
                        "relative_error": _six(p.error),
                        "said": p.said,
                    }
                    for name, p in said.items()
                },
            }
        )
        figures = (
            f"{_value(p.value, each.figure)} ({p.error:.1%})" for p in said.values()
        )
        cells.append(
            (
                each.record.id,
                each.figure.what,
                _value(_known(each.figure.before), each.figure),
                _value(_known(each.figure.after), each.figure),
                *figures,
            )
        )
    note = (
        "Predicted, and in brackets how far from the record. The list was fixed before "
        "any model was fitted. Times in ms, all else in clk."
    )
    names = tuple(found[0].predicted)
    headings = ("record", "figure", "before", "after", *names)
    title = "Records and predictions"
    return Table(
        "comparison",
        title,
        MODEL_AND_DOCUMENTED,
        note,
        headings,
        tuple(cells),
        tuple(table),
    )


def _sums(found: tuple[Compared, ...]) -> Table:
    table, cells = [], []
    for name in found[0].predicted:
        total, rest = summed(found, name), without_worst(found, name)
        signs = [each.record.id for each in found if each.record.id in SIGNS]
        right = [
            each.record.id
            for each in found
            if each.record.id in SIGNS and each.sign_is_right(name)
        ]
        table.append(
            {
                "model": name,
                "summed_relative_error": _six(total),
                "without_its_worst_record": _six(rest),
                "signs_right": right,
            }
        )
        said = f"{len(right)} of {len(signs)}"
        cells.append((name, f"{total:.3f}", f"{rest:.3f}", said))
    note = (
        "Over all compared records, and without the one on which a model is worst. "
        f"Signs of {', '.join(SIGNS)}."
    )
    headings = ("model", "summed error", "without its worst", "signs")
    title = "Summed relative error"
    return Table(
        "sums", title, MODEL_AND_DOCUMENTED, note, headings, tuple(cells), tuple(table)
    )


def _others(rows: Parameters) -> Table:
    """Figures of the records that are no part of the sum."""
    table, cells = [], []
    predictor = traced_kernel(rows)
    for record in records().values():
        for figure in record.figures:
            usable = figure.what in (*CYCLES, RUN_TIME) and figure.ratio is not None
            if figure.compared or not usable:
                continue
            p = predict(record, figure, predictor)
            before = _known(figure.before)
            table.append(
                {
                    "record": record.id,
                    "figure": _figure(figure),
                    "model_ratio": _six(p.value / before),
                    "said": p.said,
                }
            )
            cells.append(
                (
                    record.id,
                    figure.what,
                    f"{_known(figure.ratio):.2f}",
                    f"{p.value / before:.2f}",
                )
            )
    note = "Other figures of these records, as ratios. They are in no sum."
    headings = ("record", "figure", "recorded", NAME)
    title = "What else the records say"
    return Table(
        "others",
        title,
        MODEL_AND_DOCUMENTED,
        note,
        headings,
        tuple(cells),
        tuple(table),
    )


def _failures(found: tuple[Compared, ...]) -> Table:
    table, cells = [], []
    for each in found:
        error = each.predicted[NAME].error
        if error > FAILURE_MARK:
            why = REASONS.get(each.record.id, "not known")
            table.append(
                {"record": each.record.id, "error": _six(error), "reason": why}
            )
            cells.append((each.record.id, f"{error:.1%}", why))
    note = f"Where {NAME} is off by more than {FAILURE_MARK:.0%}."
    headings = ("record", "off by", "reason")
    return Table(
        "failures", "Failures", MODEL, note, headings, tuple(cells), tuple(table)
    )


def _left_out(rows: Parameters) -> Table:
    every = {"nothing": traced_kernel(rows)} | left_out(rows)
    table, cells = [], []
    for what, predictor in every.items():
        total = summed(compare({what: predictor}), what)
        off = baseline_errors(predictor)
        worst = max(off, key=lambda name: abs(off[name][1]))
        table.append(
            {
                "left_out": what,
                "summed_relative_error": _six(total),
                "worst_baseline_count": worst,
                "baseline_error": _six(off[worst][1]),
            }
        )
        cells.append((what, f"{total:.3f}", worst, f"{off[worst][1]:+.0%}"))
    note = (
        "A rate left out is no limit, a latency takes no time; nothing is fitted anew. "
        "A smaller sum with a broken baseline is luck, mostly in TN128."
    )
    headings = ("left out", "summed error", "worst count of the baseline", "off by")
    title = "Without each source"
    return Table("left_out", title, MODEL, note, headings, tuple(cells), tuple(table))


def _open(rows: Parameters) -> Table:
    table, cells = [], []
    for title, id, new in _OPEN:
        old = records().base_switches(id) if id else ()
        for what in (RUN_TIME, "K-loop"):
            found = interval(new, old, what, rows)
            table.append(
                {
                    "change": title,
                    "switches": list(new),
                    "from": list(old),
                    "figure": what,
                    "ratio": _six(found.value),
                    "low": _six(found.low),
                    "high": _six(found.high),
                    "by_figure": {
                        name: [_six(end) for end in ends]
                        for name, ends in found.by_figure.items()
                    },
                    "taken_for": [VARIANTS[name].reason for name in new],
                }
            )
            low, high = found.low - 1, found.high - 1
            cells.append(
                (title, what, f"{found.value - 1:+.1%}", f"{low:+.1%} to {high:+.1%}")
            )
    note = (
        "Nobody has run these. The interval has every figure at its low and at its "
        "high end, one at a time."
    )
    headings = ("change", "figure", "prediction", "interval")
    title = "Predictions"
    return Table("open", title, MODEL, note, headings, tuple(cells), tuple(table))


def _change(figure: Figure) -> str:
    before, after = _known(figure.before), _known(figure.after)
    return f"{_value(before, figure)} to {_value(after, figure)}"


def _value(value: float, figure: Figure) -> str:
    return f"{value:.3f}" if figure.unit == "ms" else f"{value:,.0f}"


def _known(value: float | None) -> float:
    assert value is not None
    return value


def _off(error: float) -> str:
    """A relative error with its sign; none if it rounds to nothing."""
    said = f"{error:+.1%}"
    return said[1:] if said[1:] == "0.0%" else said


def _six(value: float) -> float:
    """Six digits: what another machine's last bit does not change."""
    return float(f"{value:.6g}")
