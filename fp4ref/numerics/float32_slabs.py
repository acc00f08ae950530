"""float32_slabs: D as the sum of a plan's slabs, and what is known of it meanwhile.

The proofs are in `tiers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from fp4ref.numerics import blas_threads, slabs
from fp4ref.numerics.factors import Factors
from fp4ref.numerics.formats import F32, F64
from fp4ref.numerics.one_step import FLOAT32_BITS
from fp4ref.numerics.slab_plan import MOST, Slabs

RUNNING_BITS: Final = FLOAT32_BITS + 1
"""D before and after some slabs, and their norms, are at most 2^25 units in all."""


@dataclass
class Float32Slabs:
    """D at work.

    Attributes
    ----------
    step
        K of an instruction.
    sums : (rows, columns)
        D, of integers.
    """

    a: Factors
    b: Factors
    plan: Slabs
    step: int
    sums: F32
    _ends: list[int] = field(default_factory=lambda: [0])
    _growth: float = 0.0
    _before: F64 = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing."""
        self._before = np.zeros(len(self.sums))

    @property
    def _steps(self) -> int:
        return int(self.a.unit.shape[1])

    @property
    def _limit(self) -> float:
        """Of D before and after, and norms, less what roundings can move D by."""
        return 2.0**RUNNING_BITS - 2 * self.step * self._steps

    def add_all(self) -> int:
        """Add slabs as long as the bounds hold for most rows, and take the units back.

        Rows where they do not hold leave the plan.

        Returns
        -------
        int
            Steps done.
        """
        last = min(self.plan.steps, self._steps)
        self._multiply(0, last)
        if last < self._steps:
            last = self._add_slabs(last)
        slabs.scale_sums(self.sums, np.exp2(self.a.base), np.exp2(self.b.base))
        return last

    def _add_slabs(self, last: int) -> int:
        """Go on after the first slab; return how many steps are done."""
        while self._holds(last):
            self._ends.append(last)
            last = self.plan.next(last, self._before, self._growth, self._limit)
            if last == self._ends[-1]:
                return last
            self._multiply(self._ends[-1], last)
        for first, end in pairwise(self._ends):
            self._multiply(first, end)
        return self._ends[-1]

    def _multiply(self, first: int, last: int) -> None:
        """Multiply some steps; all but the first are added."""
        k = slice(self.step * first, self.step * last)
        a, b = self.a.values[:, k], self.b.values[:, k]
        blas_threads.multiply(a, b, self.sums, add=first > 0)

    def _holds(self, last: int) -> bool:
        """Whether no sum of the last slab was rounded, in most rows."""
        norms = self.plan.norms(self._ends[-1], last)
        most = self._before + norms
        # After the last slab it is enough that no look is needed.
        due = (self._before + most + norms > self._limit) | (last < self._steps)
        after = slabs.largest(self.sums, self.plan.masks, due)
        after = np.where(due, after, most)
        small = self.plan.rows & (self._before + after + norms <= self._limit)
        if np.count_nonzero(small) < MOST * np.count_nonzero(self.plan.rows):
            return False
        grown = (after - self._before)[small].max()
        self._growth = max(float(grown / norms[small].max()), 0.0)
        self.plan.rows, self._before = small, after
        return True
