"""conftest: the rotating seed, and plain asserts in the shared test modules."""

from __future__ import annotations

import datetime
import os

import pytest

pytest.register_assert_rewrite("raw_bits", "wide_operands")


@pytest.fixture
def rotating_seed() -> int:
    """Today's seed, another one each day; FP4REF_SEED repeats one. Shown on failure."""
    today = datetime.date.today().strftime("%Y%m%d")
    seed = int(os.environ.get("FP4REF_SEED", today))
    print(f"repeat with FP4REF_SEED={seed}")
    return seed
