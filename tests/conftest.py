"""conftest: the rotating seed, the browser, plain asserts in shared test modules."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from typing import Any

import browser
import pytest

pytest.register_assert_rewrite(
    "compared_events", "mma_by_element", "oracle_problem", "raw_bits", "wide_operands"
)


@pytest.fixture
def rotating_seed() -> int:
    """Today's seed, another one each day; FP4REF_SEED repeats one. Shown on failure."""
    today = datetime.date.today().strftime("%Y%m%d")
    seed = int(os.environ.get("FP4REF_SEED", today))
    print(f"repeat with FP4REF_SEED={seed}")
    return seed


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A real browser; skipped, with the reason, where there is none."""
    if reason := browser.why_not():
        pytest.skip(reason)
    with browser.launch() as running:
        yield running
