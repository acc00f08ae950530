"""disabled_lanes: D of an MMA that leaves some lanes of TMEM as they are.

``disable-output-lane`` is a mask of 32-bit words, the least significant bit of the
first for lane 0. Lanes whose bit is 1 are not updated; here they are not read either.
Source: PTX, tcgen05.mma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DescriptorFault, NotModelled
from fp4ref.hardware.mma_operands import Accumulator
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.tensor_memory import CELL_NBYTES, LANE_NBYTES
from fp4ref.trace import Range

Lanes = NDArray[np.bool_]


def enabled_lanes(warp: Warp, words: Sequence[int], cta_group: int) -> Lanes | None:
    """Return which lanes an MMA updates; None for all.

    Raises
    ------
    DescriptorFault
        The mask has another size than the group's.
    NotModelled
        It disables lanes of a pair.
    """
    if words and len(words) != 4 * cta_group:
        raise DescriptorFault(
            f"disable-output-lane of {len(words)} words with cta_group::{cta_group}",
            who=warp.who,
            rule="it has 4 words for one CTA and 8 for a pair [PTX: tcgen05.mma]",
            remedy="pass a word for each 32 lanes",
        )
    if not any(words):
        return None
    if cta_group > 1:
        raise NotModelled(
            "tcgen05.mma.cta_group::2 with disable-output-lane",
            who=warp.who,
            rule="no text says which words are for which CTA of the pair",
            remedy="pass a vector of zeros",
            gap="mma-disable-output-lane",
        )
    bits = np.array(words, "<u4").view(np.uint8)
    return ~np.unpackbits(bits, bitorder="little").astype(np.bool_)


@dataclass(frozen=True, slots=True)
class PartialAccumulator(Accumulator):
    """D without the lanes that the MMA leaves alone.

    Attributes
    ----------
    blocks
        Runs of lanes that are updated.
    rows
        Rows of D in each of them.
    """

    rows: tuple[NDArray[np.int64], ...] = ()

    @classmethod
    def without(cls, d: Accumulator, enabled: Lanes) -> PartialAccumulator:
        """Take the other lanes out of an accumulator of one CTA."""
        blocks: list[Range] = []
        rows: list[NDArray[np.int64]] = []
        first_row = 0
        for block in d.blocks:
            top = block.start // LANE_NBYTES
            kept = np.flatnonzero(enabled[top : top + block.rows])
            for run in np.split(kept, np.flatnonzero(np.diff(kept) != 1) + 1):
                if run.size:
                    start = block.start + int(run[0]) * LANE_NBYTES
                    blocks.append(block._replace(start=start, rows=run.size))
                    rows.append(first_row + run)
            first_row += block.rows
        return cls(d.tmem, d.path, tuple(blocks), d.enable_input, d.halves, tuple(rows))

    def read(self) -> NDArray[Any] | None:
        """Return what D holds, +0 in the lanes that stay; None stands for +0 in all."""
        if not self.enable_input or not self.blocks:
            return None
        columns = self.blocks[0].nbytes // CELL_NBYTES
        element = np.float16 if self.halves else np.float32
        found = np.zeros((self.path.rows, columns), element)
        for block, rows in zip(self.blocks, self.rows, strict=True):
            found[rows] = self.load(block)
        return found

    def write(self, values: NDArray[Any]) -> None:
        """Write D, shape (rows, N), where it is updated."""
        for block, rows in zip(self.blocks, self.rows, strict=True):
            self.store(block, values[rows])
