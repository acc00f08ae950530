"""toml_rows: the tables [[name]] of a TOML file, each with the line where it begins."""

from __future__ import annotations

import re
import tomllib
from math import isfinite
from typing import Any

from fp4ref.errors import InputError


def parse(text: str, file: str) -> dict[str, Any]:
    """Return what a text in TOML has.

    Parameters
    ----------
    file
        How messages call it.

    Raises
    ------
    InputError
        It is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: of too many digits too
        raise InputError(f"{file}: no TOML: {error}") from None


def rows(
    found: dict[str, Any], text: str, file: str, name: str
) -> list[tuple[dict[str, Any], int]]:
    """Return the tables of a name with their lines; none if there is no such name.

    Parameters
    ----------
    found
        What `parse` returned for the text.

    Raises
    ------
    InputError
        With file and line: the name is no list of tables, or written in another way.
    """
    tables = found.get(name, [])
    head = rf"^[ \t]*\[\[[ \t]*{re.escape(name)}[ \t]*\]\]"
    lines = [text.count("\n", 0, m.start()) + 1 for m in re.finditer(head, text, re.M)]
    if not isinstance(tables, list) or len(lines) != len(tables):
        where = f"{file}:{line_of(text, name)}"
        raise InputError(f"{where}: {name}: write each as a table [[{name}]]")
    return list(zip(tables, lines, strict=True))


def line_of(text: str, name: str) -> int:
    """Line of the first place that gives a name a value or a table; 1 for none."""
    word = rf"""["']?{re.escape(name)}["']?"""
    found = re.search(rf"^\s*(?:\[+\s*)?{word}\s*[=\].]", text, re.M)
    if found is None:
        found = re.search(word, text)
    return text.count("\n", 0, found.end()) + 1 if found else 1


def finite(value: object, name: str) -> float:
    """Return a number.

    Parameters
    ----------
    name
        How the message calls it.

    Raises
    ------
    InputError
        It is none, not finite, or too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} = {value!r:.60}: need a number")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{name}: need a number that a float can hold") from None
    if not isfinite(number):
        raise InputError(f"{name} = {value}: need a finite number")
    return number


def not_negative(value: object, name: str) -> float:
    """Return a number of zero or more.

    Raises
    ------
    InputError
        As `finite`, or it is negative.
    """
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not value >= 0
    ):
        raise InputError(f"{name} = {value}: need a finite number, and not a negative")
    return finite(value, name)
