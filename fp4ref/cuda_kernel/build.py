"""build: PTX of the kernel, by NVRTC if it is installed, else from the package.

The package holds PTX and SASS of a few configurations, made by one NVRTC from the same
sources. Its line information is made to read as the emulator's.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fp4ref.cuda_kernel.choices import constants, headers, one_changed_file, one_file
from fp4ref.cuda_kernel.header import PLAN
from fp4ref.cuda_kernel.line_information import normalised as normalised
from fp4ref.cuda_kernel.sources import MAIN
from fp4ref.device.compile import (
    INSTALL,
    Compiled,
    CompileError,
    arch_of,
    compile_cuda,
    has_tcgen05,
    lacks,
    why_no_nvrtc,
)
from fp4ref.device.compile import nvrtc_version as nvrtc_version
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import plan

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
    reason = why_no_nvrtc().partition("; run:")[0] or "NVRTC is not installed"
    raise InputError(
        f"backend 'ptx': {reason}, and the package holds the kernel only "
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


SOFT_ARCH = "sm_90a"


def compile_soft(
    config: GemmConfig,
    *,
    delays: bool = False,
    flips: bool = False,
    changed: Mapping[str, str] | None = None,
) -> Compiled:
    """Compile the kernel on the soft tensor core, for a Hopper card.

    Parameters
    ----------
    delays
        Whether waits, arrivals and operations come after random sleeps.
    flips
        Whether the host can ask for a bit of shared memory to change.
    changed
        Other texts for some files, by path.

    Raises
    ------
    CompileError
        NVRTC is not installed, or refused the source.
    """
    defines = {"SOFT_DELAYS": "1"} if delays else {}
    defines |= {"SOFT_FLIP": "1"} if flips else {}
    texts = {**_soft_plan(config), **(changed or {})}
    source = one_changed_file(config, texts, soft=True)
    return compile_cuda(source, SOFT_ARCH, name=MAIN, defines=defines)


SOFT_BARRIERS = 512, 1024
"""Where the soft tensor core has its own barriers and words in a CTA's memory."""

SOFT_STAGES = 16
"""Stages for which the relay of a pair has tickets."""


def _soft_plan(config: GemmConfig) -> dict[str, str]:
    """Return the plan's header, if TMA of Hopper counts other bytes, by its path.

    It copies padded elements as bytes, padding included, and counts what it copies.

    Raises
    ------
    InputError
        The plan leaves no room for the soft tensor core's barriers.
    """
    planned = plan(config)
    first, end = SOFT_BARRIERS
    buffers = min(planned.smem.d_subtile, planned.smem.c_subtile, planned.smem.a)
    if planned.smem.tmem_pointer + 4 > first or buffers < end:
        raise InputError(
            f"the soft tensor core has bytes {first} to {end} of shared memory, and "
            f"this kernel's barriers end at {planned.smem.tmem_pointer + 4}, its "
            f"buffers start at {buffers}. Use fewer stages"
        )
    if planned.mainloop_stages > SOFT_STAGES:
        raise InputError(
            f"stages={planned.mainloop_stages}: the soft tensor core has {SOFT_STAGES}"
            f". Use stages={SOFT_STAGES}"
        )
    sizes = ((planned.a_type, planned.a_nbytes), (planned.b_type, planned.b_nbytes))
    padding = sum(n - n * t.bits // 8 for t, n in sizes if t.is_padded)
    if not padding:
        return {}
    counted = planned.k_tile_tx_bytes
    line = "constexpr u32 K_TILE_TX_BYTES = {};"
    more = counted + padding * planned.cta_group
    text = headers(config)[PLAN]
    return {PLAN: text.replace(line.format(counted), line.format(more))}


def require_tcgen05(capability: tuple[int, int], card: str) -> str:
    """Return the NVRTC target of a card that can run this kernel.

    Raises
    ------
    InputError
        The card has no tcgen05 and TMEM; the message says what runs instead.
    """
    if not has_tcgen05(capability):
        raise InputError(
            f"backend 'device': {lacks(capability, card)}. backend='ptx' runs the same "
            "kernel's code on the emulated machine"
        )
    return arch_of(capability)


def packaged(name: str) -> str:
    """Return a packaged text: ``"f32.ptx"``, ``"f32.sass"``, ..."""
    folder = files("fp4ref.data").joinpath("kernel")
    return gzip.decompress(folder.joinpath(f"{name}.gz").read_bytes()).decode()


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
