"""conftest: the rotating seed, the browser, plain asserts in shared test modules."""

from __future__ import annotations

import datetime
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import browser
import pytest
import rotation

pytest.register_assert_rewrite(
    "compared_events", "mma_by_element", "oracle_problem", "raw_bits", "wide_operands"
)


def _seed() -> int:
    today = datetime.date.today().strftime("%Y%m%d")
    return int(os.environ.get("FP4REF_SEED", today))


@pytest.fixture
def rotating_seed() -> int:
    """Today's seed, another one each day; FP4REF_SEED repeats one. Shown on failure."""
    seed = _seed()
    print(f"repeat with FP4REF_SEED={seed}")
    return seed


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a rotating test's cases leave today's; the others are soak until their day.

    A test of `count` cases a day has had all of them after ``cases / count`` days.
    Tests with one name in ``among`` take turns with each other.
    """
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("rotating"):
            own = item.nodeid.partition("[")[0]
            cases[marker.kwargs.get("among", own)].append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("rotating")
        count = marker.args[0]  # type: ignore[union-attr]
        today = rotation.of_day(_day(), len(group), count)
        for number, item in enumerate(group):
            if number not in today:
                item.add_marker("soak")


def _day() -> int:
    """Today's number, one more each day; FP4REF_SEED repeats a day."""
    seed = str(_seed())
    try:
        return datetime.datetime.strptime(seed, "%Y%m%d").toordinal()
    except ValueError:
        return int(seed)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A real browser; skipped, with the reason, where there is none."""
    if reason := browser.why_not():
        pytest.skip(reason)
    with browser.launch() as running:
        yield running
