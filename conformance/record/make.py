"""make: what the pinned CUTLASS, CUDA's header and ptxas say, as data of the package.

Errata rest on it: a truth reads the record, and the tests ask the same questions again.
`make record` rewrites fp4ref/data/record.json; it needs ``fp4ref[cutlass]``.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

from fp4ref.cutlass.toolchain import Toolchain, build, find_toolchain
from fp4ref.errors import InputError

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "fp4ref/data/record.json"
PROGRAMS = ("cute_types", "sm90_epilogue", "sm100_72b", "sm100_overlapped")
"""Programs whose output is recorded: a name and a value on each line."""
REFUSED = ("sm90_cooperative_64x64",)
"""Programs that CUTLASS refuses; its reason is recorded."""

PTX_VERSION = "9.0"
_KERNEL = """\
.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .b64 p)
{{
.reg .b64 d<8>;
.reg .b32 r<16>;
.reg .b16 h<2>;
.reg .pred p<4>;
{text}
ret;
}}
"""


def questions() -> dict[str, list[dict[str, str]]]:
    """Return the lines and the PTX texts to ask for."""
    return tomllib.loads((HERE / "questions.toml").read_text("utf-8"))


def found_lines(tools: Toolchain) -> dict[str, dict[str, Any]]:
    """What the patterns match in the packages' files.

    Raises
    ------
    InputError
        A pattern does not match: the package is another one.
    """
    roots = {
        "nvidia-cutlass": tools.cutlass / "include",
        "nvidia-cuda-runtime": tools.include.parent,
    }
    found = {}
    for ask in questions()["line"]:
        package, file = ask.get("package", "nvidia-cutlass"), ask["file"]
        text = (roots[package] / file).read_text("utf-8")
        piece = re.search(ask["within"], text) if "within" in ask else None
        start, end = piece.span() if piece else (0, len(text))
        matches = list(re.compile(ask["pattern"]).finditer(text, start, end))
        if not matches or ("within" in ask and not piece):
            raise InputError(f"{package}, {file}: {ask['key']} is not there")
        found[ask["key"]] = {
            "package": package,
            "file": file,
            "line": text.count("\n", 0, matches[0].start(1)) + 1,
            "found": [match[1] for match in matches],
        }
    return found


def compiled(tools: Toolchain, program: str) -> dict[str, Any]:
    """Build a program and return the values that it prints, by name."""
    built = build(tools, HERE / f"{program}.cu")
    said = subprocess.run([built.program], capture_output=True, text=True, check=True)
    pairs = (line.partition("=") for line in said.stdout.splitlines())
    return {name: ast.literal_eval(value) for name, _, value in pairs}


def refusal(tools: Toolchain, program: str) -> str:
    """Return the static assertion of CUTLASS that refuses a program, if any."""
    try:
        build(tools, HERE / f"{program}.cu")
    except InputError as error:
        reason = re.search(r'static assertion failed with "([^"]*)"', str(error))
        return reason[1] if reason else ""
    return ""


def assembled(tools: Toolchain) -> dict[str, dict[str, Any]]:
    """What ptxas says of each text: nothing, or its first error."""
    ptxas = tools.nvcc.with_name("ptxas")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "text.ptx")
        for ask in questions()["ptx"]:
            source.write_text(_KERNEL.format(version=PTX_VERSION, **ask))
            command = [ptxas, f"-arch={ask['target']}", source, "-o", f"{folder}/cubin"]
            done = subprocess.run(command, capture_output=True, text=True)
            error = re.search(r"error\s*: (.*)", done.stderr)
            said = error[1] if error else ""
            if bool(done.returncode) != bool(said):
                raise InputError(f"ptxas, {ask['key']}: {done.stderr.strip()}")
            shown = {name: ask[name] for name in ("target", "text")}
            found[ask["key"]] = shown | {"error": said}
    return found


def record(tools: Toolchain) -> dict[str, Any]:
    """Ask everything."""
    names = ("nvidia-cutlass", "nvidia-cuda-runtime", "nvidia-cuda-nvcc")
    return {
        "packages": {name: metadata.version(name) for name in names},
        "lines": found_lines(tools),
        "types": {program: compiled(tools, program) for program in PROGRAMS},
        "refused": {program: refusal(tools, program) for program in REFUSED},
        "ptx": assembled(tools),
    }


if __name__ == "__main__":
    text = json.dumps(record(find_toolchain()), indent=1)
    RECORD.write_text(f"{text}\n", "utf-8")
