"""smallest: the fewest things that still make a difference, by leaving others out.

Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
input", 2002): parts of the set are tried alone and left out, first halves, then smaller
parts, until no single thing can go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def smallest(
    differs: Callable[[list[Thing]], bool], whole: Sequence[Thing]
) -> list[Thing]:
    """Return a part of `whole` that differs, and of which every thing is needed.

    `whole` itself must differ. `differs` is asked a few times the size of the answer,
    times the logarithm of that of `whole`.
    """
    kept, parts = list(whole), 2
    while len(kept) > 1:
        found = next((each for each in _fewer(kept, parts) if differs(each)), None)
        if found is not None:
            alone = len(found) <= -(-len(kept) // parts)
            kept, parts = found, 2 if alone else max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return [] if kept and differs([]) else kept


def _fewer(things: list[Thing], parts: int) -> Iterator[list[Thing]]:
    """Yield each part alone, then all but each part."""
    size = -(-len(things) // parts)
    starts = range(0, len(things), size)
    yield from (things[i : i + size] for i in starts)
    if parts > 2:
        yield from (things[:i] + things[i + size :] for i in starts)


__all__ = ["smallest"]
