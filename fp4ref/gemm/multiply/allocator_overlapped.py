"""Part 4. allocator_overlapped: TMEM of overlapped accumulators.

It is freed when the epilogue has said that it has done: of this CTA, or of both of a
pair.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm.multiply.allocator import Allocator1Sm
from fp4ref.gemm.multiply.allocator_2sm import Allocator2Sm
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import mbarrier, tmem
from fp4ref.hardware.mbarrier import DEFAULT, Semantics
from fp4ref.hardware.sm import Blocked, Warp


@dataclass(frozen=True, slots=True)
class OverlappedAllocator1Sm(Allocator1Sm):
    """TMEM of one CTA whose accumulators overlap."""

    def free(self, taddr: int, columns: int) -> Generator[Blocked, None, None]:
        """Give the columns back after the epilogue. Frames 8.5 and 8.6."""
        yield from epilogue_done(self.warp, self.storage)
        tmem.dealloc(self.warp, taddr, columns)


@dataclass(frozen=True, slots=True)
class OverlappedAllocator2Sm(Allocator2Sm):
    """TMEM of a pair whose accumulators overlap."""

    def free(self, taddr: int, columns: int) -> Generator[Blocked, None, None]:
        """Give the columns back after both epilogues. Frames 8.5 and 8.6."""
        yield from epilogue_done(self.warp, self.storage)
        tmem.dealloc(self.warp, taddr, columns, cta_group=2)


def epilogue_done(warp: Warp, storage: SharedStorage) -> Generator[Blocked, None, None]:
    """Wait until every epilogue warp of these accumulators has done. Frame 8.6."""
    in_cluster = storage.plan.cluster_size > 1
    semantics = Semantics(scope="cluster") if in_cluster else DEFAULT
    with warp.frame("8.6"):
        done = storage.ring("tmem_dealloc").full[0]
        yield from mbarrier.try_wait(warp, done, 0, semantics)
