"""records: document 003's experiments, each with what it gave and what it rests on.

The figures are the document's. A record's `switch` names what changed in its kernel, on
top of the switches of the record that it starts from; what a model predicts of these
switches is compared with the figure that has `compared`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.files.toml_rows import finite, line_of, parse
from fp4ref.files.toml_rows import rows as tables_of

FILE: Final = "fp4ref/data/lab_records.toml"
STATES: Final = ("done", "rejected", "open", "never run", "ruled out")
VERDICTS: Final = ("go", "no go", "open", "not run")
KINDS: Final = (
    *("time", "tile", "K-loop", "phase", "wait", "registers", "SASS", "spread"),
    *("rate", "SMEM"),
)
CYCLES: Final = (
    *("TMA0 wait", "K-loop", "epi wait", "ml wait", "phase 1", "phase 2B", "tile"),
)
"""The seven cycle counts of the baseline."""
RUN_TIME: Final = "run time"
TILES: Final = "tiles"
TEMPLATE: Final = (
    *("success", "fail_fast", "effort", "rollback", "result", "verdict"),
)
"""Lines of the document's go/no-go template, and what came of them."""

_TEXTS: Final = ("id", "title", "state", "switch", "why", *TEMPLATE)
_LISTS: Final = ("depends", "rests_on")
_NAMED: Final = (*_LISTS, "also", "undone")
_OPTIONAL: Final = {"also", "undone", "expected", "figure"}
_GIVEN: Final = ("after", "change", "factor")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a record.

    Attributes
    ----------
    what
        A part of the kernel's time, or what was counted.
    before, after
        In `unit`; None where the document has one of them only.
    compared
        Whether models are compared by it.
    """

    what: str
    kind: str
    unit: str
    before: float | None
    after: float | None
    compared: bool = False

    @property
    def ratio(self) -> float | None:
        """After over before; None without either."""
        if self.before is None or self.after is None:
            return None
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Record:
    """One experiment.

    Attributes
    ----------
    state, verdict
        One of `STATES` and one of `VERDICTS`.
    base
        Record that it starts from; empty for the baseline.
    switch, also
        What changed, by name.
    undone
        What its starting point had and no later kernel has, by name.
    depends
        Records that had to come first.
    rests_on
        Records whose figures it uses.
    place
        Place in the document's order; 0 for none.
    expected
        Changes in cycles that stood to reason before, and `TILES` of the new kernel for
        one of the old.
    line
        Where it begins in its file.
    """

    id: str
    title: str
    state: str
    verdict: str
    base: str
    switch: str
    also: tuple[str, ...]
    undone: tuple[str, ...]
    depends: tuple[str, ...]
    rests_on: tuple[str, ...]
    place: int
    success: str
    fail_fast: str
    effort: str
    rollback: str
    result: str
    why: str
    expected: dict[str, float]
    figures: tuple[Figure, ...]
    line: int

    @property
    def compared(self) -> Figure | None:
        """The figure by which models are compared; None if there is none."""
        return next((each for each in self.figures if each.compared), None)


@dataclass(frozen=True, slots=True)
class Records(Mapping[str, Record]):
    """All experiments, by id.

    Attributes
    ----------
    cycles
        The seven cycle counts of the baseline.
    run_time
        Of the baseline, in milliseconds.
    source
        Where the document has them.
    """

    rows: tuple[Record, ...]
    cycles: dict[str, float]
    run_time: float
    source: str

    def __getitem__(self, id: str) -> Record:
        for row in self.rows:
            if row.id == id:
                return row
        raise KeyError(id)

    def __iter__(self) -> Iterator[str]:
        return (row.id for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def switches(self, id: str) -> tuple[str, ...]:
        """Return what differs from the baseline: of the base first, then its own.

        Raises
        ------
        InputError
            There is no such record.
        """
        if id not in self:
            known = ", ".join(self)
            raise InputError(f"record {id!r}: there is none; there are {known}")
        row = self[id]
        return (*(self.switches(row.base) if row.base else ()), row.switch, *row.also)

    def base_switches(self, id: str) -> tuple[str, ...]:
        """Return what a record's starting point differs in from the baseline."""
        base = self[id].base
        return (*(self.switches(base) if base else ()), *self[id].undone)

    @property
    def compared(self) -> tuple[Record, ...]:
        """Records by which models are compared."""
        return tuple(row for row in self.rows if row.compared)

    @property
    def order(self) -> tuple[str, ...]:
        """Experiments in the order that the document recommends."""
        placed = sorted((row.place, row.id) for row in self.rows if row.place)
        return tuple(id for _, id in placed)


@cache
def records() -> Records:
    """Return the records that come with the package."""
    text = resources.files("fp4ref.data").joinpath("lab_records.toml")
    return read(text.read_text("utf-8"), FILE)


def read(text: str, file: str) -> Records:
    """Read records.

    Parameters
    ----------
    text
        TOML.
    file
        How messages call it.

    Raises
    ------
    InputError
        With file and line: no TOML, a field missing, unknown or of another kind, two
        records of one id, a record that is named and not there, or a circle.
    """
    found = parse(text, file)
    tables = tables_of(found, text, file, "record")
    if not tables:
        raise InputError(f"{file}:1: record: write each as a table [[record]]")
    rows: list[Record] = []
    for table, line in tables:
        row = _record(table, file, line)
        if row.id in {each.id for each in rows}:
            raise InputError(f"{file}:{line}: {row.id}: there is one already")
        rows.append(row)
    _check_edges(rows, file)
    where = f"{file}:{line_of(text, 'baseline')}: baseline"
    return Records(tuple(rows), *_baseline(found, where))


