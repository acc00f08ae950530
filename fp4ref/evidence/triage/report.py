"""report: what triage found, for a reader and for a program."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any, Final, Literal

from fp4ref.errors import Fp4refError
from fp4ref.evidence.triage.pattern import Pattern

SCHEMA: Final = 1
WIDTH: Final = 80
Verdict = Literal["right", "explained", "partly explained", "none of these"]


class UnlikeD(Fp4refError):
    """D is not what its inputs give."""


@dataclass(frozen=True)
class Named:
    """One mistake of an explanation.

    Attributes
    ----------
    where
        Which form of it: the operand, the k-tile, the layout; empty where it has one.
    what, cause, look
        What it is, how it comes about, and where to look.
    """

    name: str
    where: str
    what: str
    cause: str
    look: str

    def __str__(self) -> str:
        return f"{self.name} ({self.where})" if self.where else self.name


@dataclass(frozen=True)
class Explained:
    """Mistakes at once that explain a part of what differs.

    Attributes
    ----------
    alike
        What these inputs cannot tell from it, each as the names of its mistakes.
    explained, differing, sampled
        Elements, and scales, of D: of `sampled` ones `differing` differ.
    tiles
        In words: ``"all"``, or those where it holds.
    """

    mistakes: tuple[Named, ...]
    alike: tuple[tuple[str, ...], ...]
    explained: int
    differing: int
    sampled: int
    tiles: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the mistakes."""
        return tuple(each.name for each in self.mistakes)

    @property
    def share(self) -> float:
        """Part of what differs."""
        return self.explained / self.differing


@dataclass(frozen=True)
class Triage:
    """Outcome of `triage`.

    Attributes
    ----------
    shape, format
        (M, N, K), and that of D.
    compared, differing
        Elements and scales of D.
    whole
        Whether all of D was compared; else bands of rows and of columns.
    unexplained
        Of the sampled elements that differ.
    unseen
        Names of mistakes that would not change D on these inputs, in any form.
    """

    shape: tuple[int, int, int]
    format: str
    compared: int
    differing: int
    whole: bool
    pattern: Pattern | None
    explanations: tuple[Explained, ...]
    unexplained: int
    unseen: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing that was compared differs."""
        return self.pattern is None

    @property
    def verdict(self) -> Verdict:
        """The outcome in one word or two."""
        if self.ok:
            return "right"
        if not self.explanations:
            return "none of these"
        explained = sum(each.explained for each in self.explanations)
        whole = explained + self.unexplained
        return "explained" if explained >= 0.99 * whole else "partly explained"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all mistakes that explain a part."""
        return tuple(dict.fromkeys(n for each in self.explanations for n in each.names))

    def require_right(self) -> None:
        """Raise if D is wrong, with the report.

        Raises
        ------
        UnlikeD
            Something differs.
        """
        if not self.ok:
            raise UnlikeD(self.report())

    def report(self) -> str:
        """Say the outcome in at most 80 columns."""
        m, n, k = self.shape
        looked = "all" if self.whole else "bands of rows and columns,"
        head = f"D {m} x {n}, K {k}, {self.format}: {looked} {self.compared:,} compared"
        if self.pattern is None:
            lines = [head, "right: every one as the model has it"]
        else:
            lines = [head, f"wrong: {self.differing:,} differ", *self._where()]
            for each in self.explanations:
                lines += ["", *_explained(each)]
            lines += ["", *self._rest()]
        if self.unseen:
            names = ", ".join(self.unseen)
            lines += ["", *_wrapped(f"would not show on these inputs: {names}", "")]
        return "\n".join(lines)

    def _where(self) -> list[str]:
        assert self.pattern is not None
        first = self.pattern.first
        part = "row" if first.part == "d" else "scale of row"
        place = f"{part} {first.row}, column {first.column}, tile {first.tile}"
        return [
            f"  first    {place.replace(', ', ', ')}",
            f"           found {first.found}, expected {first.expected}",
            *_wrapped(f"rows     {self.pattern.rows}", "  ", "           "),
            *_wrapped(f"columns  {self.pattern.columns}", "  ", "           "),
            *_wrapped(f"tiles    {self.pattern.tiles}", "  ", "           "),
        ]

    def _rest(self) -> list[str]:
        if not self.explanations:
            return ["none of these: no usual mistake, nor two at once, explains it"]
        if self.unexplained:
            return [f"the other {self.unexplained:,} sampled: none of these"]
        return ["nothing else differs in the sample"]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `schema` is raised when a field changes its meaning."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "verdict": self.verdict,
            "shape": list(self.shape),
            "format": self.format,
            "compared": self.compared,
            "differing": self.differing,
            "whole": self.whole,
            "pattern": self.pattern.to_dict() if self.pattern else None,
            "explanations": [
                {**asdict(each), "names": list(each.names), "share": each.share}
                for each in self.explanations
            ],
            "unexplained": self.unexplained,
            "unseen": list(self.unseen),
        }


def _explained(each: Explained) -> list[str]:
    where = "" if each.tiles == "all" else f", in tiles {each.tiles}"
    share = (
        f"{each.explained:,} of {each.differing:,} differing elements "
        f"(sampled {each.sampled:,}){where}"
    )
    said = " and ".join(str(named) for named in each.mistakes)
    lines = [*_wrapped(said.upper() if len(said) < 3 else said, "", "  ")]
    lines += _wrapped(f"explains {share}", "  ")
    if each.alike:
        others = "; ".join(" and ".join(names) for names in each.alike)
        lines += _wrapped(
            f"cannot be told apart: {' and '.join(each.names)}; {others}", "  "
        )
    for named in each.mistakes:
        lines += _wrapped(f"what     {named.what}", "  ", "           ")
        lines += _wrapped(f"why      {named.cause}", "  ", "           ")
        lines += _wrapped(f"look at  {named.look}", "  ", "           ")
    return lines


def _wrapped(text: str, first: str, later: str | None = None) -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if later is None else later,
        break_on_hyphens=False,
        fix_sentence_endings=False,
        replace_whitespace=False,
    )
