"""fidelity: on what each modelled behaviour rests, and which test checks it.

A row says what the machine does, the class of evidence for it, its source, and a test
that fails if the model does something else. The test proves that the model follows the
rule, never that silicon does: that is what the evidence class is for. No row about the
MMA was measured here on a Blackwell card. The rows are in ``data/fidelity.toml``,
those of the epilogue and its builder in ``data/fidelity_builder.toml``, those of the
recipes in ``data/fidelity_recipes.toml``. A kept transcript of a Blackwell card makes
the rows measured that it shows (`fp4ref.evidence.attested`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from fp4ref.evidence.attested import measured_on_blackwell


class Evidence(Enum):
    """Why a rule is believed, strongest first."""

    MEASURED = "measured on silicon"
    OUTSIDE_KERNEL = "needed by an outside kernel"
    """Another author's compiled kernel fails if this rule alone is changed."""
    DOCUMENTED = "documented"
    PUBLISHED_MODEL = "published model"
    SHIPPED_PRACTICE = "read from compiled or shipped code"
    OBSERVED_BY_OTHERS = "observed by others"
    """Authors of kernels report it of a card. No text says it; not measured here."""
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One rule, made wrong: the least change of the code that breaks it.

    Attributes
    ----------
    code
        ``module:name`` of the function that follows the rule.
    right, wrong
        Text of the function, and what a test puts in its place.
    """

    code: str
    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One modelled behaviour.

    Attributes
    ----------
    operation
        PTX name, or the unit.
    source
        Document, program or measurement; a measurement names the card.
    checked_by
        ``path::test`` from the repository root: it fails under `mutation`.
    mutation
        This rule made wrong.
    killed_by
        The outside kernel that `checked_by` runs, and what of it shows the fault.
    advisory
        What a run counts when a kernel relies on this rule; empty for rules of the PTX
        text.
    """

    id: str
    operation: str
    rule: str
    evidence: Evidence
    source: str
    checked_by: str
    mutation: Mutation
    killed_by: str = ""
    advisory: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self) | {
            "evidence": self.evidence.value,
            "standing": standing(self).value,
            "default_gemm": needed_by_default().get(self.id, ""),
        }


_FILES = ("fidelity.toml", "fidelity_builder.toml", "fidelity_recipes.toml")


def _read_rules() -> tuple[Rule, ...]:
    data = files("fp4ref").joinpath("data")
    tables = [tomllib.loads(data.joinpath(f).read_text("utf-8")) for f in _FILES]
    measured = measured_on_blackwell()
    rules = []
    for row in chain.from_iterable(table["rule"] for table in tables):
        row["evidence"] = Evidence[row["evidence"]]
        row["source"] = row["source"].format_map(tables[0]["texts"])
        row["mutation"] = Mutation(**row["mutation"])
        if row["id"] in measured:
            row["evidence"] = Evidence.MEASURED
            row["source"] += f"; {measured[row['id']]}"
        rules.append(Rule(**row))
    return tuple(rules)


RULES: tuple[Rule, ...] = _read_rules()


def select(
    *, operation: str | None = None, evidence: Evidence | None = None
) -> list[Rule]:
    """Rules that match every given field; `operation` matches by substring."""
    return [
        rule
        for rule in RULES
        if (operation is None or operation in rule.operation)
        and (evidence is None or rule.evidence is evidence)
    ]


def shares() -> dict[Evidence, float]:
    """Fraction of the rules in each class of evidence, strongest first."""
    return {e: len(select(evidence=e)) / len(RULES) for e in Evidence}


class Standing(Enum):
    """What is known of a rule from outside this project; each rule has one."""

    SM_90 = "measured on sm_90"
    OUTSIDE_KERNEL = "an outside kernel fails without it"
    UNMEASURED = "documented or read only, though sm_90 has the operation"
    SM_100 = "documented or read only, and waits for sm_100"


_NOT_ON_SM_90 = re.compile(
    "tcgen05|TMEM|clusterlaunchcontrol|[eE]2[mM]1|UE4M3|(ue|UE)8[mM]0|U4_ALIGN|SM100"
    r"|instruction descriptor|cta_group|CTA pair|(?<!wmma[.])\bmma\b(?![.]sync)"
    "|32-byte atoms|6 bits|sm_100"
)
"""Words of operations that Hopper lacks; ptxas refuses the instructions for sm_90."""


def waits_for_sm_100(rule: Rule) -> bool:
    """Whether only a card with tcgen05 can be asked about a rule."""
    return bool(_NOT_ON_SM_90.search(rule.operation))


def standing(rule: Rule) -> Standing:
    """Return what is known of a rule from outside, the strongest."""
    if rule.evidence is Evidence.MEASURED:
        return Standing.SM_90
    if rule.evidence is Evidence.OUTSIDE_KERNEL:
        return Standing.OUTSIDE_KERNEL
    return Standing.SM_100 if waits_for_sm_100(rule) else Standing.UNMEASURED


WITNESSED_FILE = "outside_witnesses.json"
"""Written by ``tests/evidence/outside_witnesses.py``, for rules of the machine."""


@cache
def _record() -> Mapping[str, Mapping[str, str]]:
    text = files("fp4ref").joinpath("data", WITNESSED_FILE).read_text("utf-8")
    found: dict[str, dict[str, str]] = json.loads(text)
    return found


def of_machine() -> dict[str, str]:
    """Return the outside witness of each rule of the machine, by id; '' without one.

    A measurement, or the kernel or layout that the row names, whose test fails if the
    rule is wrong; or what the record says of the other rows.
    """
    found = {}
    for rule in RULES:
        if rule.mutation.code.startswith("fp4ref.hardware"):
            named = rule.killed_by.partition(":")[0]
            if rule.evidence is Evidence.MEASURED:
                named = "a recording of an H200"
            found[rule.id] = named or _record().get(rule.id, {}).get("witness", "")
    return found


def unwitnessed() -> dict[str, str]:
    """Return why each rule of the machine without an outside witness has none."""
    without = [id for id, witness in of_machine().items() if not witness]
    return {id: _record()[id]["why"] for id in without}


NEEDED_FILE = "default_gemm_rules.json"
"""Written by ``tests/evidence/default_gemm.py``, which breaks every rule in turn."""


@cache
def needed_by_default() -> Mapping[str, str]:
    """Rules without which the default GEMM is another, and what of it shows that.

    By id: ``"emulator, D or an event"``, the name of a fault, and so on.
    """
    text = files("fp4ref").joinpath("data", NEEDED_FILE).read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def of_default_gemm() -> list[Rule]:
    """Return the rules that the default GEMM needs."""
    return [rule for rule in RULES if rule.id in needed_by_default()]


def standings(rules: Iterable[Rule]) -> dict[Standing, list[Rule]]:
    """Sort rules by what is known of them from outside."""
    found: dict[Standing, list[Rule]] = {each: [] for each in Standing}
    for rule in rules:
        found[standing(rule)].append(rule)
    return found


def known_share(rules: Iterable[Rule]) -> float:
    """Fraction of rules that are measured on sm_90 or fail an outside kernel."""
    found = standings(rules)
    known = len(found[Standing.SM_90]) + len(found[Standing.OUTSIDE_KERNEL])
    return known / sum(map(len, found.values()))
