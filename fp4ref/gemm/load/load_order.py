"""Part 5. load_order: C waits for the first k-tiles."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import mbarrier
from fp4ref.hardware.sm import Blocked, Warp


class LoadOrder:
    """CUTLASS's ``LoadOrderBarrier``, passed once."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        self._warp, self._barrier = warp, storage.ring("load_order").full[0]
        self._first = True

    def arrive(self) -> None:
        """Say that a tile's prologue has been started; only the first one counts."""
        if self._first:
            mbarrier.arrive(self._warp, self._barrier, WARP_THREADS)
        self._first = False

    def wait(self) -> Generator[Blocked, None, None]:
        """Wait for the first prologue."""
        yield from mbarrier.try_wait(self._warp, self._barrier, 0)


class NoLoadOrder:
    """Without C nobody waits."""

    def __init__(self, warp: Warp, storage: SharedStorage) -> None:
        pass

    def arrive(self) -> None:
        """Nothing to say."""
