"""epilogues: what CUTLASS's builder makes of the epilogues in epilogues.txt.

Each line there is asked of `CollectiveBuilder` in a host program, which prints what the
types say, or of the compiler, which prints the static assertions that refuse it.
``tests/data/epilogues.json`` has the answers. Tests compare this package's builder with
them, and ask again for a few; ``python conformance/record/epilogues.py`` rewrites it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from fp4ref.cutlass.toolchain import Toolchain, find_toolchain
from fp4ref.errors import InputError

HERE = Path(__file__).parent
EPILOGUES = HERE.parents[1] / "tests/data/epilogues.json"
AT_ONCE = 12
"""Epilogues in a program: more of them take more memory, fewer more of the headers."""

# CUTLASS's headers are for nvcc; see family.py. Sizes of what is private are asked too.
_FLAGS = (
    "-std=c++17",
    "-fconcepts",
    "-O0",
    "-fpermissive",
    "-w",
    "-fno-access-control",
)

_ELEMENTS = {
    "void": ("void", 128),
    "f32": ("float", 32),
    "f16": ("cutlass::half_t", 16),
    "bf16": ("cutlass::bfloat16_t", 16),
    "e4m3": ("cutlass::float_e4m3_t", 8),
    "e5m2": ("cutlass::float_e5m2_t", 8),
    "s8": ("int8_t", 8),
    "s32": ("int32_t", 32),
    "e2m3": ("cutlass::float_e2m3_t", 6),
    "e3m2": ("cutlass::float_e3m2_t", 6),
    "e2m1": ("cutlass::float_e2m1_t", 4),
    "b1": ("cutlass::uint1b_t", 1),
}
_BLOCK_FORMATS = {
    "nvfp4": ("e2m1", 16, "cutlass::float_ue4m3_t"),
    "mxfp4": ("e2m1", 32, "cutlass::float_ue8m0_t"),
    "mxfp8_e4m3": ("e4m3", 32, "cutlass::float_ue8m0_t"),
}
_LAYOUTS = {"row": "RowMajor", "column": "ColumnMajor"}
_ACTIVATIONS = {
    "relu": "ReLu",
    "gelu": "GELU",
    "silu": "SiLu",
    "dgelu": "dGELU",
}


_READY = {
    "1,1": "fusion::Sm90LinearCombination<{d}, float, {c}, float>",
    "256,16": (
        "fusion::Sm90LinCombPerColBias<0, {tile}, void, {d}, float, cutlass::half_t, "
        "{c}, float>"
    ),
}
"""Trees that are given as callbacks, by bytes and alignment of what they keep: nothing,
and a bias of 128 elements."""


def asked() -> list[str]:
    """Return every line that is asked."""
    lines = (HERE / "epilogues.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _parsed(line: str) -> argparse.Namespace:
    words = argparse.ArgumentParser(exit_on_error=False)
    for name in ("arch", "tile", "epilogue-tile", "schedule", "operation", "bias"):
        words.add_argument(f"--{name}")
    words.add_argument("--callbacks")
    for name in ("aux", "align-c", "align-d", "activation"):
        words.add_argument(f"--{name}")
    words.add_argument("--c", default="void")
    words.add_argument("--d", default="f16")
    words.add_argument("--cluster", default="1,1")
    words.add_argument("--operands")
    words.add_argument("--accumulator", default="f32")
    words.add_argument("--grouped", action="store_true")
    for name in ("c-layout", "d-layout", "aux-layout", "sf-layout"):
        words.add_argument(f"--{name}", default="row")
    return words.parse_args(line.split())


def _shape(text: str) -> str:
    return f"Shape<{', '.join(f'Int<{n}>' for n in text.split(','))}>"


def _operation(a: argparse.Namespace, c: str, d: str) -> str:
    """Write the fusion operation with its template arguments, in CUTLASS's order."""
    if a.callbacks:
        return _READY[a.callbacks].format(c=c, d=d, tile=_shape(a.tile))
    block = _BLOCK_FORMATS.get(a.d)
    name = a.operation or ("LinCombBlockScaleFactor" if block else "LinearCombination")
    out = _ELEMENTS[a.aux][0] if a.d == "void" and a.aux else d
    aux = _ELEMENTS[a.aux][0] if a.aux else d
    given: list[str] = []
    if "Aux" in name or "DeEltAct" in name:
        given.append(_LAYOUTS[a.aux_layout])
    if "EltAct" in name:
        given.append(f"epilogue::thread::{_ACTIVATIONS[a.activation or 'relu']}")
    if "BlockScaleFactor" in name:
        assert block, f"{name} needs a block format"
        given.append(str(block[1]))
    given += [out, "float"]
    if "BlockScaleFactor" in name:
        given += [block[2], _LAYOUTS[a.sf_layout]]
    if "Aux" in name or "DeEltAct" in name:
        given.append(aux)
    if "Amax" in name:
        given.append("float")
    if "Bias" in name:
        given.append(_ELEMENTS[a.bias][0] if a.bias else out)
    if name != "ScaledAcc":
        given.append(c)
    given.append("float")
    return f"fusion::{name}<{', '.join(given)}>"


