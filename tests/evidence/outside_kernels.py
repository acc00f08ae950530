"""outside_kernels: hand-written kernels that ran on B200s, as witnesses of wrong rules.

They are those of ``conformance/other_texts.toml`` whose check is a product, compiled
from a folder of checkouts. Every bit of their results is known without the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import other_compilers
import other_texts
from other_texts import CASES

from fp4ref.ptx import Program

PRODUCTS = ("product", "scaled product", "scaled product of tensors")


def kernels(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each kernel under the schedules in which it is right.

    Parameters
    ----------
    folder
        A checkout of each repository, as ``OWNER+NAME``.
    """
    for file in other_texts.listed():
        if file.get("check") not in PRODUCTS:
            continue
        module = other_compilers.compiled(folder, file)  # before a rule is wrong
        if module is None:
            continue
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
