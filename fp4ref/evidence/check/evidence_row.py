"""evidence_row: on which row of the fidelity table a finding rests."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from fp4ref.errors import HardwareFault
from fp4ref.evidence.fidelity import RULES, Rule
from fp4ref.hardware.order.rules import Failure

_BY_ID = {rule.id: rule for rule in RULES}


@cache
def _table() -> dict[str, Any]:
    text = files("fp4ref").joinpath("data", "check_rows.toml").read_text("utf-8")
    return tomllib.loads(text)


def of_race(failure: Failure) -> Rule:
    """Return the row of a class of races."""
    return _BY_ID[_table()["race"][failure.name]]


def of_fault(fault: HardwareFault) -> tuple[Rule | None, str]:
    """Return the row of a fault, and which instruction it blames without a statement.

    None where the fault is no rule of the hardware, as a trap of the kernel's own.
    """
    name = type(fault).__name__
    for row in _table()["fault"]:
        if row["class"] == name and row.get("rule", "") in fault.rule:
            return _BY_ID[row["row"]], row.get("blames", "")
    return None, ""


def of_advisory(text: str) -> Rule | None:
    """Return the row of what a kernel relies on beyond the PTX text."""
    return next((rule for rule in RULES if rule.advisory == text), None)
