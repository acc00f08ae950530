"""Part 8. cleanup: drain the pipelines, free TMEM, let dependents start.

No warp may leave while an arrival of another can still come: tails wait until every
stage has been given back. TMEM is freed only after the epilogue has read it.
"""

from __future__ import annotations

from collections.abc import Generator

from fp4ref.gemm.multiply.allocator import Allocator
from fp4ref.gemm.pipeline import Producer
from fp4ref.hardware import clc, tma
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.hardware.tmem import COLUMNS as TMEM_COLUMNS


def load_tail(warp: Warp, mainloop: Producer) -> Generator[Blocked, None, None]:
    """Wait until every mainloop stage is empty again. Frame 8.1."""
    with warp.frame("8.1"):
        yield from mainloop.tail()


def mma_tail(
    warp: Warp, accumulator: Producer, taddr: int, allocator: Allocator
) -> Generator[Blocked, None, None]:
    """Release dependents and the allocation permit, drain, free. Frames 8.2 to 8.7."""
    with warp.frame("8.2"):
        clc.griddepcontrol_launch_dependents(warp)
        allocator.relinquish()
    with warp.frame("8.3"):
        yield from accumulator.tail()
    with warp.frame("8.5"):
        yield from allocator.free(taddr, TMEM_COLUMNS)
    with warp.frame("8.7"):
        warp.note("exit", columns_allocated=warp.tmem.allocated)


def store_tail(warp: Warp) -> Generator[Blocked, None, None]:
    """Wait until the stores have read their shared memory. Frame 7.11.

    CUTLASS waits only where C is loaded and its memory reused for D, and otherwise
    leaves the stores to CTA exit. The PTX text does not say that shared memory outlives
    its CTA, so this kernel waits.
    """
    with warp.frame("7.11"):
        yield from tma.wait_group(warp, 0, read=True)
