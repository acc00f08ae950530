"""toolchain: find nvcc and CUTLASS's sources, build a program once, keep it.

Both come as Python packages. nvcc makes the program and the PTX of its kernels in one
run, so that their names agree. They are kept for as long as the source file, the flags
and every version that has a part in the result stay the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from itertools import chain
from pathlib import Path

from fp4ref.cache import cached
from fp4ref.errors import InputError

Progress = Callable[[str], None]
"""Called with one line of text when a long step begins or ends."""

INSTALL = "pip install 'fp4ref[cutlass]'"
PACKAGES = (
    "nvidia-cutlass",  # sources and examples
    "nvidia-cuda-nvcc",  # the compiler driver
    "nvidia-nvvm",  # its device compiler
    "nvidia-cuda-crt",  # its own headers
    "nvidia-cuda-cccl",  # cuda::std and Thrust
    "nvidia-cuda-runtime",  # headers, and a libcudart to link against
)

HEADERS = {
    "nvidia-curand": "include/curand_kernel.h",  # random numbers, made on the device
}
"""Packages of headers that some programs need, each with one of its files."""

NVCC_FLAGS = (
    "-std=c++17",
    # PTX only: no ptxas, because nothing here runs machine code.
    "-gencode=arch=compute_100a,code=compute_100a",
    "-cudart=shared",
    "--expt-relaxed-constexpr",
    "-lineinfo",
    # The host's own reference GEMM is most of a run without it.
    "-Xcompiler=-O2",
)
DRIVER = "libcuda.so.1"
"""Name under which programs look for the driver's library."""

STAND_IN_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-shared", "-fPIC")
_ERROR_LINES = 20


@dataclass(frozen=True)
class Toolchain:
    """What builds a CUDA program on this computer.

    Attributes
    ----------
    nvcc, host_compiler
        Programs. nvcc calls the host compiler for everything that is not a kernel.
    include
        CUDA's headers.
    cudart
        NVIDIA's runtime library; programs are linked against it and never load it.
    cutlass
        Folder with CUTLASS's ``include``, ``tools`` and ``examples``.
    versions
        Name and version of every part.
    """

    nvcc: Path
    host_compiler: Path
    include: Path
    cudart: Path
    cutlass: Path
    versions: tuple[str, ...]

    @property
    def release(self) -> str:
        """Version of nvcc."""
        return next(v for v in self.versions if "nvcc" in v).split()[1]


@dataclass(frozen=True)
class Build:
    """A built program.

    Attributes
    ----------
    program
        The executable.
    ptx
        Text file with all its kernels.
    """

    program: Path
    ptx: Path


