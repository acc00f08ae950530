"""parameters: published figures of a B200, each with its range and its source.

A model takes them by name, and is run at three corners: the ends of all ranges that
make a kernel slow, the published values, and the ends that make it fast. What differs
between the corners is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from fp4ref.errors import InputError
from fp4ref.files.toml_rows import not_negative, parse
from fp4ref.files.toml_rows import rows as tables_of

FILE: Final = "fp4ref/data/b200_parameters.toml"
Trust = Literal["A", "B", "C", "D", "X"]
_TRUST: Final = ("A", "B", "C", "D", "X")
_TEXTS: Final = ("name", "unit", "card", "trust", "source", "remark")
_NUMBERS: Final = ("value", "low", "high")


class Corner(StrEnum):
    """Which end of every range a model is run at."""

    SLOW = "slow"
    PUBLISHED = "published"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One published figure.

    Attributes
    ----------
    value, low, high
        In `unit`; None in a row that is not to be used.
    faster
        Which end of the range makes a kernel faster.
    card
        B200, or a card of that SM generation whose figure stands in.
    trust
        A to D, as the head of the file says; X is not to be used.
    line
        Where the row begins in its file.
    """

    name: str
    unit: str
    card: str
    trust: Trust
    source: str
    remark: str
    line: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    faster: Literal["low", "high"] | None = None

    @property
    def usable(self) -> bool:
        """Whether a model may take it."""
        return self.trust != "X"

    def at(self, corner: Corner) -> float:
        """The value, or the end of the range that belongs to a corner.

        Raises
        ------
        InputError
            The row is not to be used.
        """
        if self.value is None or self.low is None or self.high is None:
            raise InputError(
                f"{FILE}:{self.line}: {self.name}: do not use: {self.remark} "
                f"({self.source})"
            )
        if corner is Corner.PUBLISHED:
            return self.value
        wants_high = (self.faster == "high") is (corner is Corner.FAST)
        return self.high if wants_high else self.low


@dataclass(frozen=True, slots=True)
class Machine:
    """The figures that a bound needs, of one machine.

    Attributes
    ----------
    clock
        Hz.
    power_slowdown
        How many times slower the clock is for the data at hand.
    smem_bandwidth, tmem_read_bandwidth
        Bytes a clock, of one SM.
    smem_port_shared
        Share of fills and staging that takes a slot of the MMA's reads, 0 to 1.
    mma_compute_interval
        Clocks for a column of N.
    scale_copy_interval
        Clocks for a ``tcgen05.cp`` of one scale atom.
    l2_bandwidth, hbm_bandwidth
        Bytes a second, of the whole chip.
    first_load_latency, mma_end_latency
        Clocks.
    launch
        Seconds.
    """

    sms: float
    clock: float
    power_slowdown: float
    smem_bandwidth: float
    smem_port_shared: float
    mma_compute_interval: float
    scale_copy_interval: float
    tmem_read_bandwidth: float
    l2_bandwidth: float
    hbm_bandwidth: float
    first_load_latency: float
    mma_end_latency: float
    launch: float


MAY_BE_ZERO: Final = (
    "smem_port_shared",
    "scale_copy_interval",
    "first_load_latency",
    "mma_end_latency",
    "launch",
)
"""Figures of a `Machine` of which zero means something; the others divide."""


@dataclass(frozen=True, slots=True)
class Parameters(Mapping[str, Parameter]):
    """All rows, by name."""

    rows: tuple[Parameter, ...]

    def __getitem__(self, name: str) -> Parameter:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def ask(self, name: str, where: str) -> Parameter:
        """Return the row that somebody names.

        Parameters
        ----------
        where
            Who asks, ``file:line``.

        Raises
        ------
        InputError
            There is none, or it is not to be used.
        """
        if name not in self:
            known = ", ".join(row.name for row in self.rows if row.usable)
            raise InputError(f"{where}: {name}: no such parameter; there are {known}")
        row = self[name]
        if not row.usable:
            raise InputError(
                f"{where}: {name}: do not use: {row.remark} ({FILE}:{row.line})"
            )
        return row

    def override(self, name: str, value: object, where: str) -> Parameters:
        """Return the rows with one of them fixed to a value within its range.

        Parameters
        ----------
        where
            Who asks, ``file:line``.

        Raises
        ------
        InputError
            No such row, no number, negative, or outside the published range.
        """
        row = self.ask(name, where)
        number = not_negative(value, f"{where}: {name}")
        low, high = row.low, row.high
        if low is None or high is None or not low <= number <= high:
            raise InputError(
                f"{where}: {name} = {number:g} {row.unit}: published is {low:g} to "
                f"{high:g} ({FILE}:{row.line}). Stay within it; for a made-up machine "
                "build a fp4ref.parameters.Machine"
            )
        fixed = replace(row, value=number, low=number, high=number)
        return Parameters(tuple(fixed if r is row else r for r in self.rows))

    def machine(self, corner: Corner) -> Machine:
        """Return the machine at one corner."""
        return Machine(**{f.name: self[f.name].at(corner) for f in fields(Machine)})


@cache
def published() -> Parameters:
    """Return the rows that come with the package."""
    text = resources.files("fp4ref.data").joinpath("b200_parameters.toml")
    return read(text.read_text("utf-8"), FILE)


def read(text: str, file: str) -> Parameters:
    """Read rows.

    Parameters
    ----------
    text
        TOML.
    file
        How messages call it.

    Raises
    ------
    InputError
        With file and line: no TOML, a field missing or unknown, a number that is
        negative or not finite, a value outside its range, or two rows of one name.
    """
    found = parse(text, file)
    rows: list[Parameter] = []
    for table, line in tables_of(found, text, file, "parameter"):
        row = _row(table, file, line)
        if row.name in {each.name for each in rows}:
            raise InputError(f"{file}:{row.line}: {row.name}: there is one already")
        rows.append(row)
    return Parameters(tuple(rows))


def _row(table: dict[str, Any], file: str, line: int) -> Parameter:
    where = f"{file}:{line}: {table.get('name', 'a row without a name')}"
    unusable = table.get("trust") == "X"
    needed = {*_TEXTS} if unusable else {*_TEXTS, *_NUMBERS, "faster"}
    if needed != set(table):
        raise InputError(
            f"{where}: missing: {sorted(needed - set(table))}; unknown: "
            f"{sorted(set(table) - needed)}"
        )
    if any(not isinstance(table[t], str) or not table[t] for t in _TEXTS):
        raise InputError(f"{where}: {', '.join(_TEXTS)} are texts and not empty")
    if table["trust"] not in _TRUST:
        raise InputError(f"{where}: trust {table['trust']!r}; need A, B, C, D or X")
    if unusable:
        return Parameter(**table, line=line)
    if table["faster"] not in ("low", "high"):
        raise InputError(f"{where}: faster is 'low' or 'high'")
    numbers = {name: not_negative(table[name], f"{where}.{name}") for name in _NUMBERS}
    if not numbers["low"] <= numbers["value"] <= numbers["high"]:
        raise InputError(f"{where}: the value lies outside of low to high")
    return Parameter(**table | numbers, line=line)
