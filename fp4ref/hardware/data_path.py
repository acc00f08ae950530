"""data_path: which lanes and columns of TMEM hold which elements of an MMA's D.

======  ===  =========  ==========================================================
layout  M    cta_group  what one CTA holds
======  ===  =========  ==========================================================
A       256  2          its 128 rows of D in lanes 0 to 127
B       128  2          its 64 rows: the first half of N in lanes 0 to 63, the
                        second in lanes 64 to 127 of the same columns
D       128  1          128 rows in lanes 0 to 127
F       64   1          16 rows in one half of each lane quarter: lanes 0 to 15 or
                        16 to 31 of it
======  ===  =========  ==========================================================

Source: PTX, Data path layout organization; CuTe ``tmem_frg`` in mma_traits_sm100.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.tensor_memory import LANES, TensorMemory
from fp4ref.trace import Range


@dataclass(frozen=True, slots=True)
class DataPath:
    """The layout of D in the TMEM of one CTA.

    Attributes
    ----------
    name
        PTX's letter.
    first_lanes, lanes
        Where its blocks start, and how many lanes each has.
    column_parts
        Equal parts of N that lie in the same columns of different lanes.
    lane_choices
        Lanes that an address of D may name.
    """

    name: str
    first_lanes: tuple[int, ...]
    lanes: int
    column_parts: int = 1
    lane_choices: tuple[int, ...] = (0,)

    @property
    def rows(self) -> int:
        """Rows of D that one CTA holds, which are its rows of A."""
        return self.lanes * len(self.first_lanes) // self.column_parts

    def columns(self, n: int) -> int:
        """Columns of TMEM that `n` columns of D take."""
        return n // self.column_parts

    def blocks(
        self, tmem: TensorMemory, lane: int, column: int, n: int
    ) -> tuple[Range, ...]:
        """Cells of D at an address, one range for each block."""
        columns = self.columns(n)
        return tuple(
            tmem.rectangle(first + lane, self.lanes, column, columns)
            for first in self.first_lanes
        )

    def join(self, blocks: list[NDArray[Any]]) -> NDArray[Any]:
        """Make (rows, N) of D of the blocks."""
        if len(blocks) == 1:
            return blocks[0]
        return np.concatenate(blocks, axis=1 if self.column_parts > 1 else 0)

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut (rows, N) of D into the blocks."""
        if len(self.first_lanes) == 1:
            return [values]
        axis = 1 if self.column_parts > 1 else 0
        return np.split(values, len(self.first_lanes), axis=axis)


_WHOLE = (0,), LANES
DATA_PATHS = {
    (256, 2): DataPath("A", *_WHOLE),
    (128, 2): DataPath("B", (0, 64), 64, column_parts=2),
    (128, 1): DataPath("D", *_WHOLE),
    (64, 1): DataPath("F", (0, 32, 64, 96), 16, lane_choices=(0, 16)),
}
"""By M and cta_group, of the MMAs without ``.ws`` and with a dense A."""
