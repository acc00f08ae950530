"""removal: leave one operation out of the kernel, and say what notices."""

from __future__ import annotations

from collections import defaultdict
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fp4ref.errors import HardwareFault
from fp4ref.evidence.comparison import compare
from fp4ref.evidence.protocol import certify
from fp4ref.evidence.removals import in_emulator, in_ptx
from fp4ref.evidence.removals.case import CASES, Case, Form
from fp4ref.evidence.removals.operation import Variant, variants
from fp4ref.evidence.removals.site import Chain, names
from fp4ref.execution.runs import Run
from fp4ref.hardware.machine_state import Ordering

By = Literal[
    "fault",
    "review",
    "advisory",
    "certificate",
    "difference",
    "not reached",
    "nothing",
]
"""A fault of the machine; a verdict that the PTX text leaves open; what the run newly
relies on; a schedule that fails; another byte than the clean run's. Of compiled code
that no case executes there is nothing to notice."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What noticed that an operation is gone.

    Attributes
    ----------
    what
        The fault and its failure classes, or what else was found.
    case
        The one that noticed, or the last one.
    """

    by: By
    what: str = ""
    case: str = ""

    @property
    def caught(self) -> bool:
        """Whether anything noticed."""
        return self.by not in ("not reached", "nothing")


@dataclass(frozen=True, slots=True, order=True)
class Removal:
    """One operation, and what takes its place.

    Attributes
    ----------
    name
        Of the operation; see `names`.
    copy
        Of the instructions that the compiler made of one statement; 0 in the emulator.
    """

    form: Form
    name: str
    variant: Variant
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Where:
    """An operation in one case."""

    case: Case
    chain: Chain
    instruction: in_ptx.Instruction | None = None

    def removed(self, variant: Variant) -> AbstractContextManager[None]:
        """Leave it out for the length of a ``with`` block."""
        if self.instruction is None:
            return in_emulator.removed(variant, self.chain)
        return in_ptx.removed(self.case.config, self.instruction, variant)


@cache
def sites(form: Form) -> dict[Removal, list[Where]]:
    """Find every removal, and the cases in which it can be made."""
    found: list[Where] = []
    for case in CASES.values():
        if form == "ptx":
            every = in_ptx.instructions(case.config)
            found += [Where(case, each.chain, each) for each in every]
        else:
            chains: set[Chain] = set()
            with in_emulator.executed(chains):
                case.run("emulator")
            found += [Where(case, chain) for chain in sorted(chains)]
    name = names(where.chain for where in found)
    rows: dict[Removal, list[Where]] = defaultdict(list)
    for where in found:
        copy = where.instruction.copy if where.instruction else 0
        for variant in variants(where.chain.opcode):
            rows[Removal(form, name[where.chain], variant, copy)].append(where)
    return dict(rows)


def remove(removal: Removal, ordering: Ordering = "ptx") -> Outcome:
    """Leave an operation out, in one case after the other until something notices."""
    outcome = Outcome("nothing")
    places = sites(removal.form)[removal]
    for number, where in enumerate(places):
        outcome = _outcome(where, removal, ordering)
        if outcome.caught:
            return outcome
        if number == 0 and not any(map(is_reached, places)):
            return Outcome("not reached")
    return outcome


def remove_in(case: str, removal: Removal, ordering: Ordering) -> Outcome:
    """Leave an operation out in one case."""
    places = sites(removal.form)[removal]
    where = next(each for each in places if each.case.name == case)
    return _outcome(where, removal, ordering)


def is_reached(where: Where) -> bool:
    """Whether a case executes an operation: a trap in its place ends the run."""
    if where.instruction is None:
        return True
    with in_ptx.changed(where.case.config, where.instruction.line, "\ttrap;"):
        try:
            where.case.run("ptx")
        except HardwareFault:
            return True
    return False


def _outcome(where: Where, removal: Removal, ordering: Ordering) -> Outcome:
    case, form = where.case, removal.form
    clean = case.clean(form, ordering)
    try:
        with where.removed(removal.variant):
            found = case.run(form, ordering)
    except HardwareFault as error:
        return Outcome("fault", _fault_words(error), case.name)
    by, what = _noticed(clean, found)
    return Outcome(by, what, case.name)


def _fault_words(error: HardwareFault) -> str:
    """Return the fault's class, and the failure classes of its races."""
    races = sorted({race.failure.value.name for race in getattr(error, "races", ())})
    words = [type(error).__name__, *([", ".join(races)] if races else [])]
    return ": ".join(words)


def _noticed(clean: Run, found: Run) -> tuple[By, str]:
    """Look for a sign in a run that ended well."""
    if reviews := {r.failure.value.name for r in found.races if r.severity == "review"}:
        return "review", ", ".join(sorted(reviews))
    if found.verdict != "clean":
        return "review", found.verdict
    allowed = {r.failure.value.name for r in found.races if r.severity == "allowed"}
    if new := allowed | set(found.advisories) - set(clean.advisories):
        return "advisory", ", ".join(sorted(new))
    if findings := certify(found).findings:
        return "certificate", findings[0].failure
    if difference := compare(clean, found).first_difference:
        return "difference", str(difference.key)
    return "nothing", ""
