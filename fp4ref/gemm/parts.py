"""Parts 1 to 8. parts: which piece does each job; every choice is made here, once.

A role names the job and never the piece. In CUDA the same choices are the ``using``
lines of ``kernel/gemm/parts.cuh``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from fp4ref.gemm.config import Epilogue
from fp4ref.gemm.epilogue.block_scales import BlockScaleFactorRowStore
from fp4ref.gemm.epilogue.bulk_staging import BulkStaging
from fp4ref.gemm.epilogue.convert import Convert
from fp4ref.gemm.epilogue.epilogue_state import ElementWise, Fixup, Output, Staging
from fp4ref.gemm.epilogue.fixup import NoFixup, SplitKFixup
from fp4ref.gemm.epilogue.in_registers import InRegisters
from fp4ref.gemm.epilogue.in_smem import InSmem
from fp4ref.gemm.epilogue.no_staging import NoStaging
from fp4ref.gemm.epilogue.padded_staging import PaddedStaging
from fp4ref.gemm.epilogue.staged_loop import StagedLoop
from fp4ref.gemm.epilogue.stmatrix_writer import StmatrixWriter
from fp4ref.gemm.epilogue.swizzled_staging import SwizzledStaging
from fp4ref.gemm.epilogue.void_output import VoidOutput
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.load.cp_async_loader import CpAsyncLoader
from fp4ref.gemm.load.load_order import LoadOrder, NoLoadOrder
from fp4ref.gemm.load.multicast_loader import MulticastLoader
from fp4ref.gemm.load.tma_loader import TmaLoader
from fp4ref.gemm.multiply.after_cp_async import AfterCpAsync
from fp4ref.gemm.multiply.allocator import Allocator, Allocator1Sm
from fp4ref.gemm.multiply.allocator_2sm import Allocator2Sm
from fp4ref.gemm.multiply.allocator_overlapped import (
    OverlappedAllocator1Sm,
    OverlappedAllocator2Sm,
)
from fp4ref.gemm.multiply.mxf8f6f4 import OneSmMxf8f6f4, TwoSmMxf8f6f4
from fp4ref.gemm.multiply.one_sm import OneSm
from fp4ref.gemm.multiply.scale_copies import ScaleColumns
from fp4ref.gemm.multiply.two_sm import TwoSm
from fp4ref.gemm.multiply.unscaled import OneSmUnscaled, TwoSmUnscaled
from fp4ref.gemm.pipeline import Stage
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.gemm.tiles.clc_request import ClcRequest, ClusterRequest, TileRequest
from fp4ref.gemm.tiles.clc_scheduler import ClcTileScheduler
from fp4ref.gemm.tiles.scheduler import TileScheduler
from fp4ref.gemm.tiles.static_scheduler import StaticTileScheduler
from fp4ref.gemm.tiles.throttle import ClcThrottle, FirstCtaThrottle, NoThrottle
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.numerics.elements import BLOCKS


class Loader(Protocol):
    """How a mainloop stage is filled."""

    @property
    def k_group(self) -> int:
        """k-tiles of a whole stage."""
        ...

    def expect(self, stage: Stage, k_tiles: int) -> None:
        """Tell the full barrier how many bytes will come."""
        ...

    def prefetch(self) -> None:
        """Fetch the tensor maps ahead of their first use."""
        ...

    def load(self, stage: Stage, work: WorkTile, group: range) -> None:
        """Start the copies of the k-tiles of a stage."""
        ...


class Throttle(Protocol):
    """What lets the scheduler warp ask."""

    def signal(self) -> Generator[Blocked, None, None]:
        """Say that a tile has been started."""
        ...


class LoadOrderBarrier(Protocol):
    """What lets C start."""

    def arrive(self) -> None:
        """Say that a tile's prologue has been started."""
        ...


