"""execute: run a CUTLASS example with its compiled kernel on the emulated SM.

The example's own host code makes the inputs, launches, and judges. The inputs on the
device can be replaced by others: the example's small integers cannot tell a right
accumulator from a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.cutlass.cudart import Copy
from fp4ref.cutlass.examples import (
    ExampleResult,
    build_example,
    check_sizes,
    find_example,
    run_example,
)
from fp4ref.cutlass.toolchain import Progress
from fp4ref.errors import InputError
from fp4ref.gemm.config import SF_VEC_SIZE
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.schedule import make_schedule
from fp4ref.layout import sf_nbytes, unswizzle_scales
from fp4ref.numerics import ScaleFormat, unpack_e2m1
from fp4ref.ptx import Program, launch, parse
from fp4ref.ptx.text.parser import Module
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.trace import Dim3, Recorder, Trace


@dataclass(frozen=True)
class CutlassRun:
    """One run of an example.

    Attributes
    ----------
    result
        What the example printed and asked for; `result.passed` is its own verdict.
    trace
        Every event of the last launch; None if the run was not traced.
    advisories
        What the kernel relies on beyond the PTX text, with counts.
    """

    result: ExampleResult
    trace: Trace | None
    advisories: dict[str, int]

    def allocation(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of a named allocation, for example ``"D"``.

        Raises
        ------
        InputError
            The example has no allocation of that name.
        """
        for found, address, nbytes in self.result.machine.gmem.allocations:
            if found == name:
                return self.result.machine.gmem.contents(address, nbytes)
        raise InputError(f"example {self.result.name} has no allocation {name!r}")

    def output(self, m: int, n: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return D's codes (m, n) and SFD's codes (m, n / 16) of example 72b."""
        codes = unpack_e2m1(self.allocation("D")[: m * n // 2]).reshape(m, n)
        columns = n // SF_VEC_SIZE
        swizzled = self.allocation("SFD")[: sf_nbytes(m, columns)]
        return codes, unswizzle_scales(swizzled, m, columns)


@cache
def _module(name: str) -> Module:
    """Parse an example's PTX once."""
    return parse(build_example(name).ptx.read_text())


def execute_example(
    name: str,
    m: int,
    n: int,
    k: int,
    *,
    operands: tuple[BlockScaled, BlockScaled] | None = None,
    schedule: str | int | None = None,
    ordering: Ordering = "shipped",
    sms: int = 2,
    trace: bool = True,
    progress: Progress | None = None,
) -> CutlassRun:
    """Build an example, run it, and execute its kernels' PTX.

    Parameters
    ----------
    operands
        Put on the device in place of 72b's A, B and their scales. Its own check then
        fails, because the host computes with what it had.
    schedule, ordering, sms
        As for `fp4ref.run`; without a schedule, the example's own.

    Raises
    ------
    InputError
        It cannot be built, or an argument cannot be used.
    NotModelled
        It calls CUDA functions that the stand-in runtime lacks.
    """
    if schedule is None:
        schedule = find_example(name).schedule
    check_sizes(m, n, k)
    machine = Machine(sms, make_schedule(schedule), ordering)
    build_example(name, progress)
    module = _module(name)
    if trace:
        machine.recorder = Recorder()

    def run_kernel(
        machine: Machine,
        entry: str,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        smem_nbytes: int,
        params: bytes,
    ) -> list[str]:
        program = Program.of(module, entry)
        if trace:
            machine.recorder = Recorder()
        return launch(
            machine,
            program,
            grid,
            block,
            params,
            cluster=cluster,
            smem_nbytes=smem_nbytes,
        )

    replacements = _replacements(name, operands)

    def on_copy(copy: Copy, data: bytes) -> bytes | None:
        other = replacements.get(copy.allocation)
        if other is not None and len(other) != len(data):
            raise InputError(
                f"the operands have {len(other)} bytes where the example has "
                f"{len(data)}; give matrices of {m} x {k} and {n} x {k}"
            )
        return other

    result = run_example(
        name,
        m,
        n,
        k,
        launch=run_kernel,
        machine=machine,
        on_copy=on_copy if replacements else None,
        progress=progress,
    )
    found = machine.recorder.trace if machine.recorder else None
    if found is not None:
        found.meta = _meta(name, m, n, k, machine)
    return CutlassRun(result, found, dict(machine.advisories))


def _replacements(
    name: str, operands: tuple[BlockScaled, BlockScaled] | None
) -> dict[int, bytes]:
    """Bytes to put on the device, by the order of the allocation."""
    if operands is None:
        return {}
    order = {held: i for i, held in find_example(name).allocations.items()}
    if not {"A", "B", "SFA", "SFB"} <= set(order):
        raise InputError(f"example {name}: its operands cannot be replaced")
    a, b = operands
    for q in operands:
        if q.format != "nvfp4" or q.scale_format is not ScaleFormat.UE4M3:
            raise InputError(f"example {name} takes NVFP4 operands with UE4M3 scales")
    return {
        order["A"]: a.packed().tobytes(),
        order["B"]: b.packed().tobytes(),
        order["SFA"]: a.swizzled_scales().data.tobytes(),
        order["SFB"]: b.swizzled_scales().data.tobytes(),
    }


def _meta(name: str, m: int, n: int, k: int, machine: Machine) -> dict[str, Any]:
    """Say what ran, in the words of `fp4ref.run`, so that traces can be compared."""
    return {
        "backend": "ptx",
        "kernel": f"CUTLASS {name}",
        "shape": {"m": m, "n": n, "k": k, "l": 1},
        "scale_format": ScaleFormat.UE4M3.name,
        "schedule": machine.schedule.name,
        "ordering": machine.ordering,
        "sms": len(machine.sms),
        "allocations": [list(found) for found in machine.gmem.allocations],
    }
