"""Published figures: every row has a range and a source, and bad ones are refused."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from fp4ref.errors import InputError
from fp4ref.parameters import Corner, Machine, Parameters, published, read

ROOT = Path(__file__).parents[2]
FILE = ROOT / "fp4ref/data/b200_parameters.toml"
GOOD = """
[[parameter]]
name = "launch"
value = 2
low = 1
high = 3
unit = "s"
faster = "low"
card = "B200"
trust = "B"
source = "a page"
remark = "nothing"
"""


def test_the_values_are_those_of_the_published_rows() -> None:
    found = {
        row.name: (row.low, row.value, row.high, row.card, row.trust)
        for row in published().values()
        if row.usable
    }
    assert found == {
        "sms": (148, 148, 148, "B200", "A"),
        "clock": (1.80e9, 1.845e9, 1.965e9, "B200", "B"),
        "power_slowdown": (1, 1.16, 1.43, "B300", "B"),
        "smem_bandwidth": (128, 128, 128, "B200", "A"),
        "smem_port_shared": (0, 0, 1, "B200", "D"),
        "mma_compute_interval": (0.5, 0.5, 0.5, "B200", "A"),
        "scale_copy_interval": (4, 51, 51, "B200", "D"),
        "tmem_read_bandwidth": (212, 220, 228, "B300", "C"),
        "l2_bandwidth": (13e12, 17e12, 21e12, "B200", "B"),
        "hbm_bandwidth": (6.7e12, 7.26e12, 7.48e12, "B200", "A"),
        "first_load_latency": (900, 930, 1610, "B200", "A"),
        "mma_end_latency": (104, 118, 136, "B200", "B"),
        "launch": (1.8e-6, 1.8e-6, 7e-6, "B300", "C"),
        "sms_in_clusters_of_2": (148, 148, 148, "B200", "B"),
        "sms_in_clusters_of_4": (132, 132, 132, "B200", "B"),
        "sms_in_clusters_of_8": (120, 120, 120, "B200", "B"),
        "l2_capacity": (126e6, 132644864, 132644864, "B300", "A"),
        "tma_fill_bandwidth": (44.7, 45.4, 62, "B200", "A"),
        "tma_l2_latency": (300, 363, 660, "B200", "B"),
        "mbarrier_wake": (54, 88, 111, "B200", "B"),
        "commit_latency": (12, 30, 40, "B200", "C"),
        "mma_fill": (0, 18, 18, "B200", "D"),
        "mma_pair": (31, 34, 37, "B200", "A"),
        "named_barrier": (15, 21, 30, "B200", "B"),
        "cluster_barrier": (100, 373, 380, "B300", "B"),
        "remote_arrive": (165, 180, 215, "B300", "B"),
        "tmem_wait": (2, 13, 13, "B200", "C"),
        "tmem_store_latency": (12, 12, 13, "B200", "B"),
        "tmem_store_interval": (0.6, 0.6, 0.6, "B200", "B"),
        "tmem_alloc": (253, 253, 1030, "B300", "C"),
        "smem_load_latency": (24, 29, 30, "B300", "B"),
        "stmatrix_interval": (8, 8, 8, "B300", "C"),
        "global_load_latency": (300, 300, 660, "B300", "B"),
    } | {name: (*span, card, "D") for name, (*span, card) in ASSUMED.items()}


ASSUMED = {
    "tmem_load_latency": (20, 60, 140, "B200"),
    "fence_proxy_async": (4, 40, 179, "B300"),
    "store_read_latency": (100, 300, 600, "B200"),
    "store_write_latency": (300, 600, 1200, "B200"),
    "clc_latency": (200, 600, 1500, "B200"),
    "cta_start": (0, 500, 2000, "B200"),
    "warp_instruction": (2, 4, 8, "B200"),
    "epilogue_element": (1, 4, 8, "B200"),
}
"""Not published: a value that was thought possible, in a range that was."""


def test_what_is_assumed_says_so() -> None:
    said = {n for n, row in published().items() if row.source[:13] == "not published"}
    assert said == {*ASSUMED, "smem_port_shared"}


def test_every_row_says_where_it_stands() -> None:
    lines = FILE.read_text().splitlines()
    for row in published().values():
        assert lines[row.line - 1] == "[[parameter]]"
        assert lines[row.line] == f'name = "{row.name}"'


def test_a_fast_machine_is_faster_in_every_figure() -> None:
    slow, fast = (published().machine(c) for c in (Corner.SLOW, Corner.FAST))
    more = {"sms", "clock", "smem_bandwidth", "tmem_read_bandwidth"}
    more |= {"l2_bandwidth", "hbm_bandwidth"}
    for each in fields(Machine):
        a, b = getattr(slow, each.name), getattr(fast, each.name)
        assert a <= b if each.name in more else a >= b, each.name


@pytest.mark.parametrize("name", ["mma_latency_11", "tmem_bandwidth_per_sm"])
def test_a_figure_that_contradicts_itself_cannot_be_asked_for(name: str) -> None:
    assert published()[name].trust == "X"
    with pytest.raises(InputError, match=rf"toml:\d+: {name}: do not use"):
        published()[name].at(Corner.PUBLISHED)
    with pytest.raises(InputError, match=rf"^mine:3: {name}: do not use: .*toml:\d+"):
        published().override(name, 1.0, "mine:3")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("clok", 1e9, "clok: no such parameter; there are sms, clock,"),
        ("clock", 3e9, "clock = 3e+09 Hz: published is 1.8e+09 to 1.965e+09"),
        ("launch", -1, "launch = -1: need a finite number, and not a negative"),
        ("launch", "soon", "launch = 'soon': need a number"),
        ("launch", True, "launch = True: need a number"),
        ("launch", float("nan"), "launch = nan: need a finite number"),
    ],
)
def test_an_override_that_is_wrong_is_refused(
    name: str, value: object, said: str
) -> None:
    with pytest.raises(InputError, match=f"^mine.toml:7: {re.escape(said)}"):
        published().override(name, value, "mine.toml:7")


def test_an_override_fixes_all_corners() -> None:
    rows = published().override("clock", 1.9e9, "mine.toml:1")
    assert {rows.machine(corner).clock for corner in Corner} == {1.9e9}
    assert published().machine(Corner.PUBLISHED).clock == 1.845e9


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value = 2", "value = 4", "launch: the value lies outside of low to high"),
        ("low = 1", "low = -1", "launch.low = -1: need a finite number"),
        ("low = 1\n", "", r"launch: missing: \['low'\]; unknown: \[\]"),
        ("low = 1", "low = 1\nsize = 1", r"launch: missing: \[\]; unknown: \['size'\]"),
        ('trust = "B"', 'trust = "E"', "launch: trust 'E'; need A, B, C, D or X"),
        ('"a page"', '""', "launch: .* are texts and not empty"),
        ('"low"', '"least"', "launch: faster is 'low' or 'high'"),
    ],
)
def test_a_wrong_row_is_named_with_file_and_line(old: str, new: str, said: str) -> None:
    assert isinstance(read(GOOD, "mine.toml"), Parameters)
    with pytest.raises(InputError, match=f"^mine.toml:2: {said}"):
        read(GOOD.replace(old, new, 1), "mine.toml")


def test_two_rows_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"^mine.toml:14: launch: there is one"):
        read(GOOD + GOOD, "mine.toml")


def test_what_is_no_toml_says_its_line() -> None:
    with pytest.raises(InputError, match=r"^mine.toml: no TOML: .*line 2"):
        read("\n[[parameter\n", "mine.toml")