def builder(line: str) -> str:
    """Write the type that CUTLASS's builder makes of one line."""
    a = _parsed(line)
    d_name = _BLOCK_FORMATS[a.d][0] if a.d in _BLOCK_FORMATS else a.d
    (c, c_bits), (d, d_bits) = _ELEMENTS[a.c], _ELEMENTS[d_name]
    star = "*" if a.grouped else ""
    schedule = f"epilogue::{a.schedule}" if a.schedule else "EpilogueScheduleAuto"
    operands = a.operands or ("nvfp4" if a.arch == "sm100" else "f16")
    scaled = "BlockScaled" if operands in _BLOCK_FORMATS else ""
    given = [
        f"arch::{a.arch.capitalize()}",
        f"arch::OpClass{scaled}TensorOp",
        _shape(a.tile),
        _shape(a.cluster + ",1"),
        _shape(a.epilogue_tile) if a.epilogue_tile else "EpilogueTileAuto",
        _ELEMENTS[a.accumulator][0],
        "float",
        *(c, f"{_LAYOUTS[a.c_layout]}{star}"),
        a.align_c or str((768 if c_bits == 6 else 128) // c_bits),
        *(d, f"{_LAYOUTS[a.d_layout]}{star}"),
        a.align_d or str((768 if d_bits == 6 else 128) // d_bits),
        schedule,
        _operation(a, c, d),
    ]
    return f"CollectiveBuilder<{', '.join(given)}>::CollectiveOp"


def _compile(tools: Toolchain, lines: Sequence[str], program: Path) -> str:
    """Build a program that asks for every line; return what the compiler said."""
    source = program.with_suffix(".cpp")
    calls = (
        f'#line {number} "asked"\n  show<{builder(line)}>({json.dumps(line)});'
        for number, line in enumerate(lines, start=1)
    )
    source.write_text(
        '#include "epilogue_values.h"\n\nint main() {\n' + "\n".join(calls) + "\n}\n"
    )
    include = tools.include
    folders = (tools.cutlass / "include", include, include / "cccl", HERE)
    done = subprocess.run(
        [
            *(tools.host_compiler, *_FLAGS, *(f"-I{each}" for each in folders)),
            *("-o", program, source, tools.cudart),
            f"-Wl,-rpath,{tools.cudart.parent}",
        ],
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


def printed(tools: Toolchain, lines: Sequence[str]) -> dict[str, Any]:
    """Return what CUTLASS's builder says of each line; a list is its refusals.

    Raises
    ------
    InputError
        The compiler refused a line without one of CUTLASS's static assertions.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "epilogues")
        found: dict[str, Any] = {}
        if errors := _compile(tools, lines, program):
            found |= _refusals(errors, lines)
        left = [line for line in lines if line not in found]
        if found and left and (errors := _compile(tools, left, program)):
            raise InputError(f"the compiler refused {left}: {errors[-2000:]}")
        if left:
            said = subprocess.run(
                [program], capture_output=True, text=True, check=True
            ).stdout
            for line, values in ast.literal_eval("{" + said + "}").items():
                found[line] = {name: _plain(value) for name, value in values.items()}
    return {line: found[line] for line in lines}


def _plain(value: int | str) -> int | str:
    """Write CuTe's constants as numbers, and a stride's type as a stride."""
    if isinstance(value, int):
        return value
    if value.startswith("tuple<"):
        value = re.sub(r"C<(\d+)> ?", r"\1", value).replace("long int", "int64")
        return re.sub(r"tuple<(.*)>", r"(\1)", value).replace(", ", ",")
    if value.startswith(("(", "Sw<")):
        value = re.sub(r"\b_(\d)", r"\1", value)
    return value.replace("(unset)", "")


def _refusals(errors: str, lines: Sequence[str]) -> dict[str, list[str]]:
    """Take the static assertions of each refused line from g++'s errors."""
    found: dict[str, list[str]] = {}
    number = 0
    for said in errors.splitlines():
        if at := re.match(r"asked:(\d+):\d+:\s+required from here", said):
            number = int(at[1])
        elif reason := re.search(r"error: static assertion failed(?:: (.*))?$", said):
            said_of = found.setdefault(lines[number - 1], [])
            text = (reason[1] or "").strip()
            said_of += [text] * (text not in said_of)
    if not found:
        raise InputError(f"g++ failed without a static assertion: {errors[-2000:]}")
    return found


def record(tools: Toolchain) -> dict[str, Any]:
    """Ask for every line."""
    lines = asked()
    found: dict[str, Any] = {}
    for start in range(0, len(lines), AT_ONCE):
        found |= printed(tools, lines[start : start + AT_ONCE])
    names = ("nvidia-cutlass", "nvidia-cuda-runtime")
    versions = {name: metadata.version(name) for name in names}
    return {"packages": versions, "epilogues": {line: found[line] for line in lines}}


def text(found: Mapping[str, Any]) -> str:
    """Return the file: one line for each epilogue."""
    rows = (
        f"  {json.dumps(line)}: {json.dumps(said)}"
        for line, said in found["epilogues"].items()
    )
    packages = json.dumps(found["packages"])
    return (
        f'{{\n "packages": {packages},\n "epilogues": {{\n'
        + ",\n".join(rows)
        + "\n }\n}\n"
    )


if __name__ == "__main__":
    EPILOGUES.write_text(text(record(find_toolchain())), "utf-8")
