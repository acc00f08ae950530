"""sources: the kernel's CUDA text as one file, and its constants from a `GemmConfig`.

The kernel includes its own headers only. They are put in line, each once, with
``#line`` marks, so that what is compiled depends on the text alone and names no folder
of this machine.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

import numpy as np

from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.shared_memory import BASE as SMEM_BASE
from fp4ref.numerics import ScaleFormat

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


@cache
def one_file(root: Path) -> str:
    """Return the kernel with its headers in line."""
    return expand({}, root)


def expand(changed: dict[str, str], root: Path) -> str:
    """Return the kernel with its headers in line, some files replaced.

    Parameters
    ----------
    changed
        Text by path, for example ``{"kernel/gemm/config.cuh": ...}``.
    """
    seen: set[str] = set()

    def include(name: str) -> list[str]:
        if name in seen:
            return []
        seen.add(name)
        text = changed.get(name) or (root / name).read_text(encoding="utf-8")
        lines = [f'#line 1 "{name}"']
        for number, line in enumerate(text.splitlines(), 1):
            if found := _INCLUDE.fullmatch(line.strip()):
                lines += include(_resolved(PurePosixPath(name).parent, found[1]))
                lines.append(f'#line {number + 1} "{name}"')
            elif line.strip() != "#pragma once":
                lines.append(line)
            else:
                lines.append("")
        return lines

    return "\n".join(include(MAIN)) + "\n"


def _resolved(folder: PurePosixPath, name: str) -> str:
    """Return `name`, as included from `folder`, without its ``..`` parts."""
    parts: list[str] = []
    for part in (folder / name).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def defines(config: GemmConfig) -> dict[str, str]:
    """Return the definitions that ``kernel/gemm/config.cuh`` wants."""
    smem, tmem = config.smem, config.tmem
    columns = config.sf_rows_b // 32
    numbers: dict[str, int] = {
        "TILE_N": config.tile_n,
        "SFD_UE8M0": config.sfd_format is ScaleFormat.UE8M0,
        "LOADS_C": config.loads_c,
        "BIAS": config.bias,
        "CLC": config.scheduler == "clc",
        "RASTER_ALONG_M": config.raster == "m",
        "BETA_BITS": _bits(config.beta),
        "NORM_CONSTANT_BITS": _bits(config.norm_constant),
        "MAINLOOP_STAGES": config.mainloop_stages,
        "C_STAGES": config.c_stages,
        "D_STAGES": config.d_stages,
        "CLC_STAGES": config.clc_stages,
        "ACCUMULATOR_STAGES": config.accumulator_stages,
        "SCALE_BUFFERS": config.scale_buffers,
        "A_NBYTES": config.a_nbytes,
        "B_NBYTES": config.b_nbytes,
        "SFA_NBYTES": config.sfa_nbytes,
        "SFB_NBYTES": config.sfb_nbytes,
        "STAGE_TX_BYTES": config.stage_tx_bytes,
        "C_SUBTILE_NBYTES": config.c_subtile_nbytes,
        "D_SUBTILE_NBYTES": config.d_subtile_nbytes,
        "CLC_CONSUMERS": config.clc_consumers,
        "SMEM_BASE": SMEM_BASE,
        "TMEM_SFA": tmem.sfa[0],
        "TMEM_SFB": tmem.sfb[0],
        "TMEM_BUFFER": (tmem.end - tmem.sfa[0]) // config.scale_buffers,
        "SFB_COLUMNS": columns,
    }
    for name in type(smem).__dataclass_fields__:
        if name != "end":
            numbers[f"SMEM_{name.upper()}"] = getattr(smem, name)
    words = {
        "D_FORMAT": config.d_format.upper(),
        "C_FORMAT": (config.c_format or "f32").upper(),
        "ACTIVATION": (config.activation or "none").upper(),
    }
    values = {name: _literal(value) for name, value in numbers.items()} | words
    return {f"CONFIG_{name}": value for name, value in values.items()}


def _literal(value: int) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}u"


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))
