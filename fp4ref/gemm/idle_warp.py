"""Part 1. idle_warp: a warp that this configuration leaves without work."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.parts import Parts
from fp4ref.gemm.shared_storage import SharedStorage, init_barriers
from fp4ref.hardware.sm import Blocked, Warp


def idle_warp(
    warp: Warp, storage: SharedStorage, parts: Parts
) -> Generator[Blocked, None, None]:
    """Meet the others once, so that their counts hold."""
    yield from init_barriers(warp, storage)
