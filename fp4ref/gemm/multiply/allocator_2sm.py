"""Part 4. allocator_2sm: TMEM of a pair."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import cluster, mbarrier, tmem
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.hardware.sm import Blocked, Warp


@dataclass(frozen=True, slots=True)
class Allocator2Sm:
    """CUTLASS's ``TMEM::Allocator2Sm``: a warp of each CTA of the pair."""

    warp: Warp
    storage: SharedStorage

    def alloc(self, pointer: int, columns: int) -> Generator[Blocked, None, None]:
        """Allocate; the address is written at `pointer` in this CTA. Frame 4.2."""
        yield from tmem.alloc(self.warp, pointer, columns, cta_group=2)

    def relinquish(self) -> None:
        """Say that no more will be asked for. Frame 8.2."""
        tmem.relinquish_alloc_permit(self.warp, cta_group=2)

    def free(self, taddr: int, columns: int) -> Generator[Blocked, None, None]:
        """Give the columns back once the peer has done with its own. Frames 8.4, 8.5.

        The peer's epilogue may still read what the leader's MMAs wrote.
        """
        warp, cta = self.warp, self.storage.cta
        own = self.storage.ring("tmem_dealloc").full[0]
        in_cluster = Semantics(scope="cluster")
        with warp.frame("8.4"):
            theirs = cluster.mapa(warp, own, cta.peer)
            mbarrier.arrive(warp, theirs, WARP_THREADS, in_cluster)
            yield from mbarrier.try_wait(warp, own, 0, in_cluster)
        tmem.dealloc(warp, taddr, columns, cta_group=2)