def _baseline(found: dict[str, Any], where: str) -> tuple[dict[str, float], float, str]:
    table = found.get("baseline", {})
    cycles = table.get("cycles", {}) if isinstance(table, dict) else {}
    if not isinstance(cycles, dict) or set(cycles) != set(CYCLES):
        raise InputError(f"{where}: need cycles of {', '.join(CYCLES)}")
    counts = {name: _positive(cycles[name], f"{where}: {name}") for name in CYCLES}
    source = table.get("source")
    if not isinstance(source, str) or not source:
        raise InputError(f"{where}: source: need a text")
    return counts, _positive(table.get("run_time"), f"{where}: run_time"), source


def _record(table: dict[str, Any], file: str, line: int) -> Record:
    where = f"{file}:{line}: {table.get('id', 'a record without an id')}"
    needed = {*_TEXTS, *_LISTS, "base", "place"}
    given = set(table)
    if needed - given or given - needed - _OPTIONAL:
        missing, unknown = sorted(needed - given), sorted(given - needed - _OPTIONAL)
        raise InputError(f"{where}: missing: {missing}; unknown: {unknown}")
    for name in _TEXTS:
        if not isinstance(table[name], str) or not table[name]:
            raise InputError(f"{where}: {name}: need a text that is not empty")
    if not isinstance(table["base"], str):
        raise InputError(f"{where}: base: need a record's id, or an empty text")
    for name, known in (("state", STATES), ("verdict", VERDICTS)):
        if table[name] not in known:
            said = f"{name} {table[name]!r}; need {', '.join(known)}"
            raise InputError(f"{where}: {said}")
    place = table["place"]
    if isinstance(place, bool) or not isinstance(place, int) or place < 0:
        raise InputError(f"{where}: place: {place!r}; need a whole number from 0")
    lists = {name: _ids(table.get(name, []), where, name) for name in _NAMED}
    rest = {name: table[name] for name in (*_TEXTS, "base", "place")}
    return Record(
        **rest | lists,
        expected=_expected(table.get("expected", {}), where),
        figures=_figures(table.get("figure", []), where),
        line=line,
    )


def _ids(value: object, where: str, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{where}: {name}: {value!r:.60}; need a list of names")
    return tuple(value)


def _expected(value: object, where: str) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) - {*CYCLES, TILES}:
        known = ", ".join((*CYCLES, TILES))
        raise InputError(f"{where}: expected: need changes of {known}")
    return {name: finite(each, f"{where}: {name}") for name, each in value.items()}


def _figures(value: object, where: str) -> tuple[Figure, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where}: figure: need tables [[record.figure]]")
    figures = tuple(_figure(each, where) for each in value)
    if sum(each.compared for each in figures) > 1:
        raise InputError(f"{where}: two compared figures; one record has one at most")
    return figures


def _figure(table: dict[str, Any], where: str) -> Figure:
    where = f"{where}: figure {table.get('what', 'without what')!r}"
    texts = ("what", "kind", "unit")
    unknown = set(table) - {*texts, *_GIVEN, "before", "compared"}
    if unknown or not all(isinstance(table.get(t), str) and table[t] for t in texts):
        raise InputError(
            f"{where}: need what, kind, unit, before, one of {', '.join(_GIVEN)}, and "
            f"compared; unknown: {sorted(unknown)}"
        )
    if table["kind"] not in KINDS:
        raise InputError(f"{where}: kind {table['kind']!r}; need {', '.join(KINDS)}")
    given = [name for name in _GIVEN if name in table]
    compared = table.get("compared", False)
    if not isinstance(compared, bool):
        raise InputError(f"{where}: compared: {compared!r}; need true or false")
    before = after = None
    if "before" in table:
        before = _positive(table["before"], f"{where}: before")
    if len(given) > 1 or (not given and before is None):
        raise InputError(f"{where}: need one of {', '.join(_GIVEN)}")
    if given:
        number = finite(table[given[0]], f"{where}: {given[0]}")
        if given[0] != "after" and before is None:
            raise InputError(f"{where}: {given[0]} needs before")
        after = {"after": 0.0, "change": before or 0.0}.get(given[0], 0.0) + number
        if given[0] == "factor":
            after = (before or 0.0) * number
        _positive(after, f"{where}: {given[0]}")
    if compared and (before is None or after is None):
        raise InputError(f"{where}: compared needs before and after")
    what, kind, unit = (str(table[name]) for name in texts)
    return Figure(what, kind, unit, before, after, compared)


def _check_edges(rows: list[Record], file: str) -> None:
    """Check that every record that is named is there, and comes earlier."""
    known = {row.id: row for row in rows}
    for row in rows:
        where = f"{file}:{row.line}: {row.id}"
        for id in (*row.depends, *row.rests_on, *([row.base] if row.base else [])):
            if id not in known:
                raise InputError(f"{where}: {id!r}: there is no such record")
        for id in row.depends:
            if row.place and not 0 < known[id].place < row.place:
                raise InputError(
                    f"{where}: place {row.place}: it depends on {id}, which has place "
                    f"{known[id].place}"
                )
    for row in rows:
        seen: set[str] = set()
        left = [row.id]
        while left:
            at = known[left.pop()]
            named = (*at.depends, *at.rests_on, *([at.base] if at.base else []))
            if row.id in named:
                raise InputError(
                    f"{file}:{row.line}: {row.id}: depends on itself, by way of {at.id}"
                )
            left += [id for id in named if id not in seen]
            seen.update(named)


def _positive(value: object, name: str) -> float:
    number = finite(value, name)
    if number <= 0:
        raise InputError(f"{name} = {number:g}: need more than zero")
    return number
