"""Doubtful figures: each with its entry or its bound, worked out once more by hand."""

from __future__ import annotations

from importlib import resources

import pytest

from fp4ref.errors import InputError
from fp4ref.lab.doubtful import BOUNDS, DOCUMENTS, doubtful, read, span
from fp4ref.lessons.errata import ERRATA

TEXT = resources.files("fp4ref.data").joinpath("doubtful_figures.toml").read_text()
# By document: figures that must be there, each with the entries and the bound it has.
NAMED = {
    "000": {
        "12.8 MMAs a cycle": (("6.12d",), ""),
        "10 cycles": ((), "mma_interval_of_one_sm"),
        "20 cycles": (("8.9b",), "mmas_of_a_tile"),
        "1.7 TFLOPS": (("8.9b",), "peak_of_an_sm"),
        "2 GHz": ((), "clock"),
    },
    "002": {
        "1 %": (("002-7", "002-11"), ""),
        "5 %": (("002-11",), ""),
        "1,811, 1,746, 1,750 TFLOPS": (("002-12",), "tflops_bf16"),
    },
    "003": {
        "50 %": (("003-24",), "busy_003"),
        "173 cycles": (("003-24", "003-25"), "mma_interval_of_a_pair"),
        "33 cycles": (("003-24", "003-25"), ""),
        "19 %": (("003-25",), ""),
        "73 %": (("003-24", "003-25"), ""),
        "79 %": ((), "busy_cublas"),
        "99 %": ((), "busy_cublas"),
        "4.1": (("003-11",), ""),
        "48 MB": ((), "l2_capacity"),
        "2.1 GHz": (("003-27",), "clock"),
        "170 cycles": (("003-28",), ""),
        "Phase 1 is limited by Tensor Memory": (("003-29",), "tmem_read_003"),
    },
}
UNDECIDED = {
    ("000", "7.1 times"),
    ("002", "5 s and 10 s"),
    ("003", "0.835 ms"),
    ("003", "64 ns"),
    ("003", "80 %"),
    ("003", "15 to 25 cycles"),
    ("003", "150 to 350 cycles"),
    ("003", "70 cycles"),
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_figures_of_a_document_have_their_entries_and_bounds(document: str) -> None:
    rows = {row.figure: row for row in doubtful() if row.document == document}
    for figure, (entries, bound) in NAMED[document].items():
        assert (rows[figure].entries, rows[figure].bound) == (entries, bound)


def test_every_figure_has_an_entry_of_its_document_or_a_bound_or_a_reason() -> None:
    for row in doubtful():
        assert row.entries or row.bound or row.undecided
        for id in row.entries:
            assert ERRATA[id].document == row.document
    without = {(row.document, row.figure) for row in doubtful() if row.undecided}
    assert without == UNDECIDED


def test_every_new_entry_about_document_003_is_named() -> None:
    named = {id for row in doubtful() for id in row.entries}
    assert {f"003-{n}" for n in (11, 12, 20, 22, *range(24, 31))} <= named


def test_no_bound_is_there_for_nothing() -> None:
    assert {row.bound for row in doubtful() if row.bound} == set(BOUNDS)


# Low and high end, from the published figures by hand.
BY_HAND = {
    "clock": (1.80, 1.965),
    "load_latency": (900, 1610),
    "l2_capacity": (126, 132.644864),
    "mma_interval_of_one_sm": (64, 64),
    "mma_interval_of_a_pair": (128, 128),
    "mmas_of_a_tile": (32 * 64, 32 * 64),
    "mmas_of_a_tile_003": (24 * 128, 24 * 128),
    "peak_of_an_sm": (32.768e-3 * 1.80 / 1.43 * 1e3, 32.768e-3 * 1.965 * 1e3),
    "mma_time_003": (147 * 3072 / 1.965e6, 147 * 3072 * 1.43 / 1.80e6),
    "busy_003": (
        100 * 147 * 3072 / 1.965e6 / 0.543,
        100 * 147 * 3072 * 1.43 / 1.80e6 / 0.543,
    ),
    "busy_cublas": (
        100 * 147 * 3072 / 1.965e6 / 0.365,
        100 * 147 * 3072 * 1.43 / 1.80e6 / 0.365,
    ),
    "tmem_read_003": (131_072 / 228, 131_072 / 212),
    # MMA's reads and fills 12 x 32 KiB, D staged and read; then loads and stores too.
    "l1_busy_003": (
        100 * (12 * 32_768 + 2 * 65_536) / 128 / 6067,
        100 * (12 * 32_768 + 4 * 65_536) / 128 / 6067,
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_by_hand(name: str) -> None:
    found = span(name)
    assert found.low <= found.high
    assert found.unit
    if name in BY_HAND:
        assert (found.low, found.high) == pytest.approx(BY_HAND[name])
    else:
        assert name in ("tflops_bf16", "run_time_003")


def test_document_003s_own_times_lie_within_their_bounds() -> None:
    for name, value in (("run_time_003", 0.543), ("run_time_003", 0.536)):
        assert span(name).low <= value <= span(name).high
    # cuBLAS adds nothing and stages less, so only its MMAs bound it.
    assert span("mma_time_003").low <= 0.365
    assert span("tflops_bf16").low <= 1746 <= span("tflops_bf16").high


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('bound = "clock"', 'bound = "time"', "2 GHz: bound 'time': there are"),
        ('bound = "clock"', "", "2 GHz: need entries or a bound, or why"),
        ('bound = "clock"', "bound = 3", "2 GHz: entries is a list of ids, all"),
        ('bound = "clock"', 'bond = "clock"', "2 GHz: need document, where, figure"),
        ('document = "000"', 'document = "001"', "2 GHz: document: need 000, 002"),
        ('bound = "clock"', 'bound = "clock"\nundecided = "x"', "2 GHz: need entries"),
    ],
)
def test_a_damaged_row_is_refused_with_file_and_line(
    old: str, new: str, said: str
) -> None:
    line = TEXT[: TEXT.index("[[figure]]")].count("\n") + 1
    with pytest.raises(InputError) as caught:
        read(TEXT.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(f"mine.toml:{line}: {said}")
