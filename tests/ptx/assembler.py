"""assembler: ptxas as the judge of what is PTX."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest


@cache
def ptxas() -> Path | None:
    """ptxas of the compiler wheel; another version may know other instructions."""
    found = find_spec("nvidia")
    for root in (found.submodule_search_locations or ()) if found else ():
        for path in Path(root).glob("*/bin/ptxas"):
            return path
    return None


needs_ptxas = pytest.mark.skipif(
    ptxas() is None, reason="needs ptxas: pip install 'fp4ref[cutlass]'"
)


def complaint(text: str, folder: Path, target: str = "sm_100a") -> str:
    """First complaint of ptxas about a module; '' if it takes it."""
    source = folder / "module.ptx"
    source.write_text(text, newline="")
    command = [str(ptxas()), f"-arch={target}", "-o", str(folder / "cubin"), source]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr + done.stdout).split("\n")[0]
