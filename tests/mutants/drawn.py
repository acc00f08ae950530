"""drawn: the mutants that were drawn, and what the tests said of each.

``drawn.json`` has the seed and the mutants in the order of the draw, so the first of
them are a random sample too. ``results.jsonl`` has a line for each that ran, and
``explained.toml`` says why a survivor is no missing test.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DRAWN = HERE / "drawn.json"
RESULTS = HERE / "results.jsonl"
EXPLAINED = HERE / "explained.toml"


@dataclass(frozen=True)
class Mutant:
    """One change of one place, pinned to the text of its lines.

    Attributes
    ----------
    old, new
        Whole lines, and what stands in their place.
    nth
        Which of the places with these lines, where a file has several.
    line
        Their first line's number on the day of the draw; for readers.
    replaces
        The mutant that lost its lines, and in whose place this one stands.
    """

    file: str
    old: str
    new: str
    nth: int
    line: int
    operator: str
    replaces: str = ""

    @property
    def id(self) -> str:
        """Eight letters of a checksum."""
        said = "\0".join((self.file, self.old, self.new, str(self.nth)))
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    @property
    def room(self) -> str:
        """The folder whose tests are the first to run."""
        return Path(self.file).parts[1]

    def first_line(self, text: str) -> int:
        """Return the number of its first line in a text, counted from one.

        Raises
        ------
        ValueError
            The lines are not there any more.
        """
        return text[: self._start(text)].count("\n") + 1

    def changed(self, text: str) -> str:
        """Return the file's text with the change.

        Raises
        ------
        ValueError
            As `first_line`.
        """
        start = self._start(text)
        return text[:start] + self.new + text[start + len(self.old) :]

    def is_in(self, tree: Path) -> bool:
        """Whether its lines are still there, in a tree of files."""
        file = tree / self.file
        if not file.is_file():
            return False
        return len(lines_at(file.read_text("utf-8"), self.old)) > self.nth

    def _start(self, text: str) -> int:
        starts = lines_at(text, self.old)
        if len(starts) <= self.nth:
            raise ValueError(
                f"{self.file}: {self.old.strip()!r} is not there any more; draw again"
            )
        return starts[self.nth]


def lines_at(text: str, lines: str) -> list[int]:
    """Return where whole lines begin in a text."""
    found, at = [], text.find(lines)
    while at >= 0:
        if at == 0 or text[at - 1] == "\n":
            found.append(at)
        at = text.find(lines, at + 1)
    return found


def mutants() -> list[Mutant]:
    """Return what was drawn, in order."""
    return [Mutant(**row) for row in json.loads(DRAWN.read_text("utf-8"))["mutants"]]


def draw_of_record() -> tuple[int, str]:
    """Return the seed of the draw and the commit it was drawn from."""
    record = json.loads(DRAWN.read_text("utf-8"))
    return record["seed"], record["commit"]


def keep(seed: int, commit: str, drawn: list[Mutant]) -> None:
    """Write a draw."""
    rows = [asdict(each) for each in drawn]
    for row in rows:
        if not row["replaces"]:
            del row["replaces"]
    record = {"seed": seed, "commit": commit, "mutants": rows}
    DRAWN.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def results() -> dict[str, dict[str, Any]]:
    """Return the last result of each mutant, by id."""
    lines = RESULTS.read_text("utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def explained() -> dict[str, str]:
    """Return why survivors change nothing that a test could see, by id."""
    found: dict[str, str] = tomllib.loads(EXPLAINED.read_text("utf-8"))["why"]
    return found
