"""wrong_arguments: by kind of argument, values that are none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

RAGGED = [[1.0], [1.0, 2.0]]


class Unusable:
    """An object of no type that any function knows."""

    def __repr__(self) -> str:
        return "Unusable()"


ANYTHING: tuple[Any, ...] = (
    *(Unusable(), "text", b"bytes", {}, {"a": 1}, set(), 2 + 1j, len),
    *(np.array("text"), np.array([None, 1]), np.zeros(3, np.complex64)),
    *(np.datetime64("2020-01-01"), np.zeros(2, [("x", "f4")])),
)
SCALARS: tuple[Any, ...] = (1.5, -1, 0, 3, 10**30, float("nan"), True, None)
FLOATS = (
    *(np.float64(1), np.zeros((2, 16)), np.zeros((2, 16), np.float16)),
    np.zeros((2, 16), ml_dtypes.bfloat16),
)
INTEGERS = (np.zeros((2, 16), np.int64), np.zeros((2, 16), np.uint8), [[1, 2]])
LISTS: tuple[Any, ...] = ([], (), [1.5], ["a"], RAGGED)

NOT: dict[str, tuple[Any, ...]] = {
    "float32": (*ANYTHING, *SCALARS, *FLOATS, *INTEGERS, RAGGED, np.zeros(3, bool)),
    "codes": (
        *(*ANYTHING, *SCALARS, *FLOATS, RAGGED, [[1, 2]]),
        *(np.zeros((2, 16), np.int8), np.full((2, 16), -1), np.zeros((2, 16), bool)),
    ),
    "integer codes": (*ANYTHING, *SCALARS, *FLOATS, RAGGED, np.full((2, 32), -1)),
    "whole": (*ANYTHING, 1.5, None, True, float("nan"), "3", RAGGED, np.zeros(2, int)),
    "number": (*ANYTHING, None, "3", RAGGED, np.zeros((2, 2))),
    "layout": (*ANYTHING, *SCALARS, *LISTS, (2, 3)),
    "tiler": (*ANYTHING, 1.5, 0, -1, True, None, [2], (2, None), (2, -1), RAGGED),
    "int_tuple": (*ANYTHING, 1.5, float("nan"), [2], (2, None), (2, "3"), RAGGED),
    "choice": (*ANYTHING, *SCALARS, *LISTS, "UE4M3", "f 32", ""),
    "block_scaled": (*ANYTHING, *SCALARS, *LISTS, *FLOATS, *INTEGERS),
    "config": (*ANYTHING, *LISTS, 3, 1.5, True),
    "table": (*ANYTHING, *SCALARS, *LISTS),
    "run": (*ANYTHING, *SCALARS, *LISTS, *FLOATS),
    "operand": (*ANYTHING, *SCALARS, *LISTS, *FLOATS, *INTEGERS),
    "numbers": (*ANYTHING, None, [], RAGGED, [2 + 1j]),
    "few codes": (*ANYTHING, *SCALARS, [], [1.5] * 64, [256] * 64, [-1] * 4),
    "fault": (*ANYTHING, *SCALARS, *LISTS, ValueError("x")),
    "names": (Unusable(), "timeline", 3, 1.5, True, len, ["nonsense"], [None]),
    "wholes": (Unusable(), "0", 3, 1.5, True, len, None, ["a"], [1.5], [99], [None]),
    "kernel": (Unusable(), b"bytes", {}, {"a": 1}, set(), 2 + 1j, len, *SCALARS),
    "launch": (Unusable(), b"bytes", {}, {"a": 1}, set(), 2 + 1j, len, *SCALARS),
    "schedules": (Unusable(), "text", len, *SCALARS, [], [1.5], ["soon"], [None]),
    "runs": (Unusable(), "text", len, *SCALARS, [1.5], ["late"], [None]),
    "flag": (*ANYTHING, 1.5, None, 3, RAGGED),
    "scales": (
        *(*ANYTHING, *SCALARS, *FLOATS, RAGGED, [[1, 2]]),
        *(np.zeros((2, 3), np.uint8), np.zeros(2, np.uint8)),
    ),
}
"""By kind of argument, values that must be refused."""


@dataclass(frozen=True)
class Public:
    """A public function, a good call of it, and the kinds of its arguments."""

    call: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]
    allowed: dict[str, tuple[Any, ...]]

    def bad_calls(self) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Yield argument, bad value and the whole call."""
        for name, kind in self.kinds.items():
            allowed = self.allowed.get(name, ())
            for value in NOT[kind]:
                if not any(_same(value, good) for good in allowed):
                    yield name, value, self.good | {name: value}


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and repr(a) == repr(b))
