"""family: what CUTLASS's builder and scheduler make of the family's tiles and grids.

Two host programs print it, and ``tests/data/cutlass_family.json`` has it, with the
versions. Tests compare the plan with it, and build the programs again where
``fp4ref[cutlass]`` is installed; ``python conformance/record/family.py`` rewrites it.
"""

from __future__ import annotations

import ast
import json
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from fp4ref.cutlass.toolchain import Toolchain, find_toolchain
from fp4ref.errors import InputError

HERE = Path(__file__).parent
FAMILY = HERE.parents[1] / "tests/data/cutlass_family.json"
PROGRAMS = ("sm100_mainloop", "sm100_raster", "sm90_mainloop")
"""Programs by name; each prints what is asked, and a list, on a line."""

# CUTLASS's headers are for nvcc. The host compiler takes them as host code, in which a
# function of the device is one like any other.
_FLAGS = ("-std=c++17", "-O0", "-fpermissive", "-w")

Table = dict[str, list[int]]


def printed(tools: Toolchain, name: str) -> Table:
    """Build a program with the host compiler, and return what it prints.

    Raises
    ------
    InputError
        The compiler refused it.
    """
    include = tools.include
    folders = (tools.cutlass / "include", include, include / "cccl", HERE)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, name)
        done = subprocess.run(
            [
                *(tools.host_compiler, *_FLAGS, *(f"-I{each}" for each in folders)),
                *("-o", program, HERE / f"{name}.cpp", tools.cudart),
                f"-Wl,-rpath,{tools.cudart.parent}",
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise InputError(f"{name}: {done.stderr.strip()[-2000:]}")
        said = subprocess.run([program], capture_output=True, text=True, check=True)
    lines = (line.partition("=") for line in said.stdout.splitlines())
    return {asked.strip(): list(ast.literal_eval(f"[{v}]")) for asked, _, v in lines}


def family(tools: Toolchain) -> dict[str, Any]:
    """Ask both programs."""
    names = ("nvidia-cutlass", "nvidia-cuda-runtime")
    versions = {name: metadata.version(name) for name in names}
    return {"packages": versions} | {name: printed(tools, name) for name in PROGRAMS}


def text(found: dict[str, Any]) -> str:
    """Return the file: one line for each row of a table."""
    tables = []
    for name, rows in found.items():
        lines = (f"  {json.dumps(key)}: {json.dumps(v)}" for key, v in rows.items())
        tables.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(tables) + "\n}\n"


if __name__ == "__main__":
    FAMILY.write_text(text(family(find_toolchain())), "utf-8")
