"""Part 7. store_pipeline: when a stage of D may be written, and C's be loaded again.

CUTLASS's ``PipelineTmaStore``. A store reads its stage without a barrier of its own:
the warp that has issued it asks how many are pending, and a named barrier tells the
others. Where D is written to the stage that C came in, that answer gives C's stage
back too.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.pipeline import PipelineState
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, NamedBarrierId
from fp4ref.hardware import named_barrier, tma
from fp4ref.hardware.sm import Blocked, frame


def load_wait_state(store: PipelineState) -> PipelineState:
    """Return the stage of C that the next subtile of D is written to.

    D's producer starts with phase 1, C's consumer with 0.
    """
    return PipelineState(store.index, store.phase ^ 1, store.count)


def store_buffer(e: Epilogue) -> int:
    """Shared address of the stage of D that is stored next."""
    return e.storage.address("d_subtile", e.store.index)


def advance_store(e: Epilogue) -> None:
    """Go to the next stage of D."""
    e.store.advance(e.storage.plan.store_stages)


@frame("7.9")
def acquire(e: Epilogue) -> Generator[Blocked, None, None]:
    """Wait until the next stage of D has been read by its last store."""
    if e.issues_stores:
        yield from tma.wait_group(e.warp, e.storage.plan.d_stages - 1, read=True)
    yield from synchronize(e)


def synchronize(e: Epilogue) -> Generator[Blocked, None, None]:
    """Meet the other epilogue warps."""
    yield from named_barrier.sync(
        e.warp, NamedBarrierId.EPILOGUE.value, EPILOGUE_THREADS
    )


def release_c(e: Epilogue) -> None:
    """Give C's oldest stage back, if the store from it has been waited for."""
    plan = e.storage.plan
    if plan.store_releases_c and e.store.count - e.c.state.count == plan.d_stages:
        e.c.release()


def release_tail(e: Epilogue) -> None:
    """Give the stages back that the last stores have read: CUTLASS's store_tail."""
    while e.storage.plan.store_releases_c and e.c.state.count < e.store.count:
        e.c.release()
