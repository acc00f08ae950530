"""staging: how an epilogue of document 003 lays out its rows, and what it costs.

Each of four warps stages 32 rows of 256 bytes, 128 numbers of BF16, twice. A lane
writes its own row 16 bytes at a time; later the warp reads whole rows, eight bytes a
lane. A swizzle of 128 bytes moves the 16-byte chunks of a row by the row's number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.lab.banks import LANES, Access, access
from fp4ref.layout import PANEL_NBYTES, SwizzleMode

ROW_NBYTES: Final = 256
PADDED_NBYTES: Final = 272
WRITE_NBYTES: Final = 16
READ_NBYTES: Final = 8
WARPS: Final = 4
HALVES: Final = 2
STAGE_NBYTES: Final = 32_768
"""Bytes of a stage of document 003 in one SM: 256 rows of 128."""

_SWIZZLE: Final = SwizzleMode.B128.swizzle


@dataclass(frozen=True, slots=True)
class Staging:
    """One way to lay out the rows.

    Attributes
    ----------
    place
        Offset of a byte: of row and byte within the row.
    row_nbytes
        Shared memory that a row takes.
    """

    name: str
    place: Callable[[int, int], int]
    row_nbytes: int

    def write(self, chunk: int) -> Access:
        """Each lane writes a chunk of its own row."""
        at = [self.place(lane, WRITE_NBYTES * chunk) for lane in range(LANES)]
        return access(at, WRITE_NBYTES)

    def read(self, row: int) -> Access:
        """The warp reads a row."""
        at = [self.place(row, READ_NBYTES * lane) for lane in range(LANES)]
        return access(at, READ_NBYTES, load=True)

    @property
    def writes(self) -> tuple[Access, ...]:
        """All writes of 32 rows."""
        return tuple(self.write(i) for i in range(ROW_NBYTES // WRITE_NBYTES))

    @property
    def worst_write(self) -> Access:
        """The first write of those with the most passes."""
        return max(self.writes, key=lambda each: each.passes)

    @property
    def reads(self) -> tuple[Access, ...]:
        """All reads of 32 rows."""
        return tuple(self.read(row) for row in range(LANES))

    @property
    def nbytes(self) -> int:
        """Shared memory of all warps and both halves."""
        return WARPS * HALVES * LANES * self.row_nbytes


def _plain(row: int, byte: int) -> int:
    return ROW_NBYTES * row + byte


def _padded(row: int, byte: int) -> int:
    return PADDED_NBYTES * row + byte


def _panels(row: int, byte: int) -> int:
    panel, inside = divmod(byte, PANEL_NBYTES)
    return int(_SWIZZLE(LANES * PANEL_NBYTES * panel + PANEL_NBYTES * row + inside))


STAGINGS: Final = (
    Staging("256-byte rows", _plain, ROW_NBYTES),
    Staging(
        "256-byte rows, swizzled", lambda r, b: int(_SWIZZLE(_plain(r, b))), ROW_NBYTES
    ),
    Staging("two swizzled panels of 128", _panels, ROW_NBYTES),
    Staging("272-byte rows", _padded, PADDED_NBYTES),
    Staging(
        "272-byte rows, swizzled",
        lambda r, b: int(_SWIZZLE(_padded(r, b))),
        PADDED_NBYTES,
    ),
)
"""What document 003 has, what it proposes, and their neighbours. Only panels of 128 are
what a TMA store with that swizzle reads."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether so many stages go beside a staging.

    Attributes
    ----------
    nbytes
        Stages and staging; barriers come on top.
    """

    stages: int
    staging_nbytes: int

    @property
    def nbytes(self) -> int:
        """Stages and staging."""
        return self.stages * STAGE_NBYTES + self.staging_nbytes

    @property
    def left(self) -> int:
        """Bytes left for barriers; negative if it does not fit."""
        return SMEM_NBYTES - self.nbytes

    @property
    def fits(self) -> bool:
        """Whether a CTA may have so much, with at least a byte for barriers."""
        return self.left > 0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "stages": self.stages,
            "staging_nbytes": self.staging_nbytes,
            "nbytes": self.nbytes,
            "left": self.left,
            "fits": self.fits,
        }


def fits() -> tuple[Fit, ...]:
    """Return four and five stages beside both sizes of staging."""
    sizes = sorted({staging.nbytes for staging in STAGINGS}, reverse=True)
    return tuple(Fit(stages, size) for size in sizes for stages in (4, 5))
