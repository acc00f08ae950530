"""The traced kernel: limits that can be worked out, its trace, its fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources

import ml_dtypes
import numpy as np
import pytest
from gemm_timed import ran

import fp4ref
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.timing import Durations
from fp4ref.lab.document_003 import TABLE, variant
from fp4ref.lab.fitted import FILE, Fitted, fitted, read, rows
from fp4ref.lab.pair_model import clock_of, model
from fp4ref.lab.records import CYCLES, records
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.traced import recorded
from fp4ref.lab.traced.changes import restarts, two_warps
from fp4ref.lab.traced.events import run, table
from fp4ref.lab.traced.events_jit import left_of, work_off
from fp4ref.lab.traced.recorded import NAMES, tile
from fp4ref.lab.traced.steady import Options, steady
from fp4ref.lab.traced.tile import Step, from_dict, of_trace, to_dict
from fp4ref.lab.variants import NARROW, VARIANTS, kernel
from fp4ref.lab.workload import workloads
from fp4ref.parameters import published

BASE = tile("baseline")


# -- its trace -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == NARROW else pytest.mark.soak)
        for name in NAMES
    ],
)
def test_the_recorded_tile_is_that_of_the_trace(name: str) -> None:
    """Run ``python -m fp4ref.lab.traced.recorded`` after a change of these kernels."""
    assert recorded.traced(name) == list(tile(name))


@cache
def small(clock: Durations) -> fp4ref.Trace:
    """Seven tiles of a small kernel on one SM, stored without TMA."""
    fields = {"operand_format": "e4m3", "d_format": "bf16", "tile_n": 128, "stages": 2}
    fields |= {"scheduler": "static", "staging": "padded"}
    fusion = variant("baseline").epilogue.fusion
    config = GemmConfig.nvfp4(**fields, fusion=fusion)
    a, b = (np.zeros((rows, 384), ml_dtypes.float8_e4m3fn) for rows in (7 * 128, 128))
    table = {TABLE: np.zeros((1, 128), ml_dtypes.bfloat16)}
    trace = fp4ref.run(
        a, b, config=config, arguments=table, sms=1, schedule=clock, trace=True
    ).trace
    assert trace is not None
    return trace


def test_a_tile_that_is_repeated_takes_what_the_machine_takes() -> None:
    """Cut from a trace of slow loads, and asked for the published ones."""
    clock = Durations.of().changed(smem_bandwidth=1e30)
    steps = of_trace(Graph(small(clock.changed(tma_fill_bandwidth=2.0))))
    times = run(table(steps, clock, sms=1), np.ones((40, len(steps))))
    commits = [p for p, s in enumerate(steps) if s.operation == "tcgen05.commit"]
    *_, last = [place for place in commits if steps[place].is_work]
    ends = [
        event.end
        for event in small(clock)
        if event.kind == "land" and event.operation == "tcgen05.commit"
    ][3::4]
    assert len(ends) == 7
    # Two tiles, because a ring of two stages has three of each tile.
    found = (times.ended[-10, last] - times.ended[-14, last]) / 4
    assert found == pytest.approx((ends[-2] - ends[-4]) / 2, rel=0.01)


def test_a_trace_of_few_tiles_is_refused() -> None:
    with pytest.raises(InputError, match=r"tiles of a pair; need 5 or more"):
        of_trace(Graph(ran("clc", "emulator", "timed").trace))


def test_a_step_is_the_same_from_its_file() -> None:
    assert [from_dict(to_dict(step)) for step in BASE] == list(BASE)


def test_the_tile_has_the_documents_mmas_bytes_and_rows() -> None:
    work = workloads()["003"]
    count = [step.operation for step in BASE if step.is_work]
    assert count.count("tcgen05.mma") == 24
    assert count.count("tcgen05.commit") == work.k_tiles + 1
    loads = [
        s.operands["tx_bytes"] for s in BASE if s.is_work and "load" in s.operation
    ]
    assert sum(loads) == 2 * work.k_tiles * work.operand_nbytes
    stores = [p for s in BASE for p in s.parts if p.operation == "st.global"]
    assert sum(p.times * p.operands["nbytes"] for p in stores) == 2 * work.d_nbytes


def test_a_direct_store_touches_a_line_of_each_row() -> None:
    stores = [
        part
        for step in tile("F17, direct stores")
        for part in step.parts
        if part.operation == "st.global"
    ]
    assert {part.lines for part in stores} == {32}
    assert {p.lines for s in BASE for p in s.parts if p.operation == "st.global"} == {2}


# -- limits --------------------------------------------------------------------------


def ideal(**changed: float) -> dict[str, float]:
    return steady(BASE, Durations.ideal(**changed), Options())


def test_mmas_alone_take_their_interval() -> None:
    found = ideal(mma_column=0.5, smem_bandwidth=128)
    assert found["tile"] == pytest.approx(24 * 128)


def test_loads_alone_take_their_bytes() -> None:
    assert ideal(tma_fill_bandwidth=16)["tile"] == pytest.approx(6 * 32_768 / 16)


def test_l1_alone_takes_the_lines_of_four_warps() -> None:
    """What is added, staged, read and stored: 64 KiB each."""
    assert ideal(smem_bandwidth=16)["tile"] == pytest.approx(4 * 65_536 / 16)


def test_an_epilogue_alone_takes_its_elements_and_two_warps_twice_as_long() -> None:
    found = ideal(epilogue_element=10)
    assert found["tile"] == pytest.approx(2560)
    assert found["phase 1"] == found["epi wait"] == pytest.approx(2560)
    clock = Durations.ideal(epilogue_element=10)
    assert steady(two_warps(BASE), clock, Options())["tile"] == pytest.approx(5120)


def test_rows_of_phase_2b_are_loads_one_after_another() -> None:
    assert ideal(smem_load_latency=29)["phase 2B"] == 32 * 29


def test_uneven_tiles_make_both_sides_wait() -> None:
    clock = Durations.ideal(smem_bandwidth=1e30, mma_column=0.5, epilogue_element=12)
    even, uneven = (steady(BASE, clock, Options(unevenness=c)) for c in (0, 0.2))
    assert even["tile"] == pytest.approx(3072)
    assert uneven["tile"] > 1.05 * even["tile"]
    assert min(uneven["epi wait"], uneven["ml wait"]) > 50


def test_a_lean_mma_warp_is_quicker_only_if_it_is_late() -> None:
    late = Options(to_first_mma=300, to_last_mma=400)
    clock = Durations.ideal(mma_column=0.5)
    assert steady(BASE, clock, late)["tile"] >= 6 * 700
    assert steady(BASE, clock, Options(to_first_mma=9, to_last_mma=9))["tile"] == 3072


def test_the_loop_is_the_same_without_the_compiler() -> None:
    found = table(tile("F12, TN=128, 6 stages"), Durations.of())
    ones = np.ones((4, found.took.size))
    compiled = work_off(found, ones, left_of(found.before_first, found.before_back, 4))
    left = left_of.py_func(found.before_first, found.before_back, 4)
    plain = work_off.py_func(found, ones, left)
    for one, other in zip(compiled, plain, strict=True):
        assert (one == other).all()


# -- what the document's kernels do otherwise ----------------------------------------


def waited(steps: list[Step], sm: int) -> list[tuple[int, int]]:
    """Of each load of a tile: which stage's MMAs it waits for, how many tiles back."""
    commits = [p for p, s in enumerate(steps) if s.operation == "tcgen05.commit"]
    commits = [p for p in commits if steps[p].is_work]
    found = [
        (commits.index(edge.step), edge.back)
        for step in steps
        if step.sm == sm and step.agent == "warp0"
        for edge in step.edges
        if edge.step in commits
    ]
    least = min(back for _, back in found)
    return [(k, back - least) for k, back in found]


