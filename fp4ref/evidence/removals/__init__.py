"""removals: every synchronisation operation of the kernel, left out in turn.

`operation` says what such an operation is; `site` names one by the calls that lead to
it; `in_emulator` and `in_ptx` find all of them and leave one out; `case` has the
products that are run; `removal` says what notices; `record` keeps that; `reason` has
why the kernel is right without an operation that nothing misses. ``python -m
fp4ref.evidence.removals`` makes all of them.
"""

from fp4ref.evidence.removals.reason import REASONS, Reason, objection
from fp4ref.evidence.removals.record import Row, computed, recorded
from fp4ref.evidence.removals.removal import Outcome, Removal, remove, sites

__all__ = [
    "REASONS",
    "Outcome",
    "Reason",
    "Removal",
    "Row",
    "computed",
    "objection",
    "recorded",
    "remove",
    "sites",
]
