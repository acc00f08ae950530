"""scheduler: what a role asks of every tile scheduler.

The roles do not know which one it is, so they do not change with it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware.sm import Blocked, Warp

SOURCE_IS_CALLER = True
"""In a trace a note names the scheduler's statement."""


class TileScheduler(Protocol):
    """One warp's own view."""

    def initial_work(self) -> WorkTile:
        """Tile that the CTA's own index stands for."""
        ...

    def fetch_next_work(self) -> Generator[Blocked, None, WorkTile]:
        """Return the next tile, or `NO_WORK`."""
        ...


def noted(warp: Warp, what: str, work: WorkTile) -> WorkTile:
    """Tell the trace which tile it is, and return it."""
    facts = {"m": work.m, "n": work.n, "l": work.l, "valid": work.valid}
    if work.split:
        facts["split"] = work.split
    warp.note(f"tile_scheduler.{what}", **facts)
    return work
