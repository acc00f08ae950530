"""Parts 1 and 4. nearest: the legal value that is nearest to a refused one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from fp4ref.gemm.plan.values import Plan

MOST = (1 << 62) - 1
"""The largest count; a longer number cannot even be printed."""
_FLT_MAX = float(np.finfo(np.float32).max)


def is_count(value: object) -> bool:
    """Whether `value` is an integer that arithmetic and messages can bear."""
    return type(value) is int and abs(value) <= MOST


def too_large(value: object) -> bool:
    """Whether `value` is an integer above every count."""
    return type(value) is int and value > MOST


def nearest_of(value: Any, legal: Collection[Any]) -> str:
    """Return a clause with the one of `legal` that is nearest to `value`, or nothing.

    Counts are near by their difference, words by their letters: first those that begin
    as asked.
    """
    if type(value) is int:
        if counts := [each for each in legal if is_count(each)]:
            return _clause(min(counts, key=lambda each: abs(each - value)))
        if flags := [each for each in legal if each is bool(value)]:
            return _clause(flags[0])
    if type(value) is str:
        words, asked = [each for each in legal if type(each) is str], value[:60].lower()
        longer = [each for each in words if asked and each.startswith(asked)]
        if found := longer or get_close_matches(asked, words, n=1):
            return _clause(found[0])
    return ""


def nearest_float(value: Any) -> str:
    """Return a clause with the finite float32 that is nearest to a number, or nothing.

    A NaN has none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return ""
    if isinstance(value, np.complexfloating) or not (value > 0 or value < 0):
        return ""
    return _clause(_FLT_MAX if value > 0 else -_FLT_MAX)


def most_that_holds(
    p: Plan, choices: Mapping[str, Sequence[int]], holds: Callable[[Plan], bool]
) -> str:
    """Return the remedy with the largest legal value of one field.

    Where no field helps by itself, it says the smallest values of all.

    Parameters
    ----------
    choices
        Values of a field, ascending; below a legal one all are legal. The fields are
        tried in turn, each with the others as they are.
    """
    for field, values in choices.items():

        def refused(value: int, field: str = field) -> bool:
            return not holds(Plan(p.config.replace(**{field: value})))

        if legal := bisect_left(values, True, key=refused):
            return f"Use {field}={values[legal - 1]}"
    return "Use " + " and ".join(f"{f}={v[0]}" for f, v in choices.items() if v)


def _clause(value: object) -> str:
    return f"; the nearest is {value}"
