"""errata: what the source documents say, what is so, and a cell that tells them apart.

The entries are in ``data/errata.toml``. An entry holds what a document claims as a
value; the true one is computed by the function that `truth` names, never written down.
Documents are numbered 000 (the walk through one GEMM, whose sections are the frames)
to 003.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any

from fp4ref.errors import Fp4refError, InputError
from fp4ref.lessons.answer import first_difference
from fp4ref.lessons.verdict import BLANK, Result, announce


class ErrataError(Fp4refError):
    """An entry names a function that does not exist or cannot be computed."""


@dataclass(frozen=True)
class Entry:
    """One thing that a document says and that is not so.

    Attributes
    ----------
    frames
        Frames of the index that it is about; empty for the other documents.
    document
        Which source document: ``"000"`` to ``"003"``.
    claimed
        What the document says, as a value.
    claim
        The same in our words.
    truth
        ``module:function`` that computes the value that is so.
    source
        Where the truth is written: a CUTLASS file or a section of the PTX ISA.
    evidence
        How the truth is known.
    input
        What the truth is computed from, so that another input gives another value:
        ``module:NAME`` or ``module:NAME.field``, a constant or a document's figure;
        ``record:`` and the way to an entry of `fp4ref.lessons.record`;
        ``trace:operation``, events of the default GEMM;
        ``ptx:prefix``, instructions of the packaged kernel; ``sass:``, its code.
    notebook
        Where it is taught.
    """

    id: str
    question: str
    claimed: Any
    claim: str
    truth: str
    explanation: str
    source: str
    evidence: str
    notebook: str
    document: str = "000"
    frames: tuple[str, ...] = ()
    unit: str = ""
    input: str = ""

    @cached_property
    def true_value(self) -> Any:
        """What is so, computed.

        Raises
        ------
        ErrataError
            The function does not exist or raises.
        """
        module, _, name = self.truth.partition(":")
        try:
            return getattr(import_module(module), name)()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ErrataError(
                f"erratum {self.id}: {self.truth} fails: {reason}"
            ) from error

    def verdict(self, value: Any) -> Result:
        """Return whether a value is the true one, and what the document says."""
        if value is ... or value is None:
            return self._result(False, BLANK, self.question)
        if first_difference(value, self.true_value, self.unit) is None:
            return self._result(True, self.explanation, f"See: {self.source}.")
        if first_difference(value, self.claimed, self.unit) is None:
            says = f"That is what the document says. {self.claim}"
            return self._result(False, says, f"It is not so: {self.explanation}")
        difference = first_difference(value, self.true_value, self.unit)
        assert difference is not None
        where = f"At {difference.where}: " if difference.where else ""
        kind = difference.expected == ""
        end = "." if kind else " is neither the document's value nor the true one."
        return self._result(False, f"{where}{difference.what}{end}", self.question)

    def _result(self, passed: bool, message: str, *more: str) -> Result:
        return Result(self.id, passed, message, more, what="erratum")


class _Errata(Mapping[str, Entry]):
    """The entries by id, in the file's order; read at first use."""

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        path = files("fp4ref").joinpath("data", "errata.toml")
        found: dict[str, Entry] = {}
        for fields in tomllib.loads(path.read_text("utf-8"))["entry"]:
            entry = Entry(**(fields | {"frames": tuple(fields.get("frames", ()))}))
            if entry.id in found:
                raise ErrataError(f"erratum {entry.id} is there twice")
            found[entry.id] = entry
        return found

    def __getitem__(self, id: str) -> Entry:
        return self._entries[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


ERRATA: Mapping[str, Entry] = _Errata()
"""All entries by id."""


def entry(id: str) -> Entry:
    """Return one entry.

    Raises
    ------
    InputError
        There is none; the message names near ids.
    """
    found = ERRATA.get(str(id))
    if found is None:
        near = difflib.get_close_matches(str(id), ERRATA, n=3, cutoff=0.4)
        other = f"; near it: {', '.join(near)}" if near else ""
        raise InputError(f"There is no erratum {id!r}{other}.")
    return found


def ask(id: str, value: Any) -> Result:
    """Compare a value with what a document claims and with what is so; raises nothing.

    Parameters
    ----------
    id
        A frame, ``"1.4"``, or an entry of another document, ``"002-1"``.
    """
    try:
        result = entry(id).verdict(value)
    except Fp4refError as error:
        result = Result(str(id), False, str(error), what="erratum")
    return announce(result)
