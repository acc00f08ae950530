"""rotation: which cases of a test run today."""

from __future__ import annotations


def of_day(day: int, cases: int, count: int) -> set[int]:
    """Return the numbers of `count` cases; successive days go through all of them."""
    return {(day * count + i) % cases for i in range(count)}
