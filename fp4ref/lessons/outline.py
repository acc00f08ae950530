"""outline: the notebooks in order, each with its minutes, needs and objectives."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Lesson:
    """One notebook.

    Attributes
    ----------
    name
        File name without its suffix.
    needs
        Numbers of the notebooks to read first.
    objectives
        What the reader can do afterwards; completes "after it you can".
    steps
        Steps of `fp4ref.gemm.ladder` that it explains.
    """

    name: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    objectives: str
    steps: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """Two digits."""
        return self.name[:2]

    @property
    def needs_in_words(self) -> str:
        """``"notebooks 02, 03"``."""
        if not self.needs:
            return "no other notebook"
        plural = "s" if len(self.needs) > 1 else ""
        return f"notebook{plural} {', '.join(self.needs)}"


class _Outline(Mapping[str, Lesson]):
    """The lessons by name, in order; read from the file at first use."""

    @cached_property
    def _lessons(self) -> dict[str, Lesson]:
        text = files("fp4ref").joinpath("lessons", "lessons.toml").read_text("utf-8")
        found = {}
        for entry in tomllib.loads(text)["lesson"]:
            lists = {"needs": tuple(entry["needs"])}
            lists["steps"] = tuple(entry.get("steps", ()))
            lesson = Lesson(**(entry | lists))
            found[lesson.name] = lesson
        return found

    def __getitem__(self, name: str) -> Lesson:
        return self._lessons[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lessons)

    def __len__(self) -> int:
        return len(self._lessons)


LESSONS: Mapping[str, Lesson] = _Outline()
"""All notebooks by name, in reading order."""
