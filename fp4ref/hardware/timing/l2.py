"""l2: which load brought a line of global memory in, so that a later one finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fp4ref.trace import Range

LINE_NBYTES: Final = 128


class L2:
    """The lines that have been loaded; nothing is ever dropped."""

    def __init__(self) -> None:
        self._by: dict[int, int] = {}

    def load(self, reads: Iterable[Range], number: int) -> list[int] | None:
        """Load some ranges.

        Parameters
        ----------
        number
            Of this load.

        Returns
        -------
        list of int or None
            The earlier loads that brought its lines in; None if one is not there yet.
        """
        by, found, missing = self._by, set(), False
        for line in _lines(reads):
            if (earlier := by.setdefault(line, number)) == number:
                missing = True
            else:
                found.add(earlier)
        return None if missing else sorted(found)


def _lines(reads: Iterable[Range]) -> Iterator[int]:
    """Yield the numbers of the lines that ranges touch, each once for each range."""
    for each in reads:
        before = -1
        for row in range(each.rows):
            start = each.start + row * each.pitch
            first = max(start // LINE_NBYTES, before + 1)
            last = (start + each.nbytes - 1) // LINE_NBYTES
            yield from range(first, last + 1)
            before = max(before, last)
