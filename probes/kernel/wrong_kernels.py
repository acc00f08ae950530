"""wrong_kernels: the gallery's mistakes in the GEMM, compiled for a Hopper card.

With sleeps, with waits that give up, and with a kernel that poisons what launches find.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

from fp4ref.attest.gemm_rungs import MBARRIER, bounded_mbarrier
from fp4ref.cuda_kernel.build import compile_soft
from fp4ref.cuda_kernel.choices import headers
from fp4ref.cuda_kernel.on_device import kernel_call
from fp4ref.cuda_kernel.sources import MAIN
from fp4ref.device.launch import Call
from fp4ref.evidence.faults.catch import gemm_of
from fp4ref.evidence.faults.change import read as text_of
from fp4ref.evidence.faults.gallery import GALLERY, GEMM, Fault
from fp4ref.gemm.fusion.launch_arguments import arguments_of
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.tensors.unscaled import require_operand
from probes.kernel.mistakes import Mistake

TRIES = "1u << 18"
"""Of a wait before it gives up: some milliseconds, and a sleep is some microseconds."""
POISON = Path(__file__).with_name("poison.cuh")


def asked() -> dict[str, Fault]:
    """Return the mistakes of the GEMM; each changes a file that the card runs too."""
    return {
        name: each
        for name, each in GALLERY.items()
        if each.subject == GEMM and "ptx" in each.forms
    }


def twin(each: Fault) -> str:
    """Name the same launch without the mistake; many mistakes share it."""
    sizes = "x".join(map(str, each.shape))
    return ", ".join(["clean", sizes, *(f"{k}={v}" for k, v in each.config.items())])


def launches() -> dict[str, tuple[Fault, bool]]:
    """Return every launch by name, and whether it has its mistake."""
    twins = {twin(each): (each, False) for each in asked().values()}
    return twins | {name: (each, True) for name, each in asked().items()}


def late_clusters(first: int) -> Mistake:
    """Let clusters from `first` on start so late that the others have their tiles.

    A card has more SMs than the machine of a mistake, and each would run one tile.
    """
    return Mistake(
        "clusters that start late",
        "clc.cuh",
        "    u32 before = 0;\n",
        f"    for (u32 i = 0; number >= {first} && i < 4; ++i) __nanosleep(500000);\n"
        "    u32 before = 0;\n",
    )


@dataclass(frozen=True)
class Kernel:
    """A cubin, its launch, and the buffers that are compared."""

    cubin: bytes
    call: Call
    outputs: tuple[str, ...]


def problem_of(each: Fault) -> GemmProblem:
    """Return the problem that a mistake runs on."""
    given = gemm_of(each)
    a, b = (require_operand(given.pop(name), name) for name in "ab")
    return GemmProblem(Machine(each.sms), a, b, **given)


def outputs_of(problem: GemmProblem) -> tuple[str, ...]:
    """Names of D, its scales, and what a tree takes or leaves."""
    stored = {"D", "SFD", *arguments_of(problem.plan.fusion)}
    return tuple(o.name for o in problem.machine.gmem.allocations if o.name in stored)


def kernel(name: str) -> Kernel:
    """Compile one launch."""
    each, wrong = launches()[name]
    problem = problem_of(each)
    texts = {MBARRIER: f"#define ATTEST_TRIES ({TRIES})\n{bounded_mbarrier()}"}
    clusters = max(1, each.sms // prod(problem.plan.cluster))
    texts |= late_clusters(clusters).changed() | {
        MAIN: text_of(MAIN) + POISON.read_text()
    }
    if wrong:
        change = each.forms["ptx"].change
        right = headers(problem.config).get(change.file) or text_of(change.file)
        texts[change.file] = change.applied(right)
    made = compile_soft(problem.config, delays=True, changed=texts)
    return Kernel(made.cubin, kernel_call(problem, soft=True), outputs_of(problem))
