"""fidelity: on what each modelled behaviour rests, and which test checks it.

A row says what the machine does, the class of evidence for it, its source, and a test
that fails if the model does something else. The test proves that the model follows the
rule, never that silicon does: that is what the evidence class is for. No row about the
MMA was measured here on a Blackwell card. The rows are in ``data/fidelity.toml``,
those of the epilogue and its builder in ``data/fidelity_builder.toml``, those of the
recipes in ``data/fidelity_recipes.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.resources import files
from itertools import chain
from typing import Any


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
        return asdict(self) | {"evidence": self.evidence.value}


_FILES = ("fidelity.toml", "fidelity_builder.toml", "fidelity_recipes.toml")


def _read_rules() -> tuple[Rule, ...]:
    data = files("fp4ref").joinpath("data")
    tables = [tomllib.loads(data.joinpath(f).read_text("utf-8")) for f in _FILES]
    rules = []
    for row in chain.from_iterable(table["rule"] for table in tables):
        row["evidence"] = Evidence[row["evidence"]]
        row["source"] = row["source"].format_map(tables[0]["texts"])
        row["mutation"] = Mutation(**row["mutation"])
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
