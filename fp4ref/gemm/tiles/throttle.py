"""Part 2. throttle: the scheduler asks once the load warp has begun a tile."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.pipeline import Producer, arrive_on_full
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware.sm import Blocked, Warp


class ClcThrottle:
    """CUTLASS's CLC throttle pipeline, from the load warp's side."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        self._ring = Producer(
            warp, storage.ring("throttle"), arrive_on_full(WARP_THREADS)
        )

    def release(self) -> Generator[Blocked, None, None]:
        """Say that a tile has been started: one more may be asked for."""
        with (yield from self._ring.acquire()):
            pass


class NoThrottle:
    """A static scheduler asks nobody."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        pass

    def release(self) -> Generator[Blocked, None, None]:
        """Nothing to say."""
        yield from ()
