"""drawn_words: where the words of a picture are drawn, and whether two of them meet."""

from __future__ import annotations

from typing import Any

WORDS = """() => [...document.querySelectorAll('.fp4ref-picture svg text')].map((e) => {
  const b = e.getBoundingClientRect(), w = e.closest('svg').getBoundingClientRect();
  return {words: e.textContent, x: b.left, y: b.top, right: b.right, bottom: b.bottom,
          beyond: b.right - w.right, size: parseFloat(getComputedStyle(e).fontSize)};
}).filter((each) => each.words)"""


def meet(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Two pixels across and four down are the space around letters."""
    across = min(a["right"], b["right"]) - max(a["x"], b["x"])
    return across > 2 and min(a["bottom"], b["bottom"]) - max(a["y"], b["y"]) > 4


def words_that_meet(words: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of words that are drawn over each other."""
    return [
        (a["words"], b["words"])
        for i, a in enumerate(words)
        for b in words[:i]
        if meet(a, b)
    ]
