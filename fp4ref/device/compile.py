"""compile: CUDA C++ to PTX and a cubin with NVRTC, kept by content.

Needs the compiler wheels, but neither a GPU nor a driver. The PTX is what the ptx
backend executes; a card gets the cubin, because PTX of a newer toolkit than the driver
does not load.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fp4ref.cache import cached
from fp4ref.errors import Fp4refError, InputError

INSTALL = "pip install 'fp4ref[cuda]'"

OLDEST_NVRTC = (13, 4)
"""As in pyproject.toml. NVRTC 13.0 refuses ``__builtin_offsetof`` of the kernel."""


class Target(NamedTuple):
    """The NVRTC target with the instructions of one chip alone."""

    arch: str
    tcgen05: bool


HOPPER = (9, 0)
"""What it shares with Blackwell is measured on it."""

_TARGETS = {
    HOPPER: Target("sm_90a", tcgen05=False),
    (10, 0): Target("sm_100a", tcgen05=True),
    (10, 1): Target("sm_101a", tcgen05=True),
    (10, 3): Target("sm_103a", tcgen05=True),
    (11, 0): Target("sm_110a", tcgen05=True),
    (12, 0): Target("sm_120a", tcgen05=False),
    (12, 1): Target("sm_121a", tcgen05=False),
}
"""By compute capability."""


def has_tcgen05(capability: tuple[int, int]) -> bool:
    """Whether a card of this compute capability has tcgen05 and TMEM."""
    target = _TARGETS.get(capability)
    return target is not None and target.tcgen05


def runs_kernel(capability: tuple[int, int]) -> bool:
    """Whether the kernel runs on such a card, on Hopper with the soft tensor core."""
    return has_tcgen05(capability) or capability == HOPPER


def lacks(capability: tuple[int, int], card: str) -> str:
    """Say what a card without tcgen05 lacks, and what the kernel needs."""
    *most, last = (f"{a}.{b}" for a, b in _TARGETS if runs_kernel((a, b)))
    return (
        f"{card} has compute capability {capability[0]}.{capability[1]}, without "
        f"tcgen05 and TMEM{'' if capability >= HOPPER else ', clusters and TMA'}; the "
        f"kernel needs {', '.join(most)} or {last}"
    )


class CompileError(Fp4refError):
    """NVRTC refused a source, or is not there."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One source, compiled for one target.

    Attributes
    ----------
    nvrtc
        Version of the compiler, as ``"13.4"``.
    """

    ptx: str
    cubin: bytes
    arch: str
    nvrtc: str


def arch_of(capability: tuple[int, int]) -> str:
    """Return the NVRTC target of a compute capability.

    Raises
    ------
    InputError
        The kernels of this project cannot run there.
    """
    name = f"compute capability {capability[0]}.{capability[1]}"
    found = _TARGETS.get(capability)
    if found and (found.tcgen05 or capability == HOPPER):
        return found.arch
    if found:
        raise InputError(
            f"{name} ({found.arch}): this Blackwell has neither tcgen05 nor TMEM; its "
            "block-scaled MMA is mma.sync. Use an sm_100 card (B200, GB200), or the "
            "ptx backend"
        )
    known = ", ".join(
        f"{major}.{minor}"
        for (major, minor), target in _TARGETS.items()
        if target.tcgen05 or (major, minor) == HOPPER
    )
    raise InputError(f"{name}: TMA and mbarriers need one of {known}")


def require_arch(arch: str) -> str:
    """Return `arch` if it is a real target with the instructions of one chip.

    Raises
    ------
    InputError
        It is virtual, generic or unknown.
    """
    known = [*(target.arch for target in _TARGETS.values()), "sm_90"]
    if arch in known:
        return arch
    if arch.startswith("compute_"):
        hint = f"sm_{arch[8:]} (a virtual target makes an empty cubin)"
    elif f"{arch}a" in known:
        hint = f"{arch}a (tcgen05 and TMEM need the suffix)"
    else:
        hint = ", ".join(known)
    raise InputError(f"target {arch!r}: say {hint}")


def compile_cuda(
    source: str,
    arch: str = "sm_90a",
    *,
    name: str = "kernel.cu",
    defines: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    cuda_headers: bool = False,
) -> Compiled:
    """Compile CUDA C++ for one real target.

    Parameters
    ----------
    source
        The text; what it includes must not change without it.
    name
        Shown in messages and in the line information.
    include
        Folders of own headers.
    cuda_headers
        Whether the source includes ``cuda_fp4.h`` or another header of the toolkit.

    Raises
    ------
    InputError
        `arch` is no real target.
    CompileError
        NVRTC is not installed, or refused the source; the message has its log.
    """
    require_arch(arch)
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--generate-line-info",
        *(f"-D{key}={value}" for key, value in (defines or {}).items()),
        *(f"-I{folder}" for folder in include),
    ]
    nvrtc = _nvrtc()
    version = _dotted(_checked(nvrtc, nvrtc.nvrtcVersion()))
    headers = [
        path.read_bytes()
        for folder in include
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    parts = [version, name, source, str(cuda_headers), *options, _FILE.pattern]

    def make(folder: Path) -> None:
        search = [f"-I{path}" for path in _toolkit_headers()] if cuda_headers else []
        ptx, cubin = _compile(nvrtc, source, name, [*options, *search])
        (folder / "ptx").write_text(portable(ptx.decode()))
        (folder / "cubin").write_bytes(cubin)
        (folder / "options.json").write_text(json.dumps(options))

    keys = [*(part.encode() for part in parts), *headers]
    folder = cached("nvrtc", f"{Path(name).stem}-{arch}", keys, make)
    return Compiled(
        (folder / "ptx").read_text(), (folder / "cubin").read_bytes(), arch, version
    )


_OURS = re.compile("(?:kernel|probes)/.*")
_FILE = re.compile(r'(\.file\s+\d+\s+")([^"]*)"')


def portable(ptx: str) -> str:
    """Return PTX whose ``.file`` lines hold no folder of the machine that made it.

    Files below ``kernel/`` and ``probes/`` keep their path from there, others only
    their name.
    """

    def shorten(found: re.Match[str]) -> str:
        path = found[2]
        below = _OURS.search(path)
        return found[1] + (below[0] if below else path.rsplit("/", 1)[-1]) + '"'

    return _FILE.sub(shorten, ptx)


def nvrtc_version() -> str | None:
    """Return the version of the NVRTC that is installed, or None without one."""
    try:
        nvrtc = _nvrtc()
    except CompileError:
        return None
    return _dotted(_checked(nvrtc, nvrtc.nvrtcVersion()))


def why_no_nvrtc() -> str:
    """Return why nothing can be compiled here, and what to run; '' if it can."""
    try:
        _nvrtc()
    except CompileError as error:
        return str(error)
    return ""


def _dotted(version: Sequence[int]) -> str:
    """Write a version as ``13.5``."""
    return ".".join(map(str, version))


def _nvrtc() -> Any:
    """Import NVRTC; raise `CompileError` if it is absent or too old."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        version = _checked(nvrtc, nvrtc.nvrtcVersion())
    except (ImportError, RuntimeError) as error:
        # The bindings load the library at the first call; what they raise is theirs.
        raise CompileError(
            f"NVRTC is not installed ({error}); run: {INSTALL}"
        ) from None
    if version < OLDEST_NVRTC:
        raise CompileError(
            f"NVRTC {_dotted(version)} is too old for the kernel, which needs "
            f"{_dotted(OLDEST_NVRTC)} or later; run: {INSTALL}"
        )
    return nvrtc


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        text = nvrtc.nvrtcGetErrorString(status)[1].decode()
        raise CompileError(f"NVRTC: {text}")
    return tuple(values)