@pytest.mark.parametrize("sm", [0, 1])
def test_a_ring_that_begins_anew_waits_for_the_last_mmas_of_its_stage(sm: int) -> None:
    runs_on = [(2, 1), (3, 1), (4, 1), (5, 1), (0, 0), (1, 0)]
    anew = [(4, 1), (5, 1), (2, 1), (3, 1), (0, 0), (1, 0)]
    assert waited(list(BASE), sm) == runs_on
    assert waited(restarts(BASE, 4), sm) == anew


@pytest.mark.parametrize("sm", [0, 1])
def test_a_ring_of_six_stages_begins_anew_anyway(sm: int) -> None:
    six = tile("F12, TN=128, 6 stages")
    assert restarts(six, 6) == list(six)


def test_a_pair_has_147_of_the_tiles_and_twice_as_many_of_half_of_it() -> None:
    base, narrow = kernel(()), kernel(("tile_of_128_columns",))
    assert base is not None
    assert narrow is not None
    assert (base.tiles, narrow.tiles) == (147, 294)
    assert (base.stages, narrow.stages) == (4, 4)


def test_every_switch_of_a_record_is_known_or_refused_with_a_reason() -> None:
    for id in records():
        for name in (*records().switches(id), *records().base_switches(id)):
            assert VARIANTS[name].reason
    assert kernel(("six_epilogue_warps",)) is None
    assert kernel(("six_stages",)) is None
    with pytest.raises(InputError, match=r"^switch 'none': there is none; there are"):
        kernel(("none",))


