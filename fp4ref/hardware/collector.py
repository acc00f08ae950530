"""collector: the tensor core's buffer of A, which MMAs in a sequence may share.

An MMA with ``.collector::a::fill`` leaves its A in the buffer; the later ones with
``use`` and ``lastuse`` may take it from there. The tensor core may as well load A
again: which of the two it does, nobody can tell, so that both must give the same A.
The buffer changes when an MMA lands, as those of one thread do in order. Source: PTX,
TensorCore 5th generation MMA; tcgen05.mma, collector_usage.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import CollectorFault

Usage = Literal["fill", "use", "lastuse", "discard"]
"""What an MMA does with the buffer; without the modifier it is ``discard``."""

COLLECTOR_USAGES: tuple[Usage, ...] = ("fill", "use", "lastuse", "discard")


@dataclass(frozen=True, slots=True)
class HeldMatrix:
    """A, as an MMA named it and read it.

    Attributes
    ----------
    name
        Where and how A was to be found.
    values
        What was read.
    """

    name: Hashable
    values: NDArray[np.unsignedinteger]


class CollectorBuffer:
    """The buffer of the tensor core of one SM; empty when a CTA begins."""

    def __init__(self) -> None:
        self.held: HeldMatrix | None = None

    def empty(self) -> None:
        """Drop what it holds."""
        self.held = None

    def land(self, usage: Usage, a: HeldMatrix, who: str, where: str) -> None:
        """Do what an MMA does that has loaded `a` from its memory.

        Raises
        ------
        CollectorFault
            It uses a buffer that nothing has filled, or that holds another A.
        """
        if usage in ("use", "lastuse"):
            self._check(usage, a, who, where)
        if usage == "fill":
            self.held = a
        elif usage != "use":
            self.empty()

    def _check(self, usage: str, a: HeldMatrix, who: str, where: str) -> None:
        held = self.held
        what = f"tcgen05.mma.collector::a::{usage}"
        if held is None:
            raise CollectorFault(
                f"{what} with nothing in the collector buffer",
                who=who,
                where=where,
                rule="it requires a previous fill that is still valid; lastuse, "
                "discard, and an MMA without the modifier end that [PTX: tcgen05.mma]",
                remedy="issue the MMA before it with .collector::a::fill, and the ones "
                "between with .collector::a::use",
            )
        if held.name != a.name:
            raise CollectorFault(
                f"{what} of another A than the collector buffer holds",
                who=who,
                where=where,
                rule="A is unchanged within a sequence: the same place, rows, type and "
                "sign as in the MMA that filled the buffer [PTX: tcgen05.mma]",
                remedy="fill the buffer again when A changes",
            )
        if not np.array_equal(held.values, a.values):
            raise CollectorFault(
                f"{what} after A has changed in its memory",
                who=who,
                where=where,
                rule="the tensor core may load A again: its memory must not be "
                "modified before the last MMA of the sequence is complete "
                "[PTX: tcgen05.mma]",
                remedy="wait for the commit of the last use before A is overwritten",
            )
