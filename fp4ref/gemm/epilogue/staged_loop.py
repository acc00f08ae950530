"""staged_loop: how the loop over the subtiles of a half is compiled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class StagedLoop:
    """What the compiler is told.

    Parameters
    ----------
    unroll
        Subtiles that are unrolled together; the emulator has no use for it.
    releases_late
        Whether the accumulator is given back when D has been stored.
    """

    unroll: int
    releases_late: bool

    def __repr__(self) -> str:
        """Return the C++ type."""
        return f"StagedLoop<{self.unroll}, {str(self.releases_late).lower()}>"
