"""execute: run a CUTLASS example with its compiled kernel on the emulated SM.

The example's own host code makes the inputs, launches, and judges. The inputs on the
device can be replaced by others: the example's small integers cannot tell a right
accumulator from a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.cutlass.cudart import Copy, Launch, LaunchKernel, OnCopy
from fp4ref.cutlass.example_table import find_example
from fp4ref.cutlass.examples import (
    ExampleResult,
    check_machine,
    prepare_example,
)
from fp4ref.cutlass.toolchain import Progress
from fp4ref.errors import InputError
from fp4ref.execution.traced_machine import TracedMachine
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.layout import sf_nbytes, unswizzle_scales
from fp4ref.numerics import ScaleFormat, unpack_e2m1
from fp4ref.ptx import Program, launch, parse
from fp4ref.ptx.text.parser import Module
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.trace import Trace


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
        columns = n // NVFP4_VEC_SIZE
        swizzled = self.allocation("SFD")[: sf_nbytes(m, columns)]
        return codes, unswizzle_scales(swizzled, m, columns)


@cache
def _module(ptx: Path) -> Module:
    """Parse an example's PTX once."""
    return parse(ptx.read_text())


def execute_example(
    name: str,
    m: int,
    n: int,
    k: int,
    *,
    operands: tuple[BlockScaled, BlockScaled] | None = None,
    contents: Mapping[str, bytes] | None = None,
    more: Sequence[str] = (),
    source: Path | None = None,
    schedule: str | int | None = None,
    ordering: Ordering = "shipped",
    sms: int | None = None,
    trace: bool = True,
    progress: Progress | None = None,
) -> CutlassRun:
    """Build an example, run it, and execute its kernels' PTX.

    Parameters
    ----------
    operands
        NVFP4 matrices, put on the device in place of A, B and their scales. The
        example's own check then fails, because the host computes with what it had.
    contents
        The same for operands of any format: bytes by name of the allocation.
    more
        Further arguments of its command line, for example ``("--beta=0.5",)``.
    source
        A changed copy of its program; None is the package's.
    schedule, ordering, sms
        As for `fp4ref.run`; without a schedule, the example's own;
        without a number of SMs, 2 or as many as a cluster has CTAs.

    Raises
    ------
    InputError
        It cannot be built, or an argument cannot be used.
    NotModelled
        It calls CUDA functions that the stand-in runtime lacks.
    """
    example = find_example(name)
    schedule = example.schedule if schedule is None else schedule
    sms = max(2, example.cluster) if sms is None else sms
    check_machine(name, sms)
    if operands is not None:
        contents = _contents(name, operands) | dict(contents or {})
    replacements = _replacements(name, contents or {})
    traced = TracedMachine(sms, schedule, ordering, trace)
    ready = prepare_example(name, m, n, k, progress, more, source)
    result = ready.run(
        traced.machine,
        _launcher(_module(ready.built.ptx), traced.record_anew),
        _replacer(replacements, m, n, k) if replacements else None,
    )
    found = traced.trace(_meta(name, m, n, k) | traced.meta())
    return CutlassRun(result, found, dict(traced.machine.advisories))


def execute_on(
    machine: Machine,
    name: str,
    m: int,
    n: int,
    k: int,
    progress: Progress | None = None,
) -> ExampleResult:
    """Build an example and execute its kernels' PTX on a machine without a recorder.

    What the order of accesses says is in ``machine.order.findings``.

    Raises
    ------
    InputError
        It cannot be built, or an argument cannot be used.
    NotModelled
        It calls CUDA functions that the stand-in runtime lacks.
    """
    check_machine(name, len(machine.sms))
    ready = prepare_example(name, m, n, k, progress)
    return ready.run(machine, _launcher(_module(ready.built.ptx), lambda: None))


def _launcher(module: Module, begin: Callable[[], None]) -> LaunchKernel:
    """Return what executes a kernel of `module`, after a call of `begin`."""

    def run_kernel(machine: Machine, found: Launch) -> list[str]:
        program = Program.of(module, found.name)
        begin()
        return launch(
            machine,
            program,
            found.grid,
            found.block,
            found.params,
            cluster=found.cluster,
            preferred=found.preferred,
            nonportable=found.nonportable,
            smem_nbytes=found.smem_nbytes,
        )

    return run_kernel


def _replacer(replacements: dict[int, bytes], m: int, n: int, k: int) -> OnCopy:
    """Return what puts other bytes on the device; the product's sizes must agree."""

    def on_copy(copy: Copy, data: bytes) -> bytes | None:
        other = replacements.get(copy.allocation)
        if other is not None and len(other) != len(data):
            raise InputError(
                f"the operands have {len(other)} bytes where the example has "
                f"{len(data)}; give matrices of {m} x {k} and {n} x {k}"
            )
        return other

    return on_copy


def _contents(name: str, operands: tuple[BlockScaled, BlockScaled]) -> dict[str, bytes]:
    """Bytes of two matrices and their scales, by name of the allocation."""
    a, b = operands
    for q in operands:
        if q.format != "nvfp4" or q.scale_format is not ScaleFormat.UE4M3:
            raise InputError(f"example {name} takes NVFP4 operands with UE4M3 scales")
    return {
        "A": a.packed().tobytes(),
        "B": b.packed().tobytes(),
        "SFA": a.swizzled_scales().data.tobytes(),
        "SFB": b.swizzled_scales().data.tobytes(),
    }


def _replacements(name: str, contents: Mapping[str, bytes]) -> dict[int, bytes]:
    """Bytes to put on the device, by the order of the allocation."""
    order = {held: i for i, held in find_example(name).allocations.items()}
    if unknown := set(contents) - set(order):
        raise InputError(
            f"example {name}: its operands cannot be replaced; it has no allocation "
            f"{', '.join(sorted(unknown))}"
        )
    return {order[held]: data for held, data in contents.items()}


def _meta(name: str, m: int, n: int, k: int) -> dict[str, Any]:
    """Say what ran, in the words of `fp4ref.run`, so that traces can be compared."""
    return {
        "backend": "ptx",
        "kernel": f"CUTLASS {name}",
        "shape": {"m": m, "n": n, "k": k, "l": 1},
        "scale_format": ScaleFormat.UE4M3.name,
    }
