"""verdict: hold the words of a transcript against what the model predicts today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fp4ref.attest.catalogue import question
from fp4ref.attest.question import Question, Words
from fp4ref.errors import InputError
from fp4ref.evidence.attested import Move, facts_of, moves
from fp4ref.evidence.transcript import PartAnswer, RungAnswer, Transcript


def compared(asked: Question, words: Mapping[str, Words]) -> tuple[PartAnswer, ...]:
    """Compare the words of every part with its prediction."""
    return tuple(
        PartAnswer.of(
            part.name,
            words[part.name],
            None if part.predict is None else part.predict(),
            part.where,
        )
        for part in asked.parts
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A transcript, compared anew.

    Attributes
    ----------
    stale
        Rungs that are asked otherwise today: what they say moves no row.
    """

    transcript: Transcript
    stale: tuple[str, ...]

    @property
    def moves(self) -> dict[str, Move]:
        """What it says of each row of the fidelity table."""
        rungs = tuple(r for r in self.transcript.rungs if r.name not in self.stale)
        return moves(replace(self.transcript, rungs=rungs))


def judge(transcript: Transcript) -> Judged:
    """Compare every word with today's prediction; the states in the file do not count.

    Raises
    ------
    InputError
        A rung or a part is not of this ladder.
    """
    rungs, stale = [], []
    for answer in transcript.rungs:
        facts_of(answer.name)
        if answer.parts:
            if question(answer.name).digest() != answer.question:
                stale.append(answer.name)
            else:
                answer = _judged(answer, transcript.path)
        rungs.append(answer)
    return Judged(replace(transcript, rungs=tuple(rungs)), tuple(stale))


def _judged(answer: RungAnswer, path: str) -> RungAnswer:
    asked = question(answer.name)
    words = {part.name: part.words for part in answer.parts}
    counts = {part.name: part.count for part in asked.parts}
    for name, count in counts.items():
        if name not in words or words[name].size != count:
            found = f"{words[name].size} words" if name in words else "missing"
            raise InputError(
                f"{path}: rung {answer.name}, part {name}: {found}, not {count} words; "
                "the file is damaged there"
            )
    parts = compared(asked, words)
    if answer.state not in ("agrees", "differs", "recorded"):
        return replace(answer, parts=parts)
    states = {part.state for part in parts}
    order = ("differs", "agrees", "recorded")
    return replace(
        answer, parts=parts, state=next(each for each in order if each in states)
    )
