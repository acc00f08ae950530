"""svg: shapes and words of the lessons' pictures, on a light ground of their own.

The ground makes them readable in a dark page too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal
from xml.sax.saxutils import escape

WIDTH: Final = 700
INK, LINE, GROUND = "#0f172a", "#475569", "#f8fafc"
BLUE, GREEN, SAND, WHITE = "#dbeafe", "#e5f4e3", "#fdecc8", "#ffffff"
_FONT: Final = "font-family='system-ui, sans-serif'"
Anchor = Literal["start", "middle", "end"]


def text(
    x: float,
    y: float,
    line: str,
    *,
    size: int = 14,
    bold: bool = False,
    anchor: Anchor = "middle",
) -> str:
    """Return a line of words."""
    weight = 600 if bold else 400
    return (
        f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {_FONT} font-size='{size}' "
        f"font-weight='{weight}' fill='{INK}'>{escape(line)}</text>"
    )


def box(x: float, y: float, width: float, height: float, fill: str) -> str:
    """Return a box with an edge."""
    return (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' "
        f"fill='{fill}' stroke='{LINE}'/>"
    )


def svg(height: float, alt: str, parts: Sequence[str], width: int = WIDTH) -> str:
    """Return a whole picture; `alt` says the same as it."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height:g}' "
        f"width='{width}' height='{height:g}' role='img' "
        "style='max-width:100%;height:auto'>"
    )
    ground = f"<rect width='{width}' height='{height:g}' rx='8' fill='{GROUND}'/>"
    return "\n".join(
        [head, f"<title>{escape(alt)}</title>", ground, *parts, "</svg>\n"]
    )
