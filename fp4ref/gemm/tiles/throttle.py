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

    def signal(self) -> Generator[Blocked, None, None]:
        """Say that a tile has been started: one more may be asked for."""
        with (yield from self._ring.acquire()):
            pass


class FirstCtaThrottle(ClcThrottle):
    """In a cluster the first CTA asks for all, and is throttled by its own loads."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        super().__init__(warp, storage)
        self._asks = storage.cta.is_first

    def signal(self) -> Generator[Blocked, None, None]:
        """Say in the first CTA that a tile has been started."""
        if self._asks:
            yield from super().signal()


class NoThrottle:
    """A static scheduler asks nobody."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        pass

    def signal(self) -> Generator[Blocked, None, None]:
        """Nothing to say."""
        yield from ()