def _text(nvrtc: Any, program: Any, what: str) -> bytes:
    """Fetch one result of a compiled program, by the name of its getter."""
    (size,) = _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program))
    # NVRTC writes into the object itself, and Python shares all bytes of length 1.
    data = bytes(max(size, 2))
    _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, data))
    return data[:size]


def _compile(
    nvrtc: Any, source: str, name: str, options: Sequence[str]
) -> tuple[bytes, bytes]:
    (program,) = _checked(
        nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    )
    try:
        encoded = [option.encode() for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0 \n").decode()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{name} does not compile:\n{log}")
        ptx = _text(nvrtc, program, "PTX").rstrip(b"\0")
        cubin = _text(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    # A virtual target reports success and hands out nothing.
    if not ptx.strip() or not cubin:
        raise CompileError(
            f"{name}: {len(ptx)} bytes of PTX and {len(cubin)} of cubin for "
            f"{options[0]}"
        )
    return ptx, cubin


def _toolkit_headers() -> list[str]:
    """Folders of the CUDA headers, from the wheels or a toolkit that is installed."""
    pathfinder = importlib.import_module("cuda.pathfinder")
    found = [pathfinder.find_nvidia_header_directory(n) for n in ("cudart", "cccl")]
    if found[0] is None:
        raise CompileError(f"the CUDA headers are not installed; run: {INSTALL}")
    return [path for path in found if path]
