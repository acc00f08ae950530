"""lesson_22: exercises on `check`; the answers come from checks."""

from __future__ import annotations

from functools import cache

from fp4ref.errors import InputError
from fp4ref.evidence.check import EXIT_STATUS, check
from fp4ref.lessons.exercise import exercise
from fp4ref.lessons.your_kernel import REVERSE, reverse, reverse_launch

_STATUSES = {
    "a barrier left out": 1,
    "compiled for sm_90a": 2,
    "prefetch.global.L2": 3,
    "right": 0,
}
"""From which the wrong answers are made; the right one comes from `check`."""


@cache
def _statuses() -> dict[str, int]:
    """Exit status of four kernels, each from a check."""
    launch = reverse_launch(REVERSE)
    texts = {
        "a barrier left out": reverse(barrier=False),
        "compiled for sm_90a": REVERSE.replace("sm_100a", "sm_90a"),
        "prefetch.global.L2": REVERSE.replace(
            "    ret;", "    prefetch.global.L2 [%rd1];\n    ret;"
        ),
        "right": REVERSE,
    }
    found = {}
    for name, text in texts.items():
        try:
            found[name] = check(text, launch, schedules=("eager",)).exit_status
        except InputError:
            found[name] = EXIT_STATUS["bad input"]
    return found


@exercise(
    "22.1",
    title="Four exit statuses",
    frames=("6.6.9",),
    hints=(
        "A gate in CI has to tell a wrong kernel from one that was not looked at.",
        "0 clean, 1 a fault or a mismatch, 2 bad input, 3 unsupported.",
    ),
    # Everything red is 1; unsupported as bad input; the two exchanged.
    wrong=(
        _STATUSES | {"compiled for sm_90a": 1, "prefetch.global.L2": 1},
        _STATUSES | {"prefetch.global.L2": 2},
        _STATUSES | {"prefetch.global.L2": 2, "compiled for sm_90a": 3},
    ),
)
def statuses() -> dict[str, int]:
    """Run the four checks."""
    return _statuses()


@exercise(
    "22.2",
    title="Two lines that race",
    frames=("6.6.9",),
    hints=(
        "Count from 1; the first line is .version.",
        "One line stores the number, the other one loads another thread's.",
        "The zeros are stored before a barrier: they race with nothing.",
    ),
    why=(
        "Without the barrier nothing orders one thread's store before another "
        "thread's load of the same bytes."
    ),
    # The barrier's neighbours in the right text; the zeros; global accesses.
    wrong=((24, 26), (21, 25), (23, 26)),
)
def lines() -> tuple[int, ...]:
    """Ask a check of the text."""
    text = reverse(barrier=False)
    found = check(text, reverse_launch(text), schedules=("eager",))
    places = found.errors[0].places
    return tuple(sorted(place.ptx_line for place in places))
