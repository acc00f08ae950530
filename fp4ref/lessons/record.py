"""record: what CUTLASS 4.2.0's files, its compiled types and ptxas say, as data.

The errata compare the documents with CUTLASS, which a reader need not have installed.
``conformance/record`` asks the pinned packages and writes ``data/record.json``; tests
ask them again. Nothing here is typed in.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fp4ref.errors import Fp4refError


class RecordError(Fp4refError):
    """The record has no such entry."""


@cache
def record() -> dict[str, Any]:
    """Return the whole record; see ``conformance/record/questions.toml``."""
    path = files("fp4ref").joinpath("data", "record.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def entry(*path: str) -> Any:
    """Return one entry by the names that lead to it.

    Raises
    ------
    RecordError
        There is none.
    """
    found: Any = record()
    for name in path:
        if name not in found:
            raise RecordError(f"the record has no {'.'.join(path)}")
        found = found[name]
    return found


def lines(key: str) -> list[str]:
    """Words that a pattern finds in a header, in the file's order."""
    return list(entry("lines", key, "found"))


def line(key: str) -> str:
    """Return the one word that a pattern finds in a header, however often.

    Raises
    ------
    RecordError
        It finds several words.
    """
    found = set(lines(key))
    if len(found) != 1:
        raise RecordError(f"{key}: {sorted(found)} are several words")
    return found.pop()


def compiled(program: str, name: str) -> Any:
    """Return a value that a program prints of CUTLASS's compiled types."""
    return entry("types", program, name)


def is_built(program: str) -> bool:
    """Whether no static assertion of CUTLASS refuses a program."""
    return not entry("refused", program)


def is_assembled(key: str) -> bool:
    """Whether ptxas takes a text."""
    return not entry("ptx", key, "error")