# -- its fit -------------------------------------------------------------------------


def worst(**changed: float) -> float:
    """Largest error over the seven counts."""
    parts = replace(fitted(), **changed)
    found = model(clock_of(None, parts), parts.unevenness)(())
    assert found is not None
    return max(abs(found[name] / records().cycles[name] - 1) for name in CYCLES)


STEPS = {
    "first_load_latency": 10,
    "epilogue_element": 0.05,
    "unevenness": 0.01,
    "smem_load_latency": 1,
}


def test_no_neighbour_fits_the_baseline_better() -> None:
    """The stored fit is the best of its grid, as far as one step."""
    best, parts = worst(), fitted()
    assert best < 0.1
    for row in rows():
        for step in (-STEPS[row.name], STEPS[row.name]):
            value = getattr(parts, row.name) + step
            if row.low <= value <= row.high:
                assert worst(**{row.name: value}) > best, (row.name, value)


@pytest.mark.soak
def test_nothing_of_a_wide_grid_fits_better() -> None:
    def grid() -> Iterator[dict[str, float]]:
        for latency in range(1200, 1401, 10):
            for element in range(20, 29):
                for uneven in range(18, 31):
                    yield {
                        "first_load_latency": latency,
                        "epilogue_element": element / 20,
                        "unevenness": uneven / 100,
                    }

    found = min(grid(), key=lambda each: worst(**each))
    assert found == {name: getattr(fitted(), name) for name in found}


def test_a_fit_stays_within_its_published_range() -> None:
    for row in rows():
        if row.published:
            asked = published()[row.published]
            assert (row.low, row.high) == (asked.low, asked.high)
    assert {row.name for row in rows()} == set(Fitted.__slots__)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value = 0.24", "value = -1", "unevenness: value = -1: need a finite number"),
        ("value = 0.24", "value = nan", "unevenness: value = nan: need a finite"),
        ("value = 0.24", "value = 0.9", "unevenness: the value lies outside of low"),
        ("value = 0.24", "values = 0.17", "unevenness: need name, unit, fits,"),
        ("value = 0.24", "value = true", "unevenness: value = True: need a number"),
        ('fits = "epi wait"', "fits = 3", "unevenness: fits: need a text"),
    ],
)
def test_a_damaged_fit_is_refused_with_file_and_line(
    old: str, new: str, said: str
) -> None:
    text = resources.files("fp4ref.data").joinpath("lab_fitted.toml").read_text()
    assert FILE.endswith("lab_fitted.toml")
    before = text[: text.index('name = "unevenness"')]
    line = before.count("\n")
    with pytest.raises(InputError) as caught:
        read(text.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(f"mine.toml:{line}: {said}")
    with pytest.raises(InputError, match=r"^mine.toml:1: need one row for each of"):
        read(before[: before.rindex("[[fitted]]")], "mine.toml")
    with pytest.raises(InputError, match=r"^mine.toml: no TOML"):
        read("=", "mine.toml")