def missing_packages(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Return the packages, all of ``fp4ref[cutlass]``, that are not installed."""
    missing = []
    for package in packages:
        try:
            metadata.distribution(package)
        except metadata.PackageNotFoundError:
            missing.append(package)
    return missing


def find_toolchain() -> Toolchain:
    """Find every part.

    Raises
    ------
    InputError
        A package or the C++ compiler is missing, or this is not Linux.
    """
    if sys.platform != "linux":
        raise InputError(
            f"building CUTLASS's examples needs Linux, and this is {sys.platform}"
        )
    if missing := missing_packages():
        raise InputError(
            f"building CUTLASS's examples needs {', '.join(missing)}; run: {INSTALL}"
        )
    compiler = os.environ.get("NVCC_CCBIN", "g++")
    host_compiler = shutil.which(compiler)
    if host_compiler is None:
        raise InputError(
            f"building CUTLASS's examples needs the C++ compiler {compiler}, which is "
            "not on the path; install it (Debian, Ubuntu: apt install g++), or name "
            "another one in NVCC_CCBIN"
        )
    said = subprocess.run([host_compiler, "--version"], capture_output=True, text=True)
    versions = [f"{p} {metadata.version(p)}" for p in PACKAGES]
    versions.append(said.stdout.partition("\n")[0])
    return Toolchain(
        nvcc=_installed("nvidia-cuda-nvcc", "bin/nvcc"),
        host_compiler=Path(host_compiler),
        include=_installed("nvidia-cuda-runtime", "include/cuda_runtime_api.h").parent,
        cudart=_installed("nvidia-cuda-runtime", "lib/libcudart.so."),
        cutlass=_installed(
            "nvidia-cutlass", "source/include/cutlass/cutlass.h"
        ).parents[2],
        versions=tuple(versions),
    )


def require_headers(packages: Sequence[str]) -> None:
    """Raise `InputError` if one of the packages of `HEADERS` is not installed."""
    if missing := missing_packages(packages):
        raise InputError(
            f"building this program needs {', '.join(missing)}; run: {INSTALL}"
        )


def _installed(package: str, part: str) -> Path:
    """Return the installed file of `package` whose path has `part` at its end.

    A part that ends in a dot stands for any version after it.
    """
    for file in metadata.files(package) or ():
        path = f"/{file.as_posix()}"
        if path.endswith(f"/{part}") or (part.endswith(".") and f"/{part}" in path):
            return Path(str(file.locate())).resolve()
    raise InputError(f"{package} is installed, but has no {part}; run: {INSTALL}")


def build(
    tools: Toolchain,
    source: Path,
    flags: Sequence[str] = (),
    progress: Progress | None = None,
    headers: Sequence[str] = (),
) -> Build:
    """Compile a CUDA program, or find it in the cache.

    Parameters
    ----------
    headers
        Packages that it needs of `HEADERS`.

    Raises
    ------
    InputError
        A package is missing, or the compiler refused the program; the message has the
        end of what it said.
    """
    require_headers(headers)
    includes = ("include", "tools/util/include", "examples/common")

    def make(folder: Path) -> None:
        # ld looks for libcudart.so; the package has only the name with a version. No
        # package has the driver's library: the stand-in's serves.
        work = folder / "work"
        work.mkdir()
        driver = build_stand_in(tools).with_name("libcuda.so")
        libraries = f'INPUT("{tools.cudart}" AS_NEEDED("{driver}"))'
        (work / "libcudart.so").write_text(libraries)
        say = progress or (lambda line: None)
        say(f"nvcc {tools.release}: compiling {source.name}, a minute or two")
        start = time.monotonic()
        _compile(
            source.name,
            [
                *(str(tools.nvcc), f"-ccbin={tools.host_compiler}"),
                *(*NVCC_FLAGS, *flags),
                *(f"-I{tools.cutlass / name}" for name in includes),
                f"-I{source.parent}",
                *(f"-I{_installed(p, HEADERS[p]).parent}" for p in headers),
                *("--keep", f"--keep-dir={work}", f"-L{work}"),
                *("-o", str(folder / "program"), str(source)),
            ],
        )
        (work / f"{source.stem}.ptx").rename(folder / "kernels.ptx")
        shutil.rmtree(work)
        say(f"nvcc {tools.release}: {time.monotonic() - start:.0f} s")

    parts = [source.read_bytes(), *(f.encode() for f in (*NVCC_FLAGS, *flags))]
    parts += [f"{p} {metadata.version(p)}".encode() for p in headers]
    found = cached("cutlass", source.stem, [*parts, *_versions(tools)], make)
    return Build(found / "program", found / "kernels.ptx")


def build_stand_in(tools: Toolchain) -> Path:
    """Compile the stand-in CUDA runtime, or find it; return the library."""
    folder_of_sources = resources.files("fp4ref.cutlass") / "stand_in"
    texts = {
        file.name: file.read_text()
        for file in sorted(folder_of_sources.iterdir(), key=lambda file: file.name)
        if file.name.endswith((".c", ".h"))
    }
    name = tools.cudart.name

    def make(folder: Path) -> None:
        for file, text in texts.items():
            (folder / file).write_text(text)
        # Programs ask for versioned symbols, with the library's name as the version.
        runtime = f"{name} {{ global: cu[A-Z]*; cuda*; __cuda*; local: *; }};\n"
        _link_stand_in(tools, folder, name, name, runtime)
        # The driver's library is linked from a second copy, and is the same file when
        # a program runs: one state behind both names.
        driver = "{ global: cu[A-Z]*; local: *; };\n"
        _link_stand_in(tools, folder, "libcuda.so", DRIVER, driver)
        (folder / DRIVER).symlink_to(name)

    parts = [part.encode() for item in texts.items() for part in item]
    parts += [f.encode() for f in STAND_IN_FLAGS]
    return cached("cutlass", "cudart", [*parts, *_versions(tools)], make) / name


def _link_stand_in(
    tools: Toolchain, folder: Path, file: str, soname: str, exports: str
) -> None:
    """Make one library of the stand-in's sources in `folder`.

    Parameters
    ----------
    exports
        Text of the linker's version script.
    """
    versions = folder / f"{file}.map"
    versions.write_text(exports)
    _compile(
        "the stand-in runtime",
        [
            *(str(tools.host_compiler), *STAND_IN_FLAGS, f"-I{tools.include}"),
            *(f"-Wl,-soname,{soname}", f"-Wl,--version-script,{versions}"),
            *("-o", str(folder / file)),
            # For g++ a language holds for one file.
            *chain.from_iterable(("-x", "c", str(c)) for c in folder.glob("*.c")),
        ],
    )


def _versions(tools: Toolchain) -> list[bytes]:
    return [v.encode() for v in tools.versions]


def _compile(what: str, command: Sequence[str]) -> None:
    """Run a compiler.

    Raises
    ------
    InputError
        It failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines()
        raise InputError(
            f"{Path(command[0]).name} refused {what} (status {done.returncode}):\n"
            + "\n".join(said[-_ERROR_LINES:])
        )
