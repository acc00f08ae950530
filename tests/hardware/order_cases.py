"""order_cases: run a few warps and return what the order engine found."""

from __future__ import annotations

import numpy as np
import pytest
from on_machine import MBAR, launch, machine
from tensor_copies import tensor_map

from fp4ref.errors import HardwareFault
from fp4ref.hardware import mbarrier, named_barrier

SCHEDULES = ["eager", "late", 3]
WORD = 0x600
SECOND = MBAR + 16
ZEROS = np.zeros(4, np.uint8)

every = pytest.mark.parametrize("schedule", SCHEDULES)
both = pytest.mark.parametrize("ordering", ["ptx", "shipped"])


def found(*bodies, ordering="ptx", schedule="eager", sms=1, prepare=None, **options):
    """Run warps; return {(failure, severity)} and the machine.

    A fault of another check may end the run, but only after a race was seen.
    """
    on = machine(schedule, ordering=ordering, sms=sms, trace=True, races="collect")
    if prepare is not None:
        on.tensor_map = prepare(on)
    try:
        launch(on, *bodies, **options)
    except HardwareFault:
        if not on.order.findings.races:
            raise
    return set(on.order.findings.counts), on


def failures(*bodies, **options):
    return {failure for failure, _ in found(*bodies, **options)[0]}


def box(on):
    return tensor_map(on, "UINT8", (128, 8), (128, 1))[1]


def ready(warp, *counts):
    """Initialise mbarriers and meet."""
    if warp.index == 0:
        for i, count in enumerate(counts):
            mbarrier.init(warp, MBAR + 8 * i, count)
        mbarrier.fence_mbarrier_init(warp)
    yield from named_barrier.sync(warp, 0)


def written(cta):
    """No byte of shared memory is without a value."""
    cta.smem.written[:] = True
