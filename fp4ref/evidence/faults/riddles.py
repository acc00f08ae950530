"""riddles: mistakes of the gallery as questions, with the answers that are believed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fp4ref.evidence.faults.gallery import Fault, fault


@dataclass(frozen=True, slots=True)
class Belief:
    """A wrong answer, and why it is wrong."""

    belief: str
    because: str


@dataclass(frozen=True, slots=True)
class Riddle:
    """A question about a mistake.

    Attributes
    ----------
    right
        The answer.
    proof
        Words of the run's report that decide it.
    wrong
        Answers that are believed.
    """

    fault: Fault
    question: str
    right: str
    proof: str
    wrong: tuple[Belief, ...]


def _riddle(row: dict[str, Any]) -> Riddle:
    wrong = tuple(Belief(**each) for each in row["wrong"])
    return Riddle(
        fault(row["fault"]), row["question"], row["right"], row["proof"], wrong
    )


def _read() -> tuple[Riddle, ...]:
    file = resources.files("fp4ref.evidence.faults") / "riddles.toml"
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["riddle"]
    return tuple(map(_riddle, rows))


RIDDLES: tuple[Riddle, ...] = _read()
"""From barriers to data, in the order in which they are asked."""
