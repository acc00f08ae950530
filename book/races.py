"""races: the page of data races: one that was found, and what each class lacks."""

from __future__ import annotations

from wording import anchor, plain

from fp4ref.evidence.faults import GALLERY
from fp4ref.evidence.faults.catch import run_fault
from fp4ref.hardware.order.race import RaceFault
from fp4ref.hardware.order.rules import Failure

SHOWN = "commit-before-the-copy"
"""A mistake of the gallery that is short, and a race."""


def page() -> str:
    """Return the report of one race, a count, and an entry for each class."""
    return "\n\n".join([_report(), "## What can be missing", *_classes()]) + "\n"


def _report() -> str:
    each = GALLERY[SHOWN]
    found = run_fault(each, "emulator").fault
    assert isinstance(found, RaceFault)
    first, _, _ = str(found).partition("\nerror:")
    of_races = [
        name
        for name, fault in GALLERY.items()
        if any(form.caught.what == RaceFault.__name__ for form in fault.forms.values())
    ]
    return (
        f"[{plain(each.title)}](faults.md#fault-{anchor(SHOWN)}), a mistake of the "
        f"gallery, is one. The machine says:\n\n```text\n{first}\n```\n\n"
        f"Of the gallery's {len(GALLERY)} mistakes {len(of_races)} end as a race."
    )


def _classes() -> list[str]:
    return [
        f"**{each.value.name}**\n: "
        f"{plain(each.value.rule)}. *Remedy*: {plain(each.value.remedy)}."
        for each in Failure
    ]
