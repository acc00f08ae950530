"""skeleton: the kernel without its MMAs on a card, beside a copy of the card's memory.

What is left is TMA, barriers, the scheduler, and the epilogue, whose accumulators are
constants; the MMA warp gives a stage back at once. One problem streams B, another
stores D; both are larger than the L2 cache.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import fp4ref
from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import compile_soft
from fp4ref.cuda_kernel.on_device import SOFT_VARIABLES, kernel_call
from fp4ref.device.driver import bindings, call
from fp4ref.device.launch import Call, Module
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from probes.kernel.mistakes import Mistake, together

REPEATS = 20
COPY_NBYTES = 1 << 30
LEFT_OUT = (
    Mistake(
        "operations",
        "tensor_core_queue.cuh",
        "    delay(8, operation.what + operation.d);\n",
        "    if (operation.what == COMMIT) mbarrier_arrive(operation.d);\n"
        "    return;\n",
    ),
    Mistake(
        "TMEM",
        "tensor_core_queue.cuh",
        '    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : '
        '"l"(cell + column * 512) : "memory");\n',
        "    word = column;\n",
    ),
)
"""Lines of the soft tensor core, and what stands there in the skeleton."""

CASES: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "streams B, clc": ((128, 132 * 128, 16384), {}),
    "streams B, static": ((128, 132 * 128, 16384), {"scheduler": "static"}),
    "stores D, clc": ((8192, 66 * 128, 256), {}),
    "stores D, static": ((8192, 66 * 128, 256), {"scheduler": "static"}),
}


def changed() -> dict[str, str]:
    """Return the soft tensor core's text without what is left out, by path."""
    return together(*LEFT_OUT)


def problems() -> Iterator[tuple[str, GemmProblem, int]]:
    """Yield each case: its problem, and the bytes of A, B, their scales and D."""
    for name, ((m, n, k), more) in CASES.items():
        config = GemmConfig.nvfp4(**more)
        a, b = (
            fp4ref.BlockScaled(
                np.zeros((rows, k), np.uint8), np.zeros((rows, k // 16), np.uint8)
            )
            for rows in (m, n)
        )
        problem = GemmProblem(Machine(132), a, b, None, None, config, 1.0)
        nbytes = (m + n) * k * 9 // 16 + 4 * m * n
        yield name, problem, nbytes


class Timed(Module):
    """A cubin whose launches are timed by events of the card."""

    def microseconds(self, what: Call) -> list[float]:
        """Launch it again and again on the same buffers; the first does not count."""
        driver, addresses = self._driver, {}
        first, last = (call(driver.cuEventCreate, 0) for _ in range(2))
        taken: list[float] = []
        try:
            for name, data in what.buffers.items():
                addresses[name] = int(call(driver.cuMemAlloc, data.size))
                call(driver.cuMemsetD8, addresses[name], 0, data.size)
            for _ in range(REPEATS + 1):
                for name in SOFT_VARIABLES:
                    self.fill(name)
                call(driver.cuEventRecord, first, 0)
                self._launch(what, addresses)
                call(driver.cuEventRecord, last, 0)
                call(driver.cuEventSynchronize, last)
                taken.append(1000 * call(driver.cuEventElapsedTime, first, last))
        finally:
            for address in addresses.values():
                driver.cuMemFree(address)
        return taken[1:]


def copy_microseconds() -> list[float]:
    """Copy from the card's memory to the card's memory; the first does not count."""
    driver = bindings()
    first, last = (call(driver.cuEventCreate, 0) for _ in range(2))
    source, to = (int(call(driver.cuMemAlloc, COPY_NBYTES)) for _ in range(2))
    taken = []
    for _ in range(REPEATS + 1):
        call(driver.cuEventRecord, first, 0)
        call(driver.cuMemcpyDtoDAsync, to, source, COPY_NBYTES, 0)
        call(driver.cuEventRecord, last, 0)
        call(driver.cuEventSynchronize, last)
        taken.append(1000 * call(driver.cuEventElapsedTime, first, last))
    for address in (source, to):
        driver.cuMemFree(address)
    return taken[1:]


def rate(nbytes: int, taken: list[float]) -> dict[str, float]:
    """Return microseconds and terabytes a second, of the median and the extremes."""
    middle = float(np.median(taken))
    return {
        "bytes": nbytes,
        "us": round(middle, 2),
        "us_least": round(min(taken), 2),
        "us_most": round(max(taken), 2),
        "tb_per_s": round(nbytes / middle / 1e6, 3),
    }


def measure() -> dict[str, dict[str, float]]:
    """Run everything on the card; the copy counts bytes read and written."""
    found = {}
    for name, problem, nbytes in problems():
        start = time.perf_counter()
        compiled = compile_soft(problem.config, changed=changed())
        module = Timed(compiled.cubin)
        taken = module.microseconds(kernel_call(problem, soft=True))
        found[name] = rate(nbytes, taken)
        print(name, found[name], round(time.perf_counter() - start, 1), flush=True)
    found["copy"] = rate(2 * COPY_NBYTES, copy_microseconds())
    return found
