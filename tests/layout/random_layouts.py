"""Hypothesis strategies for layouts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fp4ref.layout import Layout


def nest(t: list[int], cut: int | None) -> Any:
    """Group the leaves before and after `cut`."""
    if len(t) == 1:
        return t[0]
    if cut is None:
        return tuple(t)
    return tuple(part[0] if len(part) == 1 else tuple(part) for part in cut_at(t, cut))


def cut_at(t: list[int], cut: int) -> tuple[list[int], list[int]]:
    return t[:cut], t[cut:]


@st.composite
def injective_layouts(
    draw: st.DrawFn,
    extents: tuple[int, ...] = (1, 2, 3, 4, 6, 8),
    gaps: tuple[int, ...] = (1, 1, 1, 2, 3),
) -> Layout:
    """Draw layouts that repeat no offset: dense in any order, perhaps with gaps."""
    shape = draw(st.lists(st.sampled_from(extents), min_size=1, max_size=4))
    stride, reach = [0] * len(shape), 1
    for leaf in draw(st.permutations(range(len(shape)))):
        reach *= draw(st.sampled_from(gaps))
        stride[leaf] = reach
        reach *= shape[leaf]
    cut = draw(st.none() | st.integers(1, max(1, len(shape) - 1)))
    return Layout(nest(shape, cut), nest(stride, cut))


@st.composite
def any_layouts(draw: st.DrawFn) -> Layout:
    """Draw layouts with any strides: overlapping and broadcast ones too."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    stride = [draw(st.integers(0, 12)) for _ in shape]
    cut = draw(st.none() | st.integers(1, max(1, len(shape) - 1)))
    return Layout(nest(shape, cut), nest(stride, cut))


def image(layout: Layout) -> list[int]:
    """Evaluate one index after another, by the definition."""
    return [layout(i) for i in range(layout.size)]
