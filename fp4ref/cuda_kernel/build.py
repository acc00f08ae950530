"""build: PTX of the kernel, by NVRTC if it is installed, else from the package.

The package holds PTX and SASS of a few configurations, made by one NVRTC from the same
sources. The line information is made to read as the emulator's: an instruction names
the statement of a role, not the wrapper in ``kernel/hardware`` that it was inlined
from.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import PurePosixPath

from fp4ref.cuda_kernel.choices import constants, one_file
from fp4ref.cuda_kernel.sources import MAIN
from fp4ref.device.compile import (
    INSTALL,
    Compiled,
    CompileError,
    arch_of,
    compile_cuda,
    has_tcgen05,
)
from fp4ref.device.compile import nvrtc_version as nvrtc_version
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.source_line import is_caller_meant

ARCH = "sm_100a"


@dataclass(frozen=True, slots=True)
class KernelCode:
    """PTX of one configuration.

    Attributes
    ----------
    origin
        ``"NVRTC 13.5"`` or ``"packaged"``.
    """

    ptx: str
    origin: str


def packaged_configs() -> dict[str, GemmConfig]:
    """Configurations whose PTX and SASS travel in the package, by file name.

    They are what ``fp4ref walk`` offers: each output format, and example 72b.
    """
    return {
        "f32": GemmConfig(),
        "bf16": GemmConfig.nvfp4(d_format="bf16"),
        "f16": GemmConfig.nvfp4(d_format="f16"),
        "nvfp4": GemmConfig.nvfp4(d_format="nvfp4"),
        "example_72b": GemmConfig.example_72b(),
    }


def kernel_code(config: GemmConfig) -> KernelCode:
    """Return the kernel's PTX for `config`.

    Raises
    ------
    InputError
        NVRTC is not installed, and the package has no PTX of `config`.
    """
    return _kernel_code(config, nvrtc_version())


@cache
def _kernel_code(config: GemmConfig, nvrtc: str | None) -> KernelCode:
    if nvrtc is not None:
        compiled = compile_kernel(config)
        return KernelCode(normalised(compiled.ptx), f"NVRTC {compiled.nvrtc}")
    wanted = constants(config)
    for name, each in packaged_configs().items():
        if constants(each) == wanted:
            return KernelCode(packaged(f"{name}.ptx"), "packaged")
    raise InputError(
        "backend 'ptx': NVRTC is not installed, and the package holds the kernel only "
        f"for {', '.join(packaged_configs())}. For any other configuration run: "
        f"{INSTALL}"
    )


def compile_kernel(config: GemmConfig, arch: str = ARCH) -> Compiled:
    """Compile the kernel for `config` and a real target; kept by content.

    Raises
    ------
    CompileError
        NVRTC is not installed, or refused the source.
    """
    return compile_cuda(one_file(config), arch, name=MAIN)


def require_tcgen05(capability: tuple[int, int], card: str) -> str:
    """Return the NVRTC target of a card that can run this kernel.

    Raises
    ------
    InputError
        The card has no tcgen05 and TMEM; the message says what runs instead.
    """
    if not has_tcgen05(capability):
        raise InputError(
            f"backend 'device': {card} has compute capability "
            f"{capability[0]}.{capability[1]}, without tcgen05 and TMEM. "
            "backend='ptx' runs the same kernel's code on the emulated machine"
        )
    return arch_of(capability)


def packaged(name: str) -> str:
    """Return a packaged text: ``"f32.ptx"``, ``"f32.sass"``, ..."""
    folder = files("fp4ref.data").joinpath("kernel")
    return gzip.decompress(folder.joinpath(f"{name}.gz").read_bytes()).decode()


_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(?:.*/)?(kernel/[^"]+)".*')
_LOC = re.compile(
    r"\s*\.loc\s+(\d+) (\d+) (\d+)"
    r"(?:, function_name [^,]+, inlined_at (\d+) (\d+) (\d+))?"
)

Place = tuple[str, str, str]


def normalised(ptx: str) -> str:
    """Return PTX whose lines name ``kernel/`` files, and the statement of a role.

    Of an inlined call the innermost statement outside the wrappers stays: what the
    emulator calls the source of an event. Debug strings go.
    """
    names = {m[1]: m[2] for line in ptx.splitlines() if (m := _FILE.fullmatch(line))}
    above: dict[Place, Place | None] = {}
    lines: list[str] = []
    for line in ptx.splitlines():
        if line.lstrip().startswith(".section"):
            break
        if found := _FILE.fullmatch(line):
            line = f'\t.file\t{found[1]} "{found[2]}"'
        elif found := _LOC.match(line):
            place: Place = (found[1], found[2], found[3])
            above[place] = (found[4], found[5], found[6]) if found[4] else None
            line = f"\t.loc\t{' '.join(_statement(place, above, names))}"
        lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


@cache
def _is_wrapper(file: str) -> bool:
    """Whether not `file` but the statement that calls it is an event's source.

    Of the kernel's own files those are the twins of modules that say so.
    """
    if not file.startswith("kernel/gemm/"):
        return file.startswith("kernel/")
    path = PurePosixPath(file).with_suffix("").relative_to("kernel")
    return is_caller_meant(vars(import_module(f"fp4ref.{'.'.join(path.parts)}")))


def _statement(
    place: Place, above: dict[Place, Place | None], names: dict[str, str]
) -> Place:
    """Go up from a wrapper to the statement that called it."""
    while _is_wrapper(names.get(place[0], "")):
        caller = above.get(place)
        if caller is None:
            break
        place = caller
    return place


__all__ = [
    "ARCH",
    "CompileError",
    "KernelCode",
    "compile_kernel",
    "kernel_code",
    "normalised",
    "nvrtc_version",
    "packaged",
    "packaged_configs",
]
