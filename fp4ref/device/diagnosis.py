"""diagnosis: what this machine can run, in words."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass

from fp4ref.device.compile import lacks, nvrtc_version, runs_kernel, why_no_nvrtc
from fp4ref.device.driver import Gpu, find_gpu

PACKAGES = ("numpy", "numba", "ml_dtypes")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found.

    Attributes
    ----------
    can_run
        Backends that work here.
    missing
        What does not, why, and the command that would change it.
    """

    python: str
    system: str
    cores: int
    packages: dict[str, str]
    can_run: list[str]
    missing: list[str]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {v}" for name, v in self.packages.items())
        lines = [
            f"Python {self.python} on {self.system}, {self.cores} cores",
            versions,
            *(f"can run: {text}" for text in self.can_run),
            *(f"cannot: {text}" for text in self.missing),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the same as JSON values."""
        return asdict(self)


def doctor() -> Diagnosis:
    """Look at Python, packages, cores, compiler and GPU."""
    packages = {}
    missing = []
    for name in PACKAGES:
        try:
            packages[name] = importlib.metadata.version(name.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{name} is not installed; run: pip install fp4ref")
    can_run = []
    if not missing:
        can_run.append(
            "the emulator (fp4ref walk, fp4ref.run): every frame, on the CPU"
        )
        can_run.append("the integer model of the MMA (fp4ref.matmul), on all cores")
        can_run.append("the packaged kernel's PTX on the emulated machine")
    if (nvrtc := nvrtc_version()) is not None:
        can_run.append(f"the kernel of any configuration, compiled by NVRTC {nvrtc}")
    else:
        missing.append(f"compile the kernel: {why_no_nvrtc()}")
    gpu = find_gpu()
    if reason := why_not(gpu):
        missing.append(f"run the kernel on a GPU: {reason}")
    else:
        can_run.append(f"the kernel on the GPU: {gpu}")
    return Diagnosis(
        platform.python_version(),
        f"{platform.system()} {platform.machine()}",
        os.cpu_count() or 1,
        packages,
        can_run,
        missing,
    )


def why_not(gpu: Gpu) -> str:
    """Return why the kernel does not run there, and what it needs; '' if it does."""
    if gpu.missing or runs_kernel(gpu.capability):
        return gpu.missing
    return lacks(gpu.capability, gpu.card)
