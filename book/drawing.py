"""drawing: boxes, arrows and the figures that hold them, for the pictures of pages.

Colours are fixed on a light ground, so that a picture is readable in a dark page too.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH = 700
"""Pixels across every picture."""

_FONT = 'font-family="system-ui, sans-serif"'
_FILL = {"plain": "#ffffff", "machine": "#dbeafe", "result": "#e5f4e3"}


def svg(height: int, alt: str, parts: Sequence[str]) -> str:
    """Return a picture of `WIDTH` pixels that says `alt` to who does not see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">'
    )
    ground = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#f8fafc"/>'
    return "\n".join(
        [head, f"<title>{escape(alt)}</title>", ground, *parts, "</svg>\n"]
    )


def figure(name: str, alt: str) -> str:
    """Return a directive that shows the picture `name` of ``_generated``."""
    lines = [f":::{{image}} /_generated/{name}", f":alt: {alt}", f":width: {WIDTH}px"]
    return "\n".join([*lines, ":::"])


def box(
    x: int, y: int, width: int, height: int, lines: Sequence[str], fill: str = "plain"
) -> str:
    """Return a box with centred lines, the first of them bold."""
    middle = x + width / 2
    first = y + height / 2 - 9 * (len(lines) - 1) + 5
    texts = [
        text(middle, first + 18 * i, line, bold=i == 0) for i, line in enumerate(lines)
    ]
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
        f'fill="{_FILL[fill]}" stroke="#475569"/>'
    )
    return "\n".join([frame, *texts])


def text(
    x: float, y: float, line: str, *, bold: bool = False, anchor: str = "middle"
) -> str:
    """Return one line of text; `y` is its base line."""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {_FONT} '
        f'font-size="14" font-weight="{600 if bold else 400}" fill="#0f172a">'
        f"{escape(line)}</text>"
    )


def band(y: int, height: int) -> str:
    """Return a floor, from side to side."""
    return f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{height}" fill="#e2e8f0"/>'


def arrow_down(x: int, top: int, bottom: int) -> str:
    """Return an arrow that ends at `bottom`."""
    return (
        f'<path d="M{x} {top}V{bottom - 1}M{x - 5} {bottom - 8}L{x} {bottom - 1}'
        f'L{x + 5} {bottom - 8}" fill="none" stroke="#475569" stroke-width="1.5"/>'
    )


def arrow_across(start: int, end: int, y: int) -> str:
    """Return a level arrow that ends at `end`, to the right or to the left."""
    back = -8 if end > start else 8
    tip = end + back // 8
    return (
        f'<path d="M{start} {y}H{tip}M{tip + back} {y - 5}L{tip} {y}'
        f'L{tip + back} {y + 5}" fill="none" stroke="#475569" stroke-width="1.5"/>'
    )
