"""transcript: what a card, or the emulated machine, answered to ``fp4ref attest``.

One JSON file. `FORMAT` and `VERSION` are its first words; the book's page on attesting
has the fields. Words are kept whole, so that a rule that changes later can be held
against them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.whole_file import write_text

Words = NDArray[np.uint32]
FORMAT, VERSION = "fp4ref attest", 1
SHOWN = 8
"""Differing words that the file names."""

STATES = (
    "agrees",
    "differs",
    "recorded",
    "gave up",
    "hung",
    "faulted",
    "not modelled",
    "cannot",
    "not run",
)
HOW = ("measured", "soft", "emulated", "")


def digest(words: Words) -> str:
    """Sixteen digits of SHA-256 over words, little-endian."""
    return hashlib.sha256(words.astype("<u4").tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Difference:
    """One word that is not as predicted."""

    index: int
    where: str
    predicted: int
    found: int

    def __str__(self) -> str:
        return (
            f"{self.where}: predicted {self.predicted:#010x}, found {self.found:#010x}"
        )


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The words of one part.

    Attributes
    ----------
    state
        ``agrees``, ``differs``, or ``recorded`` without a prediction.
    different
        How many words differ; `differences` has the first.
    """

    name: str
    state: str
    words: Words
    predicted: str = ""
    different: int = 0
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(
        cls, name: str, words: Words, predicted: Words | None, where: Any = str
    ) -> PartAnswer:
        """Compare words with their prediction; `where` names a word by its index."""
        if predicted is None:
            return cls(name, "recorded", words)
        unequal = np.flatnonzero(words != predicted)
        first = tuple(
            Difference(int(i), where(int(i)), int(predicted[i]), int(words[i]))
            for i in unequal[:SHOWN]
        )
        state = "differs" if unequal.size else "agrees"
        return cls(name, state, words, digest(predicted), int(unequal.size), first)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        packed = zlib.compress(self.words.astype("<u4").tobytes(), 9)
        return {
            "name": self.name,
            "state": self.state,
            "count": int(self.words.size),
            "digest": digest(self.words),
            "predicted": self.predicted,
            "different": self.different,
            "differences": [
                [d.index, d.where, f"{d.predicted:#010x}", f"{d.found:#010x}"]
                for d in self.differences
            ],
            "words": base64.b64encode(packed).decode(),
        }


@dataclass(frozen=True, slots=True)
class RungAnswer:
    """What became of one rung.

    Attributes
    ----------
    how
        ``measured``, ``soft`` or ``emulated``; '' if it did not run.
    detail
        The fault, the reason, or the waits that gave up.
    question
        Digest of what was asked.
    """

    name: str
    state: str
    how: str = ""
    seconds: float = 0.0
    detail: str = ""
    question: str = ""
    parts: tuple[PartAnswer, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "name": self.name,
            "state": self.state,
            "how": self.how,
            "seconds": round(self.seconds, 2),
            "detail": self.detail,
            "question": self.question,
            "parts": [part.to_dict() for part in self.parts],
        }


