"""sources: the kernel's CUDA text as one file, with the plan of its configuration.

The kernel includes its own headers only. They are put in line, each once, with
``#line`` marks, so that what is compiled depends on the text alone and names no folder
of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fp4ref.errors import InputError

MAIN = "kernel/gemm/nvfp4_gemm.cu"
"""The kernel's first file."""

ENTRY = "nvfp4_gemm"

_PACKAGE = Path(__file__).parents[1]
_INCLUDE = re.compile(r'#include "([^"]+)"')


def kernel_root() -> Path:
    """Return the folder that holds ``kernel/``: the checkout, or the package's copy.

    Raises
    ------
    InputError
        The sources are not there.
    """
    for root in (_PACKAGE.parent, _PACKAGE / "data"):
        if (root / MAIN).is_file():
            return root
    raise InputError(f"{MAIN} is neither in the checkout nor in the installed package")


HARDWARE = "kernel/hardware"
SOFT_HARDWARE = "kernel/soft_hardware"
"""What stands for the files of the same names where a card lacks their instructions."""


def expand(
    changed: Mapping[str, str], root: Path, *, soft: bool = False, main: str = MAIN
) -> str:
    """Return the kernel with its headers in line, some files replaced.

    Parameters
    ----------
    changed
        Text by path, for example ``{"kernel/gemm/plan.cuh": ...}``.
    soft
        Take the soft tensor core: this is the one place that chooses it.
    main
        The first file, if it is not the kernel's.
    """
    seen: set[str] = set()

    def include(name: str, by: str = "") -> list[str]:
        folder, _, file = name.rpartition("/")
        replaces = soft and folder == HARDWARE and not by.startswith(SOFT_HARDWARE)
        if replaces and (root / SOFT_HARDWARE / file).is_file():
            name = f"{SOFT_HARDWARE}/{file}"
        if name in seen:
            return []
        seen.add(name)
        text = changed.get(name) or (root / name).read_text(encoding="utf-8")
        lines = [f'#line 1 "{name}"']
        for number, line in enumerate(text.splitlines(), 1):
            if found := _INCLUDE.fullmatch(line.strip()):
                path = _resolved(PurePosixPath(name).parent, found[1])
                lines += include(path, by=name)
                lines.append(f'#line {number + 1} "{name}"')
            elif line.strip() != "#pragma once":
                lines.append(line)
            else:
                lines.append("")
        return lines

    return "\n".join(include(main)) + "\n"


def _resolved(folder: PurePosixPath, name: str) -> str:
    """Return `name`, as included from `folder`, without its ``..`` parts."""
    parts: list[str] = []
    for part in (folder / name).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
