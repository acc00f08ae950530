"""fitted: what the model of document 003's kernel has from the baseline's cycles."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.files.toml_rows import not_negative, parse
from fp4ref.files.toml_rows import rows as tables_of

FILE: Final = "fp4ref/data/lab_fitted.toml"
_TEXTS: Final = ("name", "unit", "fits", "published", "remark")
_NUMBERS: Final = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is fitted to the baseline's cycles, and to nothing else.

    Attributes
    ----------
    first_load_latency, smem_load_latency, epilogue_element
        Parameters of these names (`fp4ref.parameters`), within their published range.
    unevenness
        Standard deviation of a warp's phase 1 over its mean.
    """

    first_load_latency: float
    smem_load_latency: float
    epilogue_element: float
    unevenness: float


@dataclass(frozen=True, slots=True)
class Row:
    """One fitted figure.

    Attributes
    ----------
    low, high
        What the fit had to stay in.
    fits
        The cycle count that it is there for.
    published
        The parameter whose range that is; empty if nothing is published.
    """

    name: str
    unit: str
    fits: str
    published: str
    remark: str
    value: float
    low: float
    high: float


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of ``fp4ref/data/lab_fitted.toml``."""
    text = resources.files("fp4ref.data").joinpath("lab_fitted.toml")
    return read(text.read_text("utf-8"), FILE)


def fitted() -> Fitted:
    """Return the fitted figures."""
    return Fitted(**{row.name: row.value for row in rows()})


def read(text: str, file: str) -> tuple[Row, ...]:
    """Read rows.

    Raises
    ------
    InputError
        With file and line: no TOML, a field missing, unknown or of another kind, a
        value outside of its range, or not one row for each field of `Fitted`.
    """
    tables = tables_of(parse(text, file), text, file, "fitted")
    found = tuple(_row(table, f"{file}:{line}") for table, line in tables)
    needed = sorted(each.name for each in fields(Fitted))
    if sorted(row.name for row in found) != needed:
        raise InputError(f"{file}:1: need one row for each of {', '.join(needed)}")
    return found


def _row(table: dict[str, Any], where: str) -> Row:
    where = f"{where}: {table.get('name', 'a row without a name')}"
    if set(table) != {*_TEXTS, *_NUMBERS}:
        raise InputError(f"{where}: need {', '.join((*_TEXTS, *_NUMBERS))}")
    for name in _TEXTS:
        if not isinstance(table[name], str):
            raise InputError(f"{where}: {name}: need a text")
    for name in _NUMBERS:
        not_negative(table[name], f"{where}: {name}")
    if not table["low"] <= table["value"] <= table["high"]:
        raise InputError(f"{where}: the value lies outside of low to high")
    return Row(**table)
