"""concept_drawing: sketches of one idea, as narrow as a phone, each with its words.

Whatever draws a thing also says it, so that the text twin of a sketch, its description,
names all that is drawn in the order in which it is drawn. Colours follow the reader's
system as in `data_flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.sax.saxutils import escape

from data_flow import STYLE, WIDTH

Kind = Literal["memory", "box", "unit"]
"""A memory, plain data, and something that works."""

LETTER, CODE_LETTER = 7.0, 7.7
"""Pixels that a letter takes on an average, at most; and one of code."""
_MARGIN, _ROW, _STEP = 10, 30, 24


class Sketch:
    """A picture that grows downwards.

    Parameters
    ----------
    title
        What the picture shows; the first line of its description.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.words: list[str] = []
        self._parts: list[str] = []
        self._y = _MARGIN

    def line(self, text: str) -> None:
        """Write a line of text."""
        _require_room(text, WIDTH - 2 * _MARGIN)
        self._parts.append(_text("name", _MARGIN, self._y + 15, text))
        self._y += 22
        self.words.append(text)

    def row(
        self, cells: Sequence[str], *, kind: Kind = "box", marked: Sequence[int] = ()
    ) -> None:
        """Draw cells side by side; the marked ones as something that works."""
        width = (WIDTH - 2 * _MARGIN) / len(cells)
        for i, cell in enumerate(cells):
            _require_room(cell, width)
            x = _MARGIN + i * width
            self._box(x, width, "unit" if i in marked else kind, cell)
        self._y += _ROW + 4
        said = [f"{each} (marked)" if i in marked else each
                for i, each in enumerate(cells)]  # fmt: skip
        self.words.append(", ".join(each for each in said if each))

    def flow(self, *steps: tuple[str, Kind] | str) -> None:
        """Draw boxes below each other; a plain text is the label of an arrow."""
        said = []
        for step in steps:
            if isinstance(step, str):
                self._arrow(step)
                said.append(f"then ({step})" if step else "then")
            else:
                _require_room(step[0], WIDTH - 2 * _MARGIN)
                self._box(_MARGIN, WIDTH - 2 * _MARGIN, step[1], step[0])
                self._y += _ROW
                said.append(step[0])
        self._y += 6
        self.words.append(" ".join(said))

    def bars(self, rows: Sequence[tuple[str, float, float, str]]) -> None:
        """Draw spans of a common axis: name, start, end, and what to say of it."""
        last = max(end for _, _, end, _ in rows)
        left = _MARGIN + 8 + LETTER * max(len(name) for name, *_ in rows)
        for name, start, end, said in rows:
            _require_room(said, WIDTH - _MARGIN - left, CODE_LETTER)
            scale = (WIDTH - _MARGIN - left) / last
            x, width = left + start * scale, max(2.0, (end - start) * scale)
            self._parts.append(_text("", _MARGIN, self._y + 15, name))
            self._parts.append(_rect("unit", x, self._y + 18, width, 7))
            self._parts.append(_text("op", left, self._y + 14, said))
            self._y += 29
            self.words.append(f"{name}: {said}")

    def gap(self) -> None:
        """Leave room."""
        self._y += 8

    def description(self) -> str:
        """Return the text twin: the title, then all that is drawn."""
        text = f"{self.title}. {'; '.join(self.words)}."
        return (
            text.replace("[", "(").replace("]", ")").replace("; ...;", "; and so on to")
        )

    def svg(self) -> str:
        """Return the picture."""
        height = self._y + _MARGIN
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="t d">'
        )
        named = f'<title id="t">{escape(self.title)}</title>'
        told = f'<desc id="d">{escape(self.description())}</desc>'
        style = f"<style>{STYLE}</style>"
        ground = _rect("ground", 0, 0, WIDTH, height)
        return "\n".join([head, named, told, style, ground, *self._parts, "</svg>\n"])

    def _box(self, x: float, width: float, kind: Kind, text: str) -> None:
        self._parts.append(_rect(kind, x, self._y, width, _ROW))
        self._parts.append(_text("mid", x + width / 2, self._y + 20, text))

    def _arrow(self, label: str) -> None:
        x, top = WIDTH / 3, self._y
        tip = top + _STEP
        self._parts.append(f'<path class="arrow" d="M{x:g} {top}V{tip}"/>')
        corners = f"{x:g},{tip} {x - 4:g},{tip - 8} {x + 4:g},{tip - 8}"
        self._parts.append(f'<polygon class="head" points="{corners}"/>')
        _require_room(label, WIDTH - x - 16, CODE_LETTER)
        self._parts.append(_text("op", x + 10, top + 16, label))
        self._y = tip


def _require_room(text: str, width: float, letter: float = LETTER) -> None:
    if letter * len(text) > width:
        raise ValueError(f"{text!r} is wider than its {width:.0f} pixels")


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" {size} rx="4"/>'


def _text(kind: str, x: float, y: float, words: str) -> str:
    anchor = ' text-anchor="middle"' if kind == "mid" else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{anchor}>{escape(words)}</text>'
