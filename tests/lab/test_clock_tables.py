"""clock_tables: the clock beside published rows, and what its tables add up to."""

from __future__ import annotations

import pytest

from fp4ref.hardware.timing import Durations
from fp4ref.lab.bounds import published_intervals
from fp4ref.lab.clock_tables import MACHINES, clock_tables, recorded
from fp4ref.lab.timing.probes import interval, published_rows
from fp4ref.lab.timing.replay import Replay
from fp4ref.parameters import published
from fp4ref.trace.timeline import is_mma, shares

TABLES = {table.id: table for table in clock_tables(published())}


@pytest.mark.parametrize("row", published_intervals(), ids=str)
def test_the_clock_issues_mmas_at_every_published_interval(row) -> None:
    shape = row.m, row.n, row.cta_group
    found = interval(*shape, Durations.of(), a_in_tmem=row.a_in_tmem)
    assert found == pytest.approx(row.clocks, abs=0.05 if row.cta_group == 1 else 4)


@pytest.mark.parametrize("row", published_rows(Durations.of()), ids=lambda r: r.what)
def test_published_rows_are_within_ten_percent_or_say_why_not(row) -> None:
    if row.within is None:
        assert row.remark
        assert abs(row.off) > 0.1
    else:
        assert abs(row.off) <= row.within <= 0.1


def test_three_nvfp4_products_lie_in_the_band() -> None:
    rows = TABLES["clock_sizes"].rows
    assert len(rows) == 3
    for row in rows:
        seconds = row["seconds"]
        assert seconds["fast"] < seconds["published"] < seconds["slow"]
        assert seconds["fast"] <= row["record_seconds"] <= seconds["slow"]
        assert row["record_in_band"]


def test_loads_and_mmas_overlap_on_both_sms_and_tiles_are_spread() -> None:
    trace = recorded().trace
    assert [each.sm for each in shares(trace)] == [0, 1]
    assert all(each.both > 0.5 for each in shares(trace))
    tiles = [event.sm for event in trace if event.operation == "mma.exit"]
    assert abs(tiles.count(0) - tiles.count(1)) <= 1
    counts = [sum(is_mma(e) and e.sm == sm for e in trace) for sm in (0, 1)]
    assert counts[0] == counts[1]


def test_the_tables_add_up() -> None:
    whole = Replay(recorded()).end
    assert sum(row["clocks"] for row in TABLES["clock_path"].rows) <= whole * (1 + 1e-9)
    for row in TABLES["clock_shares"].rows:
        parts = (row[name] for name in ("both", "loads", "mmas", "neither"))
        assert sum(parts) == pytest.approx(1)
    for row in TABLES["clock_machines"].rows:
        assert (row["machines"], row["slower"]) == (MACHINES, 0)
        assert 0 <= row["mean_gain"] <= row["most_gain"] < 1
