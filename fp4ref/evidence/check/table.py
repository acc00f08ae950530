"""table: a TOML file read key by key; what is wrong is said with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.files.array_file import open_regular

LARGEST: Final = 1 << 20
"""Bytes of a launch file."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]+\")\s*=")

Path_ = tuple[str | int, ...]


def read_toml(path: Path) -> Table:
    """Read a file.

    Raises
    ------
    InputError
        It cannot be read, or is no TOML; the message has the line.
    """
    with open_regular(path) as opened:
        raw = opened.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InputError(f"{path}: more than {LARGEST:,} bytes; this is no launch file")
    try:
        text = raw.decode("utf-8")
        values = tomllib.loads(text)
    except UnicodeDecodeError:
        raise InputError(f"{path}: not in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: no TOML: {error}") from None
    return Table(values, _lines(text), (), str(path))


def _lines(text: str) -> dict[Path_, int]:
    """Line of every header and key, by its place in the file."""
    found: dict[Path_, int] = {}
    counts: dict[str, int] = {}
    table: Path_ = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            names = [part.strip().strip('"') for part in header[2].split(".")]
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
            table = ()
            for i, name in enumerate(names):
                table = (*table, name)
                of = ".".join(names[: i + 1])
                if of in counts:
                    table = (*table, counts[of])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1].strip('"')), number)
    return found


class Table:
    """One table of the file.

    Parameters
    ----------
    values
        Its keys.
    lines
        Line of each place in the file.
    at
        Its own place.
    path
        The file.
    """

    def __init__(
        self, values: dict[str, Any], lines: dict[Path_, int], at: Path_, path: str
    ) -> None:
        self.values, self.lines, self.at, self.path = values, lines, at, path
        self._known: set[str] = set()

    def where(self, key: str | None = None) -> str:
        """Return the file and the line of a key, or of the table."""
        at = self.at if key is None else (*self.at, key)
        while at and at not in self.lines:
            at = at[:-1]
        line = self.lines.get(at)
        return f"{self.path}, line {line}" if line else self.path

    def error(self, what: str, key: str | None = None) -> InputError:
        """Return an error at a key."""
        return InputError(f"{self.where(key)}: {what}")

    def take(self, key: str, kind: type[Any], default: Any = None) -> Any:
        """Return a value of a type; `default` if it is not there."""
        self._known.add(key)
        if key not in self.values:
            return default
        value = self.values[key]
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and kind is not bool):
            word = {str: "a text", int: "a whole number", float: "a number"}
            word |= {bool: "true or false", list: "a list", dict: "a table"}
            shown = repr(value)[:60]
            raise self.error(f"{key} = {shown}: need {word[kind]}", key)
        return value

    def need(self, key: str, kind: type[Any]) -> Any:
        """Return a value that has to be there."""
        if (value := self.take(key, kind)) is None:
            raise self.error(f"{key} is missing")
        return value

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """Return a whole number in a range."""
        value: int = self.take(key, int, default)
        if not least <= value <= most:
            raise self.error(f"{key} = {value}: {least:,} to {most:,}", key)
        return value

    def wholes(
        self, key: str, default: tuple[int, ...], least: int = 1, most: int = 1 << 40
    ) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        value = self.take(key, list, list(default))
        for each in value:
            if isinstance(each, bool) or not isinstance(each, int):
                raise self.error(f"{key} = {value!r:.60}: need whole numbers", key)
            if not least <= each <= most:
                raise self.error(f"{key}: {each}; {least:,} to {most:,}", key)
        return tuple(value)

    def choice(self, key: str, choices: Collection[Any], default: Any = None) -> Any:
        """Return one of some values."""
        self._known.add(key)
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f"{key} is missing; one of {_listed(choices)}")
        for each in choices:
            if type(each) is type(value) and each == value:
                return each
        raise self.error(f"{key} = {value!r:.40}: one of {_listed(choices)}", key)

    def inner(self, key: str) -> Table | None:
        """Return a table inside, if it is there."""
        if (value := self.take(key, dict)) is None:
            return None
        return Table(value, self.lines, (*self.at, key), self.path)

    def each(self, key: str) -> list[Table]:
        """Return the tables of a list of them."""
        found = []
        for i, value in enumerate(self.take(key, list, [])):
            if not isinstance(value, dict):
                raise self.error(f"{key}: {value!r:.40} is no table", key)
            found.append(Table(value, self.lines, (*self.at, key, i), self.path))
        return found

    def done(self) -> None:
        """Refuse a key that nobody asked for."""
        for key in self.values:
            if key not in self._known:
                near = get_close_matches(key, self._known, 1)
                hint = f"; do you mean {near[0]}?" if near else ""
                known = f"; known here: {_listed(sorted(self._known))}"
                raise self.error(f"unknown key {key!r:.60}{hint or known}", key)


def _listed(values: Collection[Any]) -> str:
    return ", ".join(map(str, values))
