"""on_machine: launch a kernel of hand-written warps, and what many tests need."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.machine import Machine, Races
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.sm import Blocked, Cta, Role, Warp
from fp4ref.trace import Dim3, Recorder

BASE = 0x400
"""First shared address of a CTA."""
MBAR = BASE
"""Where most tests keep an mbarrier."""
TILE = BASE + 0x400
"""A shared address on a 1,024-byte boundary."""

Bytes = NDArray[np.uint8]
Body = Callable[[Warp], Generator[Blocked, None, None] | None]


def role(body: Body) -> Role:
    """A body is a generator function, or a plain one that never blocks."""

    def run(warp: Warp) -> Generator[Blocked, None, None]:
        result = body(warp)
        if result is not None:
            yield from result

    return run


def machine(
    schedule: str | int = "eager",
    *,
    sms: int = 1,
    ordering: Ordering = "ptx",
    trace: bool = False,
    races: Races | None = None,
) -> Machine:
    recorder = Recorder() if trace else None
    return Machine(sms, make_schedule(schedule), ordering, recorder, races)


def launch(
    on: Machine,
    *bodies: Body,
    grid: Dim3 = (1, 1, 1),
    cluster: Dim3 = (1, 1, 1),
    setup: Callable[[Cta], None] | None = None,
    **options: Any,
) -> Machine:
    """Run a grid whose every CTA has one warp for each body; returns the machine."""

    def kernel(cta: Cta) -> Sequence[Role]:
        if setup is not None:
            setup(cta)
        return [role(body) for body in bodies]

    on.launch(kernel, grid, cluster=cluster, **options)
    return on


def random_bytes(count: int, seed: int = 0) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


def xor_swizzle(address: int, bits: int) -> int:
    """Address after the swizzle of `bits` row bits: 0 none, 1 32B, 2 64B, 3 128B.

    Source: PTX, Tensor swizzling modes: chunk index (from bit 4) XOR row (from bit 7).
    4 is 128B with atoms of 32 bytes: their index (bits 5 and 6) XOR row.
    """
    if bits == 4:
        return address ^ (address >> 7 & 3) << 5
    return address ^ (((address >> 7) & ((1 << bits) - 1)) << 4)


def word_at(on: Machine, address: int, sm: int = 0) -> int:
    """The 64-bit word at a shared address, as raw memory."""
    at = address - BASE
    return int.from_bytes(on.sms[sm].smem.data[at : at + 8].tobytes(), "little")
