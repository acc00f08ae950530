"""examples: CUTLASS's own programs, unmodified, on the emulated machine.

Each one fills its tensors, launches its kernel, computes the product once more on the
host, compares, and says what it found. That sentence is the verdict here too.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fp4ref.cutlass.cudart import Copy, Launch, LaunchKernel, OnCopy, Runtime
from fp4ref.cutlass.entries import read_entries
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

Arguments = Callable[[int, int, int], list[str]]


def _options(m: int, n: int, k: int) -> list[str]:
    # One launch, which is the one that is checked; the rest would only be timed.
    return [f"--m={m}", f"--n={n}", f"--k={k}", "--iterations=0"]


def _grouped(m: int, n: int, k: int) -> list[str]:
    # Two products, so that each SM changes its tensor maps. The grid has as many CTAs
    # as the card has SMs, and all but the first few would find no work.
    return [*_options(m, n, k), "--groups=2", "--max_sm_count=4"]


def _positions(m: int, n: int, k: int) -> list[str]:
    return [str(m), str(n), str(k)]


@dataclass(frozen=True)
class Example:
    """A program that is known to run here.

    Attributes
    ----------
    source
        Path in CUTLASS's ``examples`` folder.
    verdict
        What it prints when its own check passes.
    kernels
        How many kernels it checks: it prints the verdict for each.
    allocations
        What its device allocations hold, by their order.
    schedule
        Under which it runs unless another is asked for.
    cluster
        CTAs in each of its clusters.
    multiples
        Of what M, N and K must be multiples: 16 bytes of a row for the examples, whole
        tiles for the tutorials. Each refuses others with a number, or fails.
    """

    title: str
    source: str
    verdict: str
    arguments: Arguments
    allocations: Mapping[int, str] = field(default_factory=dict)
    schedule: str = "eager"
    cluster: int = 1
    kernels: int = 1
    multiples: tuple[int, int, int] = (1, 1, 1)


_TUTORIALS = "cute/tutorial/blackwell"
_TUTORIAL_TILE = (128, 256, 64)
_CLUSTER_TILE = (512, 1024, 64)
EXAMPLES = {
    "72a": Example(
        "NVFP4 x NVFP4, output BF16, in clusters of 2 x 4 with CTA pairs",
        "72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm.cu",
        "Disposition: Passed",
        _options,
        {0: "A", 1: "B", 2: "C", 3: "D", 5: "SFA", 6: "SFB"},
        cluster=8,
        multiples=(1, 8, 32),
    ),
    "72b": Example(
        "NVFP4 x NVFP4, output NVFP4 with its scales",
        "72_blackwell_narrow_precision_gemm/72b_blackwell_nvfp4_nvfp4_gemm.cu",
        "Disposition: Passed",
        _options,
        {
            0: "A",
            1: "B",
            2: "C",
            3: "D",
            6: "norm constant",
            7: "SFA",
            8: "SFB",
            9: "SFD",
        },
        multiples=(1, 32, 32),
    ),
    "72c": Example(
        "MXFP8 x MXFP4, MMAs of CTA pairs in clusters of 2 x 4, output BF16",
        "72_blackwell_narrow_precision_gemm/72c_blackwell_mixed_mxfp8_bf16_gemm.cu",
        "Disposition: Passed",
        _options,
        {0: "A", 1: "B", 2: "C", 3: "D", 5: "SFA", 6: "SFB"},
        cluster=8,
        multiples=(1, 8, 128),
    ),
    "75": Example(
        "grouped NVFP4 x NVFP4, output FP16, tensor maps changed by the kernel; one "
        "kernel of CTAs with N=256 and one of CTA pairs",
        "75_blackwell_grouped_gemm/75_blackwell_grouped_gemm_block_scaled.cu",
        "Disposition: Passed",
        _grouped,
        cluster=2,
        kernels=2,
        multiples=(1, 8, 32),
    ),
    "81": Example(
        "E4M3 x E4M3 with blockwise float scales, output E4M3",
        "81_blackwell_gemm_blockwise/81_blackwell_gemm_blockwise.cu",
        "Disposition: Passed",
        _options,
        multiples=(16, 16, 16),
    ),
    "tutorial-01": Example(
        "FP16 x FP16, plain copies to shared memory",
        f"{_TUTORIALS}/01_mma_sm100.cu",
        "Execution is successful.",
        _positions,
        multiples=_TUTORIAL_TILE,
    ),
    "tutorial-02": Example(
        "FP16 x FP16, TMA loads",
        f"{_TUTORIALS}/02_mma_tma_sm100.cu",
        "Execution is successful.",
        _positions,
        # Only its first warp arrives on the mbarriers. Where work lands at once, that
        # warp is two phases ahead before the others have looked.
        schedule="late",
        multiples=_TUTORIAL_TILE,
    ),
    "tutorial-03": Example(
        "FP16 x FP16, TMA loads multicast in clusters of 4 x 4",
        f"{_TUTORIALS}/03_mma_tma_multicast_sm100.cu",
        "Execution is successful.",
        _positions,
        schedule="late",
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
    "tutorial-04": Example(
        "FP16 x FP16, MMAs of CTA pairs, TMA multicast in clusters of 4 x 4",
        f"{_TUTORIALS}/04_mma_tma_2sm_sm100.cu",
        "Execution is successful.",
        _positions,
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
    "tutorial-05": Example(
        "FP16 x FP16, MMAs of CTA pairs and a TMA epilogue",
        f"{_TUTORIALS}/05_mma_tma_epi_sm100.cu",
        "Execution is successful.",
        _positions,
        # Its epilogue uses the mbarrier of the loads again: slow warps are lapped.
        schedule="late",
        cluster=16,
        multiples=_CLUSTER_TILE,
    ),
}


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


def find_example(name: str) -> Example:
    """Return a known example.

    Raises
    ------
    InputError
        There is none of this name; the message lists them.
    """
    if name not in EXAMPLES:
        raise InputError(
            f"no CUTLASS example {name!r}; known: {', '.join(EXAMPLES)}",
            gap="cutlass-examples",
        )
    return EXAMPLES[name]


def build_example(name: str, progress: Progress | None = None) -> Build:
    """Compile an example from the installed package, or find it in the cache.

    Raises
    ------
    InputError
        It is not known, a package is missing, or a compiler refused it.
    """
    example = find_example(name)
    tools = find_toolchain()
    source = tools.cutlass / "examples" / example.source
    if not source.is_file():
        raise InputError(f"{tools.versions[0]} has no examples/{example.source}")
    return build(tools, source, progress=progress)


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
    name: str, m: int, n: int, k: int, progress: Progress | None = None
) -> ReadyExample:
    """Build an example for a product of M x N x K.

    Raises
    ------
    InputError
        It cannot be built, or the product is too large.
    """
    check_sizes(m, n, k)
    arguments = find_example(name).arguments(m, n, k)
    return ReadyExample(name, build_example(name, progress), arguments)


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
