"""player_page: where a page keeps the player, and the views of a run."""

from __future__ import annotations

PLAYER = "document.querySelector('.fp4ref-player').fp4ref"
VIEWS = (
    "timeline",
    "stages",
    "barriers",
    "smem",
    "tmem",
    "scales",
    "mma",
    "tiles",
    "sides",
)