FACTS = (
    *("backend", "card", "compute_capability", "driver", "nvrtc", "clocks_mhz"),
    *("fp4ref", "date"),
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """One climb.

    Attributes
    ----------
    facts
        By the names of `FACTS`; a compute capability is ``"10.0"``.
    complete
        Whether the ladder was climbed to its end.
    """

    facts: Mapping[str, Any]
    rungs: tuple[RungAnswer, ...] = ()
    complete: bool = False
    path: str = field(default="", compare=False)

    @property
    def target(self) -> str:
        """The architecture, as ``sm_100``."""
        return "sm_" + str(self.facts["compute_capability"]).replace(".", "")

    @property
    def where(self) -> str:
        """Card, driver and date."""
        facts = self.facts
        if not facts["card"]:
            return f"emulated machine, {facts['date']}"
        return f"{facts['card']}, driver {facts['driver']}, {facts['date']}"

    def write(self, path: Path) -> None:
        """Write the file whole.

        Raises
        ------
        InputError
            It cannot be written.
        """
        head = {"format": FORMAT, "version": VERSION, "complete": self.complete}
        body = {"rungs": [rung.to_dict() for rung in self.rungs]}
        write_text(path, json.dumps(head | dict(self.facts) | body, indent=1) + "\n")


# -- reading -----------------------------------------------------------------------


def read(path: Path) -> Transcript:
    """Read and check a file.

    Raises
    ------
    InputError
        It is not there, cut off, damaged, of another version, or no transcript; the
        message says where.
    """
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a transcript") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is no text: not a transcript, or damaged there"
        ) from None
    except (json.JSONDecodeError, RecursionError) as error:
        at = getattr(error, "lineno", 0)
        raise InputError(
            f"{path}: cut off or damaged at line {at}; "
            "take the file that fp4ref attest wrote, whole"
        ) from None
    return _Reader(str(path)).transcript(raw)


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path

    def transcript(self, raw: Any) -> Transcript:
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise InputError(
                f"{self.path}: no transcript; fp4ref attest --out FILE writes one"
            )
        if raw.get("version") != VERSION:
            raise InputError(
                f"{self.path}: version {raw.get('version')!r:.20}; this fp4ref reads "
                f"version {VERSION}. Take the fp4ref that wrote it, or climb again"
            )
        facts = {name: self.get(raw, name, "the head", object) for name in FACTS}
        complete = self.get(raw, "complete", "the head", bool)
        rungs = []
        for number, each in enumerate(self.get(raw, "rungs", "the head", list), 1):
            rungs.append(self.rung(each, f"rung {number}"))
        return Transcript(facts, tuple(rungs), complete, self.path)

    def rung(self, raw: Any, where: str) -> RungAnswer:
        name = self.get(raw, "name", where, str)
        where = f"{where} ({name:.40})"
        state = self.get(raw, "state", where, str)
        how = self.get(raw, "how", where, str)
        if state not in STATES or how not in HOW:
            self.fail(where, f"state {state!r:.30}, {how!r:.30}")
        parts = self.get(raw, "parts", where, list)
        return RungAnswer(
            name,
            state,
            how,
            float(self.get(raw, "seconds", where, (int, float))),
            self.get(raw, "detail", where, str),
            self.get(raw, "question", where, str),
            tuple(self.part(each, where) for each in parts),
        )

    def part(self, raw: Any, where: str) -> PartAnswer:
        name = self.get(raw, "name", where, str)
        where = f"{where}, part {name:.40}"
        count = self.get(raw, "count", where, int)
        text = self.get(raw, "words", where, str)
        try:
            data = zlib.decompress(base64.b64decode(text, validate=True))
        except (binascii.Error, zlib.error, ValueError):
            self.fail(where, "its words are damaged")
        if len(data) != 4 * count:
            self.fail(where, f"{len(data)} bytes of {count} words")
        words = np.frombuffer(data, "<u4").astype(np.uint32)
        if digest(words) != self.get(raw, "digest", where, str):
            self.fail(where, "its words do not have its digest")
        try:
            differences = tuple(
                Difference(int(i), str(at), int(predicted, 16), int(found, 16))
                for i, at, predicted, found in self.get(raw, "differences", where, list)
            )
        except (ValueError, TypeError):
            self.fail(where, "its differences are damaged")
        return PartAnswer(
            name,
            self.get(raw, "state", where, str),
            words,
            self.get(raw, "predicted", where, str),
            self.get(raw, "different", where, int),
            differences,
        )

    def get(self, raw: Any, key: str, where: str, kind: Any) -> Any:
        if not isinstance(raw, dict) or key not in raw:
            self.fail(where, f"{key!r} is missing")
        if not isinstance(raw[key], kind):
            self.fail(where, f"{key!r} is {type(raw[key]).__name__}")
        return raw[key]

    def fail(self, where: str, what: str) -> NoReturn:
        raise InputError(
            f"{self.path}: {where}: {what}; the file is damaged there. "
            "Take the file that fp4ref attest wrote, whole"
        )
