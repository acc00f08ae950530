"""activation: what a call does, and what the lanes in a function come back to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.state import Lanes, WarpState

Move = Callable[[WarpState], Callable[[WarpState], None]]
"""Reads a value now; what it returns writes it."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a function that the program has.

    Attributes
    ----------
    start
        Position of the function.
    into, back
        Moves of the arguments and of the results.
    registers
        Those of the function, which hold nothing when it begins.
    saved
        Parameters, of its calls too, that each activation has of its own.
    recursive
        Whether it can be called while it runs.
    """

    name: str
    start: int
    into: tuple[Move, ...]
    back: tuple[Move, ...]
    registers: tuple[int, ...]
    saved: tuple[str, ...]
    recursive: bool


Kept = tuple[tuple[int, Lanes, int], ...]
"""Registers with their values and in which lanes these are defined."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One activation: what its lanes had before in the same places."""

    call: Call
    depth: int
    registers: Kept = ()
    arguments: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
