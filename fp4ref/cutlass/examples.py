"""examples: CUTLASS's own programs, unmodified, on the emulated machine.

Each one fills its tensors, launches its kernel, computes the product once more on the
host, compares, and says what it found. That sentence is the verdict here too.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4ref.cutlass.cudart import Copy, Launch, LaunchKernel, OnCopy, Runtime
from fp4ref.cutlass.entries import read_entries
from fp4ref.cutlass.example_table import EXAMPLES, find_example
from fp4ref.cutlass.process import run_program
from fp4ref.cutlass.toolchain import (
    Build,
    Progress,
    build,
    build_stand_in,
    find_toolchain,
)
from fp4ref.errors import Fp4refError, InputError
from fp4ref.files.free_memory import require_memory
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import TensorMap

MOST_EXTENT = (1 << 31) - 1
_NBYTES_AN_ELEMENT = 16
"""The example's tensors, its reference, and the emulated device's copy of both."""


@dataclass(frozen=True)
class ExampleResult:
    """What one run of an example did.

    Attributes
    ----------
    passed
        The example printed its verdict, nothing failed, and it ended well.
    output
        What it and its kernels printed.
    launches, copies, tensor_maps
        What it asked the CUDA runtime for, in order.
    problems
        What went wrong, in words; empty for a run without faults.
    fault
        The fault behind it, if there is one.
    machine
        Still holds the device memory: ``machine.gmem.contents(copy.address, ...)``.
    seconds
        From the start of the program to its end, without builds.
    """

    name: str
    passed: bool
    output: str
    launches: list[Launch]
    copies: list[Copy]
    tensor_maps: list[TensorMap]
    problems: list[str]
    fault: Fp4refError | None
    machine: Machine
    seconds: float


def check_sizes(m: int, n: int, k: int) -> None:
    """Raise `InputError` for a product that no example can hold."""
    product = f"a product of {m} x {n} x {k}"
    if min(m, n, k) < 1:
        raise InputError(f"{product}; every extent is 1 or more")
    if max(m, n, k) > MOST_EXTENT:
        raise InputError(
            f"{product}; the examples read each extent as an int, at most "
            f"{MOST_EXTENT:,}"
        )
    elements = m * k + n * k + m * n
    require_memory(elements * _NBYTES_AN_ELEMENT, product, "Take smaller sizes.")


def check_multiples(name: str, m: int, n: int, k: int) -> None:
    """Raise `InputError` where the example would only fail without a word.

    `run_example` leaves the refusal to the example itself.
    """
    multiples = find_example(name).multiples
    if any(size % each for size, each in zip((m, n, k), multiples, strict=True)):
        of_m, of_n, of_k = multiples
        raise InputError(
            f"a product of {m} x {n} x {k}; example {name} takes multiples of "
            f"{of_m} x {of_n} x {of_k}"
        )


def check_machine(name: str, sms: int) -> None:
    """Raise `InputError` for a machine with fewer SMs than a cluster has CTAs."""
    needed = find_example(name).cluster
    if 0 < sms < needed:
        raise InputError(
            f"example {name} on {sms} SMs; its clusters need {needed}, one for each CTA"
        )


def example_source(name: str) -> Path:
    """Return an example's program in the installed package.

    Raises
    ------
    InputError
        It is not known, or the package is missing or has no such program.
    """
    example, tools = find_example(name), find_toolchain()
    source = tools.cutlass / "examples" / example.source
    if not source.is_file():
        raise InputError(f"{tools.versions[0]} has no examples/{example.source}")
    return source


def build_example(
    name: str, progress: Progress | None = None, source: Path | None = None
) -> Build:
    """Compile an example from the installed package, or find it in the cache.

    Parameters
    ----------
    source
        A changed copy of its program; None is the package's.

    Raises
    ------
    InputError
        It is not known, a package is missing, or a compiler refused it.
    """
    example, tools = find_example(name), find_toolchain()
    source = source or example_source(name)
    return build(tools, source, progress=progress, headers=example.headers)


@dataclass(frozen=True)
class ReadyExample:
    """A built example and the product that it is to compute.

    Attributes
    ----------
    name
        A key of `EXAMPLES`.
    arguments
        Of its command line.
    """

    name: str
    built: Build
    arguments: list[str]

    def run(
        self,
        machine: Machine,
        launch: LaunchKernel,
        on_copy: OnCopy | None = None,
        timeout: float = 600,
    ) -> ExampleResult:
        """Run it with its kernels on `machine`, and let it judge.

        The parameters, and what is raised, are those of `run_example`.
        """
        example = EXAMPLES[self.name]
        runtime = Runtime(
            machine,
            read_entries(self.built.ptx.read_text()),
            launch,
            on_copy,
            example.allocations,
            example.multiprocessors,
        )
        library = build_stand_in(find_toolchain())
        ended = run_program(
            self.built.program, self.arguments, library, runtime, timeout
        )
        problems = [str(runtime.fault)] if runtime.fault else []
        problems += runtime.refused_maps
        if ended.reason:
            problems.append(ended.reason)
        return ExampleResult(
            self.name,
            not problems and ended.output.count(example.verdict) == example.kernels,
            ended.output,
            runtime.launches,
            runtime.copies,
            runtime.tensor_maps,
            problems,
            runtime.fault,
            runtime.machine,
            ended.seconds,
        )


def prepare_example(
    name: str,
    m: int,
    n: int,
    k: int,
    progress: Progress | None = None,
    more: Sequence[str] = (),
    source: Path | None = None,
) -> ReadyExample:
    """Build an example for a product of M x N x K.

    Parameters
    ----------
    more
        Further arguments of its command line.
    source
        As for `build_example`.

    Raises
    ------
    InputError
        It cannot be built, or the product is too large.
    """
    check_sizes(m, n, k)
    arguments = [*find_example(name).arguments(m, n, k), *more]
    return ReadyExample(name, build_example(name, progress, source), arguments)


def run_example(
    name: str,
    m: int,
    n: int,
    k: int,
    *,
    launch: LaunchKernel,
    machine: Machine | None = None,
    on_copy: OnCopy | None = None,
    progress: Progress | None = None,
    timeout: float = 600,
) -> ExampleResult:
    """Build an example, run it with its kernels on `machine`, and let it judge.

    Parameters
    ----------
    name
        A key of `EXAMPLES`.
    m, n, k
        Problem size.
    launch
        Runs one kernel to its end; the PTX is in ``build_example(name).ptx``.
    machine
        Two SMs with ``ordering="shipped"`` by default.
    on_copy
        May replace what the example copies to the device. Its own check then fails,
        because the host computes with what it had.
    timeout
        Seconds that the example may compute between two CUDA calls.

    Raises
    ------
    InputError
        It cannot be built, or an argument cannot be used.
    NotModelled
        It calls CUDA functions that the stand-in runtime lacks.
    """
    ready = prepare_example(name, m, n, k, progress)
    return ready.run(machine or Machine(ordering="shipped"), launch, on_copy, timeout)


def assemble_example(name: str, progress: Progress | None = None) -> bytes:
    """Return the cubin that ptxas makes of an example's PTX.

    Raises
    ------
    InputError
        The example cannot be built, or ptxas refuses it.
    """
    built = build_example(name, progress)
    ptxas = find_toolchain().nvcc.with_name("ptxas")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        command = [str(ptxas), "-arch=sm_100a", str(built.ptx), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"ptxas: {done.stderr.strip()}")
        return cubin.read_bytes()
