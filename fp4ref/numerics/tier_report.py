"""tier_report: which tier computed each tile of a product, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Tier(Enum):
    """How a tile was computed."""

    FLOAT32 = "float32 slabs"
    FLOAT64 = "float64 slabs"
    INTEGER = "integer model"


@dataclass
class TileReport:
    """Which tiers gave a tile, and why.

    Attributes
    ----------
    rows, columns
        Of D.
    macs
        Multiply-adds by tier. Doubtful outputs of a float64 slab count as integer.
    why
        A sentence for each thing that decided, in order.
    """

    rows: range
    columns: range
    macs: dict[Tier, int] = field(default_factory=lambda: dict.fromkeys(Tier, 0))
    why: list[str] = field(default_factory=list)

    @property
    def tier(self) -> Tier:
        """The one with most of the work."""
        return max(self.macs, key=lambda tier: self.macs[tier])

    def note(self, reason: str) -> None:
        """Add a reason once."""
        if reason not in self.why:
            self.why.append(reason)


@dataclass
class TierReport:
    """The tiles of a product, or of the products of a batch."""

    tiles: list[TileReport] = field(default_factory=list)

    @property
    def shares(self) -> Mapping[Tier, float]:
        """Share of the multiply-adds of each tier."""
        total = sum(sum(tile.macs.values()) for tile in self.tiles) or 1
        return {
            tier: sum(tile.macs[tier] for tile in self.tiles) / total for tier in Tier
        }

    def __str__(self) -> str:
        """Give the shares, and one line for each tile."""
        shares = ", ".join(f"{t.value} {100 * s:.2f} %" for t, s in self.shares.items())
        lines = [
            f"D[{t.rows.start}:{t.rows.stop}, {t.columns.start}:{t.columns.stop}] "
            f"{t.tier.value}: {'; '.join(t.why)}"
            for t in self.tiles
        ]
        return "\n".join([shares, *lines])
