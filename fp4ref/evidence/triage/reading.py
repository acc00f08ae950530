"""reading: how a kernel reads, multiplies and stores, as data that a mistake changes.

Nothing is copied here. A map takes the place that a right kernel would use, arrays of
rows and of columns, to the one that a wrong kernel uses instead; a row of -1 is a place
that holds zero, or that nobody sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Map = Callable[[I64, I64], tuple[I64, I64]]
Region = Callable[[I64, I64], NDArray[np.bool_]]
Bias = Literal["column", "row", "missing", "scaled"]
Order = Literal["mma", "float64", "one by one", "block by block", "any"]
"""How products of K are added: ``"any"`` is float32 in an order that nobody knows."""


@dataclass(frozen=True)
class Side:
    """What is read for the codes and for the scales of A or of B.

    Attributes
    ----------
    code_maps
        Of (row, k).
    scale_maps
        Of (row, block of K).
    """

    code_maps: tuple[Map, ...] = ()
    scale_maps: tuple[Map, ...] = ()

    def with_codes(self, each: Map) -> Side:
        """Return the side with one more map of codes."""
        return replace(self, code_maps=(*self.code_maps, each))

    def with_scales(self, each: Map) -> Side:
        """Return the side with one more map of scales."""
        return replace(self, scale_maps=(*self.scale_maps, each))


@dataclass(frozen=True)
class Reading:
    """All that a mistake can change.

    Attributes
    ----------
    splits
        Slices of K whose float32 sums are added.
    alpha, norm
        Factor of the product, and of D before its blocks are rounded.
    unrounded
        Whether codes of D are made with a block scale that was not rounded.
    d_maps, sfd_maps
        From an element, or a scale, of D to where it lies in the dump.
    unwritten
        Which elements hold anything but what they should; None for none.
    """

    alpha: float
    norm: float
    splits: int
    a: Side = Side()
    b: Side = Side()
    order: Order = "mma"
    bias: Bias = "column"
    unrounded: bool = False
    d_maps: tuple[Map, ...] = ()
    sfd_maps: tuple[Map, ...] = ()
    unwritten: Region | None = None


def through(maps: tuple[Map, ...], row: I64, column: I64) -> tuple[I64, I64]:
    """Return where places come to lie, map after map; what is nowhere stays so."""
    for each in maps:
        nowhere = row < 0
        row, column = np.broadcast_arrays(*each(row, column))
        row = np.where(nowhere, -1, row)
        column = np.where(row < 0, 0, column)
    return row, column
