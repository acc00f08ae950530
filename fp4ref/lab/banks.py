"""banks: how many passes an access of one warp to shared memory takes.

Shared memory has 32 banks of four bytes; a bank gives one word in a pass. A warp's
access goes in *phases*, and no two of them share a pass:

    bytes a lane      4           8            16
    lanes a phase     0-31        0-15, 16-31  0-7, 8-15, 16-23, 24-31
    a load in pairs   0-31        0-31         0-15, 16-31

Lanes of a phase that name the same word share it. So a phase takes as many passes as
its busiest bank has different words. A load is *in pairs* if every lane n names the
same place as lane n ^ 1, or every lane the same as n ^ 2, where both take part; a store
never is.

None of this stands in a PTX text. An H200 counted the same passes in each of 1,026
loads and stores (`probes/banks`, docs/measured.md). The pairs are NVIDIA's words about
compute capability 7.x [forums.developer.nvidia.com/t/77228]; which phases go together,
and that the whole warp must agree, was fitted to that record. Cycles can be more: a
store takes one for each word of a lane, if few take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES

BANKS: Final = 32
BANK_NBYTES: Final = 4
LANES: Final = 32
WIDTHS: Final = (4, 8, 16)
"""Bytes that a lane may access: one, two or four words."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Lanes that go together.

    Attributes
    ----------
    lanes
        Those of them that take part.
    words
        Different words of each bank: 32 numbers.
    """

    lanes: tuple[int, ...]
    words: tuple[int, ...]

    @property
    def passes(self) -> int:
        """Passes: the words of the busiest bank."""
        return max(self.words)

    @property
    def fewest(self) -> int:
        """Passes of as many words, spread over all banks."""
        return -(-sum(self.words) // BANKS)


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a warp.

    Attributes
    ----------
    width
        Bytes a lane.
    load
        Whether it is ``ld.shared``, and not ``st.shared``.
    offsets
        Bytes from the start of the CTA's shared memory, by lane; None for a lane that
        takes no part.
    """

    width: int
    load: bool
    offsets: tuple[int | None, ...]
    phases: tuple[Phase, ...]

    @property
    def passes(self) -> int:
        """Passes of all phases."""
        return sum(phase.passes for phase in self.phases)

    @property
    def fewest(self) -> int:
        """Passes without a conflict."""
        return sum(phase.fewest for phase in self.phases)

    @property
    def banks(self) -> tuple[int | None, ...]:
        """Bank of each lane's first word."""
        return tuple(
            None if at is None else at // BANK_NBYTES % BANKS for at in self.offsets
        )

    @property
    def most_lanes(self) -> int:
        """Lanes of the warp whose access begins in one bank, in the fullest one."""
        taken = [bank for bank in self.banks if bank is not None]
        return max(map(taken.count, taken), default=0)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "width": self.width,
            "load": self.load,
            "offsets": list(self.offsets),
            "passes": self.passes,
            "fewest": self.fewest,
            "most_lanes_in_one_bank": self.most_lanes,
            "words_by_phase_and_bank": [list(phase.words) for phase in self.phases],
        }


def access(offsets: Sequence[int | None], width: int, *, load: bool = False) -> Access:
    """Count the passes of one access.

    Parameters
    ----------
    offsets
        Bytes from the start of the CTA's shared memory, of lane 0 on; None for a lane
        that takes no part. Lanes beyond the last take none.
    width
        Bytes a lane: 4, 8 or 16.
    load
        Whether it is ``ld.shared``, and not ``st.shared``.

    Raises
    ------
    InputError
        Another width, more than 32 lanes, or a lane whose bytes are not aligned or
        not in shared memory.
    """
    width = require_integer(width, "width")
    if width not in WIDTHS:
        raise InputError(f"width: {width} bytes a lane; need 4, 8 or 16")
    if not 0 < len(offsets) <= LANES:
        raise InputError(f"{len(offsets)} lanes; a warp has 1 to {LANES}")
    for lane, at in enumerate(offsets):
        if at is not None:
            _check(lane, require_integer(at, f"lane {lane}"), width)
    every = (*offsets, *[None] * (LANES - len(offsets)))
    together = LANES * BANK_NBYTES // width
    if load and together < LANES and any(_in_pairs(every, bit) for bit in (1, 2)):
        together *= 2
    phases = [
        _phase(first, every[first : first + together], width)
        for first in range(0, LANES, together)
    ]
    return Access(width, load, every, tuple(phases))


def _in_pairs(offsets: Sequence[int | None], bit: int) -> bool:
    """Whether no two lanes that differ in `bit` alone name two places."""
    pairs = ((at, offsets[lane ^ bit]) for lane, at in enumerate(offsets))
    return all(a is None or b is None or a == b for a, b in pairs)


def _check(lane: int, at: int, width: int) -> None:
    if not 0 <= at <= SMEM_NBYTES - width:
        raise InputError(
            f"lane {lane}: bytes {at:,} to {at + width - 1:,} are not in the "
            f"{SMEM_NBYTES:,} bytes of a CTA's shared memory"
        )
    if at % width:
        raise InputError(
            f"lane {lane}: byte {at:,} is no multiple of the {width} bytes of a lane"
        )


def _phase(first: int, offsets: Sequence[int | None], width: int) -> Phase:
    lanes = [first + i for i, at in enumerate(offsets) if at is not None]
    starts = np.array([at for at in offsets if at is not None], np.int64)
    words = starts[:, None] // BANK_NBYTES + np.arange(width // BANK_NBYTES)
    banks: NDArray[np.int64] = np.unique(words) % BANKS
    return Phase(tuple(lanes), tuple(np.bincount(banks, minlength=BANKS).tolist()))
