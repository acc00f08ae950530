"""outside_kernels: hand-written kernels that ran on B200s, as witnesses of wrong rules.

They are those of ``conformance/other_texts.toml`` whose check is a product, compiled
from a folder of checkouts. Every bit of their results is known without the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import other_texts
from other_texts import CASES, compile_file

from fp4ref.ptx import Program

PRODUCTS = ("product", "scaled product")
compiled = lru_cache(maxsize=None)(compile_file)


def kernels(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each kernel under the schedules in which it is right.

    Parameters
    ----------
    folder
        A checkout of each repository, as ``OWNER+NAME``.
    """
    for file in other_texts.listed():
        source = folder / file["repository"].replace("/", "+") / file["path"]
        if file.get("check") not in PRODUCTS or not source.is_file():
            continue
        module = compiled(source)  # before a rule is wrong
        for spec in file["kernels"]:
            (name,) = (each for each in module.entries if spec["match"] in each)
            program = Program.of(module, name)
            case = CASES[file["check"]](spec)
            for schedule in ("late", "eager"):
                label = f"{file['repository']} {Path(file['path']).stem}"
                note = f", {spec['note']}" if "note" in spec else ""
                yield f"{label}{note}, {schedule}", _run(program, spec, case, schedule)


def _run(
    program: Program, spec: dict[str, Any], case: other_texts.Case, schedule: str
) -> Callable[[], str]:
    return lambda: other_texts.run(program, spec, case, schedule)
