"""compiler: which forms ptxas takes for a target, and its words about the others."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from probes.forms.catalogue import HEADER, Form, table

_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


def find_ptxas() -> Path | None:
    """Return the ptxas of the installed CUDA wheels; None if there is none."""
    try:
        import nvidia  # type: ignore[import-untyped]
    except ImportError:
        return None
    for folder in nvidia.__path__:
        for found in Path(folder).glob("*/bin/ptxas"):
            return found
    return None


def refusals(ptxas: Path, forms: Iterable[Form], arch: str) -> dict[str, str]:
    """Return what ptxas says of each form that it refuses for `arch`, by name.

    Raises
    ------
    RuntimeError
        ptxas fails without naming a line.
    """
    left = list(forms)
    found: dict[str, str] = {}
    while left:
        lines, owner = _module(left, arch)
        said = _compile(ptxas, lines, arch)
        if not said:
            return found
        refused: dict[str, str] = {}
        for at, words in _ERROR.findall(said):
            if (form := owner.get(int(at))) is not None:
                refused.setdefault(form.name, words.strip())
        if not refused:
            raise RuntimeError(f"ptxas for {arch}: {said[:500]}")
        found |= refused
        left = [form for form in left if form.name not in refused]
    return found


def _module(forms: list[Form], arch: str) -> tuple[list[str], dict[int, Form]]:
    """Return one module with all kernels, and which form a line belongs to."""
    lines = HEADER.format(arch=arch).splitlines()
    lines += next(filter(None, (table(form.shape) for form in forms)), "").splitlines()
    owner: dict[int, Form] = {}
    for i, form in enumerate(forms):
        own = form.entry(f"form{i}").splitlines()
        owner |= dict.fromkeys(range(len(lines) + 1, len(lines) + len(own) + 1), form)
        lines += own
    return lines, owner


def _compile(ptxas: Path, lines: list[str], arch: str) -> str:
    """Return what ptxas says of an error; '' if it compiles."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.ptx"
        source.write_text("\n".join(lines) + "\n")
        command = [str(ptxas), f"-arch={arch}", "-O1", str(source)]
        command += ["-o", str(source.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout if done.returncode else ""
