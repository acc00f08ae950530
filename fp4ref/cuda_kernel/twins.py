"""twins: the CUDA text that says what a function of the emulator says.

Names agree: ``gemm.mma_warp:multiply_k_tile`` is ``multiply_k_tile`` in
``kernel/gemm/mma_warp.cuh``, and ``hardware.tcgen05:mma`` is ``tcgen05_mma`` in
``kernel/hardware/tcgen05.cuh``. A room may have one header: ``gemm.plan`` is
``kernel/gemm/plan.cuh``. What has no twin of its name is in one table,
``data/twins.toml``, with the reason.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fp4ref.cuda_kernel.sources import kernel_root


@cache
def exceptions() -> dict[str, dict[str, Any]]:
    """Return what has no twin of its name, by table; see ``data/twins.toml``."""
    text = files("fp4ref.data").joinpath("twins.toml").read_text("utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True, slots=True)
class Twin:
    """A piece of the kernel, with the comment above it.

    Attributes
    ----------
    first
        Line number of the first line of `text`, from 1.
    """

    file: str
    first: int
    text: str

    @property
    def last(self) -> int:
        """Line number of the last line."""
        return self.first + self.text.count("\n")


@cache
def twin(emulator: str) -> Twin | None:
    """Return the kernel's twin of ``"fp4ref.gemm.mma_warp:Mma"``, if any."""
    where = emulator.removeprefix("fp4ref.")
    module, _, name = where.partition(":")
    if name.endswith(".of") and where not in exceptions()["other_name"]:
        where = where.removesuffix(".of")
    path = module.replace(".", "/")
    if where == "hardware.tcgen05:InstrDescriptor":
        path = "hardware/instr_descriptor"
    room = path.rpartition("/")[0]
    for name in (f"{path}.cuh", f"{path}.cu", f"{room}.cuh"):
        file = kernel_root() / "kernel" / name
        if file.is_file():
            lines = file.read_text(encoding="utf-8").splitlines()
            span = _find(lines, module, where)
            if span is not None:
                first, last = span
                text = "\n".join(lines[first : last + 1])
                return Twin(f"kernel/{name}", first + 1, text)
    return None


def _find(lines: list[str], module: str, where: str) -> tuple[int, int] | None:
    """First and last index of the definition, comments included."""
    first, last = 0, len(lines) - 1
    if where in exceptions()["other_name"]:
        wanted = [re.escape(exceptions()["other_name"][where])]
    else:
        *classes, name = where.partition(":")[2].split(".")
        wanted = [rf"^struct {each}\b" for each in classes]
        stem = module.rpartition(".")[2]
        prefixed = f"(?:{stem}_)?" if module.startswith("hardware") else ""
        function = rf"^ *(?:static )?__device__.*[ &*]{prefixed}{name}\("
        wanted.append(rf"{function}|^(?:struct|enum) (?:class |alignas\S* )?{name}\b")
    for pattern in wanted:
        start = next(
            (i for i in range(first, last + 1) if re.search(pattern, lines[i])), None
        )
        if start is None:
            return None
        first, last = start, _end(lines, start)
    while first > 0 and re.match(r" *(//|template)", lines[first - 1]):
        first -= 1
    return first, last


def _end(lines: list[str], start: int) -> int:
    """Index of the line that closes what opens at `start`."""
    depth = 0
    for i in range(start, len(lines)):
        code = re.sub(r'//.*|"(?:[^"\\]|\\.)*"', "", lines[i])
        depth += code.count("{") - code.count("}")
        if depth == 0 and ("{" in "".join(lines[start : i + 1]) or ";" in code):
            return i
    return len(lines) - 1
