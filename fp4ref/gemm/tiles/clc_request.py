"""Part 2. clc_request: asks for one more tile, or for one more cluster of tiles."""

from __future__ import annotations

from typing import Protocol

from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.hardware import clc, cluster, mbarrier
from fp4ref.hardware.sm import Warp


class ClcRequest(Protocol):
    """How the scheduler warp asks for the next tiles."""

    @staticmethod
    def ask(warp: Warp, storage: SharedStorage, stage: Stage) -> None:
        """Tell the full barriers what will come, and ask."""
        ...


class TileRequest:
    """Asks for one CTA: the answer comes to this one."""

    @staticmethod
    def ask(warp: Warp, storage: SharedStorage, stage: Stage) -> None:
        """Tell the full barrier what will come, and ask. Frame 1.10."""
        mbarrier.arrive_expect_tx(warp, stage.full, clc.RESPONSE_NBYTES)
        slot = storage.address("clc_response", stage.index)
        clc.try_cancel(warp, slot, stage.full)


class ClusterRequest:
    """Asks for one cluster: the answer comes to every CTA of this one.

    Each of them has its own full barrier, which is told from here what will come.
    """

    @staticmethod
    def ask(warp: Warp, storage: SharedStorage, stage: Stage) -> None:
        """Tell every full barrier what will come, and ask. Frame 1.10."""
        for rank in range(storage.plan.cluster_size):
            full = cluster.mapa(warp, stage.full, rank)
            mbarrier.arrive_expect_tx(
                warp, full, clc.RESPONSE_NBYTES, semantics=stage.signals.semantics
            )
        slot = storage.address("clc_response", stage.index)
        clc.try_cancel(warp, slot, stage.full, multicast=True)
