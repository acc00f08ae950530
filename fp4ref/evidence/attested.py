"""attested: the rungs of ``fp4ref attest``, and how a transcript moves the rows.

``data/attest.toml`` says what each rung proves and which rows of the fidelity table
each of its parts shows. `moves` holds a transcript against that. Transcripts of cards
with tcgen05 that are kept in ``data/transcripts`` move their rows in the table itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Literal

from fp4ref.errors import InputError
from fp4ref.evidence.transcript import PartAnswer, RungAnswer, Transcript, read

KEPT = "attest_"
"""What the names of kept transcripts begin with."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a rung without asking anybody.

    Attributes
    ----------
    on_hopper
        What a Hopper card can do: ``measured``, ``soft`` or ``cannot``; `why` not.
    limit_s
        Seconds after which it is ended.
    parts
        The rows of the fidelity table that each part shows, by part.
    seeded
        Whether it breaks on purpose.
    """

    name: str
    proves: str
    on_hopper: Literal["measured", "soft", "cannot"]
    parts: Mapping[str, tuple[str, ...]]
    why: str = ""
    limit_s: float = 120.0
    seeded: bool = False


@cache
def facts() -> Mapping[str, Facts]:
    """Every rung, by name, in the order in which they are tried."""
    text = files("fp4ref").joinpath("data", "attest.toml").read_text("utf-8")
    table = tomllib.loads(text)
    found = {}
    for row in table["rung"]:
        row["why"] = row.get("why", "").format_map(table["texts"])
        row["parts"] = {name: tuple(rows) for name, rows in row["parts"].items()}
        found[row["name"]] = Facts(**row)
    return found


def facts_of(name: str) -> Facts:
    """Return one rung.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in facts():
        known = ", ".join(each for each in facts())
        raise InputError(f"no rung {name!r:.40}; there are {known}")
    return facts()[name]


Verdict = Literal["contradicted", "measured", "soft", "emulated", "no answer"]
_ORDER: tuple[Verdict, ...] = (
    "contradicted",
    "measured",
    "soft",
    "emulated",
    "no answer",
)


@dataclass(frozen=True, slots=True)
class Move:
    """What a transcript says of one row.

    Attributes
    ----------
    target
        The architecture, as ``sm_100``.
    detail
        Of a contradiction the first differing word, of a rung without an answer why.
    alone
        Whether the part shows no other row; else any of them may be the wrong one.
    """

    rule: str
    verdict: Verdict
    rung: str
    part: str
    target: str
    detail: str = ""
    alone: bool = True

    def __str__(self) -> str:
        place = f"rung {self.rung}, part {self.part}"
        match self.verdict:
            case "contradicted":
                among = "" if self.alone else "this row or another of the part; "
                return f"**contradicted**: {among}{place}, {self.detail}"
            case "measured":
                return f"measured on {self.target} ({place})"
            case "no answer":
                return f"no answer: rung {self.rung} {self.detail}"
        return f"agrees, {self.verdict} ({place}); no card with tcgen05 said so"


def moves(transcript: Transcript) -> dict[str, Move]:
    """Return what a transcript says of each row, the strongest word of all parts.

    A contradiction in one part outweighs every agreement.
    """
    found: dict[str, Move] = {}
    for move in _all_moves(transcript):
        before = found.get(move.rule)
        if before is None or _rank(move) < _rank(before):
            found[move.rule] = move
    return found


def _rank(move: Move) -> tuple[int, bool]:
    return _ORDER.index(move.verdict), not move.alone


def _all_moves(transcript: Transcript) -> Iterable[Move]:
    for rung in transcript.rungs:
        of_rung = facts_of(rung.name)
        if of_rung.seeded:
            continue
        answers = {part.name: part for part in rung.parts}
        for part, rows in of_rung.parts.items():
            for row in rows:
                move = _move(transcript, rung, answers.get(part), row, len(rows) == 1)
                if move is not None:
                    yield move


def _move(
    transcript: Transcript,
    rung: RungAnswer,
    part: PartAnswer | None,
    row: str,
    alone: bool,
) -> Move | None:
    if part is None:
        if rung.state in ("cannot", "not run", "not modelled"):
            return None
        return Move(row, "no answer", rung.name, "", transcript.target, rung.state)
    if part.state == "recorded":
        return None
    verdict: Verdict = "contradicted"
    detail = str(part.differences[0]) if part.differences else ""
    if part.state == "agrees":
        verdict = rung.how  # type: ignore[assignment]
    return Move(row, verdict, rung.name, part.name, transcript.target, detail, alone)


@cache
def kept() -> tuple[Transcript, ...]:
    """Return the transcripts that travel with the package."""
    folder = files("fp4ref").joinpath("data", "transcripts")
    found = []
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name.startswith(KEPT) and each.name.endswith(".json"):
            with as_file(each) as path:
                found.append(read(path))
    return tuple(found)


def measured_on_blackwell() -> dict[str, str]:
    """Return the rows that kept transcripts of a card with tcgen05 measured.

    Each with its source: card, driver, date and rung.
    """
    found = {}
    for transcript in kept():
        if not str(transcript.facts["compute_capability"]).startswith("10."):
            continue
        for row, move in moves(transcript).items():
            if move.verdict == "measured":
                found[row] = f"{transcript.where}: rung {move.rung} of fp4ref attest"
    return found
