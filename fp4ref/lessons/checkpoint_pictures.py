"""checkpoint_pictures: what recipes cost layers, and channels that stand out."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.lessons.page import Page
from fp4ref.lessons.svg import INK, LINE, WHITE, svg, text
from fp4ref.tensors.layer_error import Channel, LayerError, RecipeError

_WIDTH: Final = 560
_GROUPS: Final = (
    ("NVFP4", "#1d4ed8", ""),
    ("of 16 x 16", "#15803d", "transformer_engine_2d"),
    ("four over six", "#b45309", "four_over_six"),
    ("MXFP4", "#be123c", "mx_"),
)
"""Name, colour and the start of the recipes' names; the first takes the rest."""
_LEFT, _RIGHT, _ROW = 20, 24, 62


def _group(recipe: str) -> int:
    starts = [bool(start) and recipe.startswith(start) for _, _, start in _GROUPS]
    return starts.index(True) if any(starts) else 0


def _mark(group: int, x: float, y: float) -> str:
    """Return a circle, diamond, triangle or square: colour is not all there is."""
    style = f"fill='{WHITE}' stroke='{_GROUPS[group][1]}' stroke-width='2.2'"
    if group == 0:
        return f"<circle cx='{x:g}' cy='{y:g}' r='5' {style}/>"
    if group == 3:
        return f"<rect x='{x - 4.5:g}' y='{y - 4.5:g}' width='9' height='9' {style}/>"
    sides = 4 if group == 1 else 3
    corners = [
        f"{x + 6.5 * sin(2 * pi * i / sides):.1f},"
        f"{y - 6.5 * cos(2 * pi * i / sides):.1f}"
        for i in range(sides)
    ]
    return f"<polygon points='{' '.join(corners)}' {style}/>"


def _short(name: str) -> str:
    return name.removeprefix("model.layers.").removesuffix(".weight")


def error_picture(layers: Sequence[LayerError]) -> Page:
    """Draw the error of each recipe on each layer that is stored as floats."""
    drawn_layers = [layer for layer in layers if layer.best is not None]
    most = max((_error(e) for each in drawn_layers for e in each.errors), default=0.0)
    top = max(2, 2 * int(np.ceil(most * 50)))
    scale = (_WIDTH - _LEFT - _RIGHT) / top
    drawn: list[str] = []
    for i, (name, _, _) in enumerate(_GROUPS):
        drawn.append(_mark(i, 28 + 130 * i, 22))
        drawn.append(text(40 + 130 * i, 27, name, anchor="start"))
    bottom = 44 + _ROW * len(drawn_layers)
    for tick in np.linspace(0, top, 5):
        x = _LEFT + tick * scale
        drawn.append(
            f"<line x1='{x:g}' y1='40' x2='{x:g}' y2='{bottom:g}' stroke='{LINE}' "
            "stroke-width='.6' stroke-dasharray='2 4'/>"
        )
        drawn.append(text(x, bottom + 18, f"{tick:g} %", size=13))
    for row, layer in enumerate(drawn_layers):
        drawn += _row(layer, 44 + _ROW * row, scale)
    alt = " ".join(_words(layer) for layer in drawn_layers)
    lines = [_words(layer) for layer in drawn_layers]
    skipped = [_short(each.name) for each in layers if each.best is None]
    if skipped:
        lines.append(f"Stored as NVFP4, so nothing to compare: {', '.join(skipped)}.")
    return Page("\n".join(lines), svg(bottom + 30, alt, drawn, _WIDTH))


def _error(each: RecipeError) -> float:
    return each.w or 0.0


def _row(layer: LayerError, y: float, scale: float) -> list[str]:
    best = layer.best
    assert best is not None
    marks = [
        _mark(_group(each.recipe), _LEFT + 100 * _error(each) * scale, y + 42)
        for each in sorted(layer.errors, key=lambda each: _group(each.recipe))
    ]
    words = f"{_short(layer.name)}: least {100 * _error(best):.2f} %, {best.recipe}"
    line = (
        f"<line x1='{_LEFT}' y1='{y + 42:g}' x2='{_WIDTH - _RIGHT}' y2='{y + 42:g}' "
        f"stroke='{LINE}' stroke-width='.8'/>"
    )
    return [text(_LEFT, y + 24, words, anchor="start", size=13), line, *marks]


def _words(layer: LayerError) -> str:
    """Say the least and the most that each group of recipes loses."""
    best = layer.best
    assert best is not None
    said = []
    for group, (name, _, _) in enumerate(_GROUPS):
        found = [_error(e) for e in layer.errors if _group(e.recipe) == group]
        if found:
            said.append(f"{name} {100 * min(found):.2f} to {100 * max(found):.2f} %")
    return f"{_short(layer.name)}: {', '.join(said)}; least {best.recipe}."


def channel_picture(w: NDArray[Any], found: Sequence[Channel]) -> Page:
    """Draw the largest magnitude of each channel; those that stand out are named."""
    largest = np.abs(w.astype(np.float32)).max(axis=0)
    median = float(np.median(largest))
    height, floor = 190, 168
    width = (_WIDTH - _LEFT - _RIGHT) / len(largest)
    named = {channel.k for channel in found}
    drawn = []
    for k, value in enumerate(largest):
        tall = 130 * float(value) / float(largest.max())
        fill = _GROUPS[-1][1] if k in named else "#94a3b8"
        drawn.append(
            f"<rect x='{_LEFT + k * width:.2f}' y='{floor - tall:.2f}' "
            f"width='{max(1.0, width - 0.4):.2f}' height='{tall:.2f}' fill='{fill}'/>"
        )
    for channel in found:
        x = _LEFT + (channel.k + 0.5) * width
        y = floor - 130 * float(largest[channel.k]) / float(largest.max()) - 6
        label = f"k {channel.k}: {channel.ratio:.1f} x"
        drawn.append(text(min(x, _WIDTH - 60), max(y, 16), label, size=13, bold=True))
    drawn.append(
        f"<line x1='{_LEFT}' y1='{floor}' x2='{_WIDTH - _RIGHT}' y2='{floor}' "
        f"stroke='{INK}'/>"
    )
    foot = f"channels of K, 0 to {len(largest) - 1}; median {median:.3g}"
    drawn.append(text(_WIDTH / 2, floor + 17, foot, size=13))
    said = ", ".join(f"k {c.k} is {c.ratio:.1f} times the median" for c in found)
    words = (
        f"The largest magnitude of each of {len(largest)} channels; the median is "
        f"{median:.3g}. " + (f"{said}." if said else "None stands out.")
    )
    return Page(words, svg(height, words, drawn, _WIDTH))
