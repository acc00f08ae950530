"""smoke: every step of the ladder on both backends, each bit against the oracle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.cuda_kernel import packaged_configs
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.evidence import oracle
from fp4ref.execution.runs import BackendName, run
from fp4ref.gemm.ladder import Step
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.quantize import quantize


@dataclass(frozen=True)
class Outcome:
    """What a backend made of a step.

    Attributes
    ----------
    wrong
        Bits of D and SFD that are not the oracle's; None if it was not run.
    bits
        Bits of D and SFD in all.
    why_not
        Why it was not run.
    """

    step: Step
    backend: BackendName
    wrong: int | None
    bits: int
    seconds: float
    why_not: str = ""

    def __str__(self) -> str:
        if self.wrong is None:
            return f"not run, {self.why_not}"
        right = f"{self.bits - self.wrong:,} of {self.bits:,} bits"
        return f"{self.seconds:4.1f} s  {right} right"

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.wrong

    def to_dict(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "step": self.step.name,
            "idea": self.step.idea,
            "asked": self.step.asked,
            "shape": list(self.step.shape),
            "backend": self.backend,
            "wrong_bits": self.wrong,
            "bits": self.bits,
            "seconds": round(self.seconds, 2),
            "why_not": self.why_not,
        }


def operands(step: Step, seed: int = 0) -> tuple[BlockScaled, BlockScaled]:
    """Return A and B of a step: normal values, of widely different size by row."""
    rng = np.random.default_rng(seed)
    m, n, k = step.shape
    form = step.config.operands.operand_format

    def one(rows: int) -> BlockScaled:
        size = np.exp2(rng.integers(-6, 7, (rows, 1))).astype(np.float32)
        return quantize(size * rng.standard_normal((rows, k), np.float32), format=form)

    return one(m), one(n)


def smoke(
    steps: tuple[Step, ...], backends: tuple[BackendName, ...] = ("emulator", "ptx")
) -> Iterator[Outcome]:
    """Run steps on backends, and yield each outcome as it comes.

    Raises
    ------
    HardwareFault
        A kernel breaks a rule of the machine.
    """
    for step in steps:
        a, b = operands(step)
        right = oracle.expected(a, b, config=step.config)
        for backend in backends:
            if backend == "ptx" and (reason := _cannot_compile(step)):
                yield Outcome(step, backend, None, 0, 0.0, reason)
                continue
            start = time.perf_counter()
            found = run(
                a, b, config=step.config, backend=backend, sms=step.sms, trace=False
            )
            took = time.perf_counter() - start
            wrong, bits = _differing(found.d, right.d)
            if right.sfd is not None and found.sfd is not None:
                more = _differing(found.sfd, right.sfd)
                wrong, bits = wrong + more[0], bits + more[1]
            yield Outcome(step, backend, wrong, bits, took)


def _cannot_compile(step: Step) -> str:
    if nvrtc_version() is None and step.config not in packaged_configs().values():
        return "needs NVRTC: pip install 'fp4ref[cuda]'"
    return ""


def _differing(found: NDArray[Any], right: NDArray[Any]) -> tuple[int, int]:
    """Count bits that differ, and bits."""
    one, other = (np.ascontiguousarray(x).view(np.uint8) for x in (found, right))
    return int(np.bitwise_count(one ^ other).sum()), 8 * one.size
