"""reason: why the kernel is right without an operation, and what shows it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from fp4ref.errors import HardwareFault
from fp4ref.evidence.protocol import certify
from fp4ref.evidence.removals import in_emulator
from fp4ref.evidence.removals.record import recorded
from fp4ref.evidence.removals.removal import Removal, sites
from fp4ref.gemm.mma_warp import TMEM_COLUMNS
from fp4ref.hardware import tmem

TRIED = ("eager", "late", 1, 2)
"""Schedules of a cluster, whose barriers `certify` does not count."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, for the operations that it holds for.

    Attributes
    ----------
    check
        Its test, by name; see `CHECKS`.
    together
        Operations of which each covers for the others, for the test of that name.
    """

    name: str
    sites: tuple[str, ...]
    check: str
    text: str
    together: tuple[str, ...] = ()


@cache
def _read() -> Mapping[str, Reason]:
    file = resources.files("fp4ref.evidence.removals") / "reasons.toml"
    found: dict[str, Reason] = {}
    for name, row in tomllib.loads(file.read_text(encoding="utf-8")).items():
        reason = Reason(
            name,
            tuple(row["sites"]),
            row["check"],
            " ".join(row["text"].split()),
            tuple(row.get("with", ())),
        )
        found |= dict.fromkeys(reason.sites, reason)
    return MappingProxyType(found)


REASONS: Mapping[str, Reason] = _read()
"""By the name of the operation."""


def objection(removal: Removal) -> str:
    """Test the reason of a removal; say what speaks against it, if anything does."""
    reason = REASONS[removal.name]
    return CHECKS[reason.check](removal, reason)


def _asked_again(removal: Removal, reason: Reason) -> str:
    """The entry waits for what the peek asked, and a false answer is caught."""
    yes = Removal(removal.form, removal.name, "answers yes", removal.copy)
    rows = recorded()[removal], recorded()[yes]
    if any(row.ptx.by == "not reached" for row in rows):
        here = {row.ptx.by for row in rows}
        return "" if here == {"not reached"} else "only one of both is reached"
    return "" if rows[1].ptx.by == "fault" else "a wrong answer is not caught"


def _not_reached(removal: Removal, reason: Reason) -> str:
    """A trap in its place changes nothing."""
    by = recorded()[removal].ptx.by
    return "" if by == "not reached" else f"it is reached: {by}"


def _no_dependents(removal: Removal, reason: Reason) -> str:
    """The operation leaves nothing in a trace but itself."""
    where = sites(removal.form)[removal][0]
    clean = where.case.clean(removal.form)
    with where.removed(removal.variant):
        found = where.case.run(removal.form)
    assert clean.trace is not None
    assert found.trace is not None
    gone = len(clean.trace.events) - len(found.trace.events)
    return "" if gone <= 1 else f"{gone} events are gone"


def _all_columns(removal: Removal, reason: Reason) -> str:
    """The kernel allocates all of TMEM."""
    return "" if TMEM_COLUMNS == tmem.COLUMNS else "columns are left for others"


def _certified(removal: Removal, reason: Reason) -> str:
    """Without it every schedule is right, and every access is ordered."""
    for where in sites(removal.form)[removal]:
        with where.removed(removal.variant):
            found = where.case.run(removal.form)
        if found.verdict != "clean":
            return f"{where.case.name}: {found.verdict}"
        if not (certificate := certify(found)).ok:
            return f"{where.case.name}: {certificate}"
    return ""


def _in_clusters(removal: Removal, reason: Reason) -> str:
    """As certified; what no counting covers, is clean under every schedule tried."""
    for where in sites(removal.form)[removal]:
        for schedule in TRIED if where.case.sms > 1 else ("eager",):
            with where.removed(removal.variant):
                found = where.case.run(removal.form, schedule=schedule)
            if found.verdict != "clean":
                return f"{where.case.name}, {schedule}: {found.verdict}"
            if findings := certify(found).findings:
                return f"{where.case.name}, {schedule}: {findings[0]}"
            clean = where.case.clean(removal.form)
            if found.d.tobytes() != clean.d.tobytes():
                return f"{where.case.name}, {schedule}: other bits of D"
    return ""


def _together(removal: Removal, reason: Reason) -> str:
    """Without all of them its own access races; without the others it does not."""
    others = [name for name in reason.together if name != removal.name]
    more = _racing([*others, removal.name]) - _racing(others)
    return "" if more else "nothing more races without it"


def _review(removal: Removal, reason: Reason) -> str:
    """The verdict leaves it to the reader."""
    by = recorded()[removal].ptx.by
    return "" if by == "review" else f"it is no review: {by}"


CHECKS: Mapping[str, Callable[[Removal, Reason], str]] = MappingProxyType(
    {
        "asked again": _asked_again,
        "not reached": _not_reached,
        "no dependents": _no_dependents,
        "all columns": _all_columns,
        "certified": _certified,
        "in clusters": _in_clusters,
        "together": _together,
        "review": _review,
    }
)
"""Tests of a reason: each returns what speaks against it."""


def _racing(names: Sequence[str]) -> set[str]:
    """Return the warps whose accesses race without some operations."""
    removals = [Removal("emulator", name, "left out") for name in names]
    places = [where for each in removals for where in sites("emulator")[each]]
    found: set[str] = set()
    for case in dict.fromkeys(where.case for where in places):
        chains = [where.chain for where in places if where.case is case]
        with in_emulator.removed("left out", *chains):
            try:
                races = case.run("emulator").races
            except HardwareFault as error:
                races = getattr(error, "races", ())
        found |= {race.first.who for race in races}
    return found