class Multiplier(Protocol):
    """How a stage is multiplied."""

    @property
    def k_blocks(self) -> range:
        """MMAs of a k-tile, by number."""
        ...

    def issue(
        self,
        accumulator: Stage,
        buffer: int,
        scales: ScaleColumns,
        work: WorkTile,
        k_block: int,
        accumulate: bool,
    ) -> None:
        """Issue one MMA."""
        ...


@dataclass(frozen=True)
class Parts:
    """The piece for each job, under the name that the roles use."""

    tile_scheduler: Callable[[Warp, SharedStorage], TileScheduler]
    clc_request: type[ClcRequest]
    throttle: Callable[[Warp, SharedStorage], Throttle]
    loader: Callable[[Warp, SharedStorage], Loader]
    load_order_barrier: Callable[[Warp, SharedStorage], LoadOrderBarrier]
    allocator: Callable[[Warp, SharedStorage], Allocator]
    multiplier: Callable[[Warp, SharedStorage, int], Multiplier]
    fusion: Node
    output: Output
    fixup: type[Fixup]
    element_wise: type[ElementWise]
    staging: Staging | None = None
    loop: StagedLoop | None = None


_MULTIPLIERS: dict[str, tuple[type[OneSm], type[OneSm]]] = {
    "mxf4nvf4": (OneSm, TwoSm),
    "mxf8f6f4": (OneSmMxf8f6f4, TwoSmMxf8f6f4),
    "f8f6f4": (OneSmUnscaled, TwoSmUnscaled),
    "f16": (OneSmUnscaled, TwoSmUnscaled),
}
"""For one SM and for a pair, by kind of MMA."""


def parts(plan: Plan) -> Parts:
    """Choose the pieces of a plan."""
    config, asks_clc = plan.config, plan.ring("clc").used
    pair, clustered = plan.cta_group > 1, plan.cluster_size > 1
    loader: type[Loader] = MulticastLoader if clustered else TmaLoader
    multiplier: type[Multiplier] = _MULTIPLIERS[plan.kind][pair]
    if plan.by_cp_async:
        loader, multiplier = CpAsyncLoader, AfterCpAsync
    return Parts(
        tile_scheduler=ClcTileScheduler if asks_clc else StaticTileScheduler,
        clc_request=ClusterRequest if clustered else TileRequest,
        throttle=(FirstCtaThrottle if clustered else ClcThrottle)
        if asks_clc
        else NoThrottle,
        loader=loader,
        load_order_barrier=LoadOrder if plan.loads_c else NoLoadOrder,
        allocator=_allocator(pair, plan.overlapped),
        multiplier=multiplier,
        fusion=plan.fusion,
        output=_output(config.epilogue),
        fixup=SplitKFixup if config.tiles.splits > 1 else NoFixup,
        element_wise=InSmem if plan.in_smem else InRegisters,
        staging=_staging(plan),
        loop=_loop(plan),
    )


def _staging(plan: Plan) -> Staging | None:
    nbytes = plan.staging_row_nbytes
    match plan.config.staging.staging:
        case "padded":
            return PaddedStaging(nbytes)
        case "bulk":
            return BulkStaging(nbytes)
        case "swizzled":
            return SwizzledStaging(nbytes)
        case "none":
            return NoStaging()
    return None


def _loop(plan: Plan) -> StagedLoop | None:
    asked = plan.config.staging
    late = asked.release == "stored"
    return StagedLoop(asked.unroll, late) if plan.staged else None


def _output(asked: Epilogue) -> Output:
    if asked.d_format is None:
        return VoidOutput()
    if asked.d_format in BLOCKS:
        return BlockScaleFactorRowStore(asked.sfd_format, asked.norm_constant)
    if asked.tmem_load == "16x256b":
        return StmatrixWriter(asked.d_format)
    return Convert(asked.d_format)


def _allocator(
    pair: bool, overlapped: bool
) -> Callable[[Warp, SharedStorage], Allocator]:
    if overlapped:
        return OverlappedAllocator2Sm if pair else OverlappedAllocator1Sm
    return Allocator2Sm if pair else Allocator1Sm
