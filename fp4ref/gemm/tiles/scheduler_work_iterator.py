"""Part 2. scheduler_work_iterator: the scheduler warp's way through its work units."""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.pipeline import Consumer, Producer, arrive_on_empty, committed_by_tma
from fp4ref.gemm.plan.warps import WARP_THREADS
from fp4ref.gemm.shared_storage import SharedStorage
from fp4ref.gemm.tiles.clc_request import ClcRequest
from fp4ref.gemm.tiles.scheduler import TileScheduler
from fp4ref.gemm.tiles.work_iterator import WorkIterator
from fp4ref.hardware.sm import Blocked, Warp, frame


class SchedulerWorkIterator(WorkIterator):
    """Asks for a work unit each time the load warp has begun one.

    The throttle keeps the warp from taking tiles that another SM would do sooner.
    """

    def __init__(
        self,
        warp: Warp,
        storage: SharedStorage,
        scheduler: TileScheduler,
        request: type[ClcRequest],
    ) -> None:
        super().__init__(scheduler)
        self.warp, self.storage, self.request = warp, storage, request
        self.throttle = Consumer(
            warp, storage.ring("throttle"), arrive_on_empty(WARP_THREADS)
        )
        self.clc = Producer(warp, storage.ring("clc"), committed_by_tma)

    def signal_and_advance(self) -> Generator[Blocked, None, None]:
        """Wait for the load warp's signal, give its stage back, ask for one more."""
        with (yield from self.throttle.wait()):
            pass
        yield from self.advance_to_next_work()

    @frame("1.10")
    def advance_to_next_work(self) -> Generator[Blocked, None, None]:
        """Ask for one more work unit. Frame 1.10."""
        with (yield from self.clc.acquire()) as stage:
            self.request.ask(self.warp, self.storage, stage)

    def drain(self) -> Generator[Blocked, None, None]:
        """Wait until every answer has been read."""
        yield from self.clc.tail()
