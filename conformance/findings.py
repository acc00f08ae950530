"""findings: what the order of accesses says of other people's kernels.

Each kernel runs once on a machine that does what shipped kernels rely on, and the
engine collects every pair of accesses that nothing orders: once by what such kernels
may rely on (``"shipped"``), once by the PTX text alone (``"ptx"``). A third run, on a
machine that follows the text alone, says where that one stops. `make conformance`
records all of it in findings.json; the page argues each of them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.cutlass.execute import execute_on
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.machine_state import Ordering
from fp4ref.hardware.order.engine import Order
from fp4ref.hardware.schedule import make_schedule

FOLDER = Path(__file__).parent
RECORD = FOLDER / "findings.json"
ARGUMENTS = FOLDER / "arguments.toml"
PAGE = FOLDER.parent / "docs" / "shipped_order.md"

ORDERINGS: tuple[Ordering, ...] = ("shipped", "ptx")
SCHEDULE = "late"
PACKAGES = ("nvidia-cutlass", "nvidia-cuda-nvcc", "triton")

Run = Callable[[Machine], str]
"""Runs a kernel; the answer is the fault that ended it, if one did."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of other people, and the one problem that it is recorded on."""

    name: str
    shape: tuple[int, int, int]
    run: Run
    sms: int = 2


def kernels() -> Iterator[Kernel]:
    """Every recorded kernel, in the order of the page."""
    yield cutlass("CUTLASS 70 fp8", "70-fp8", (256, 256, 128), 4)
    yield cutlass("CUTLASS 72a", "72a", (256, 1024, 256), 8)
    yield cutlass("CUTLASS 72b", "72b", (256, 384, 512))
    yield cutlass("CUTLASS 72c", "72c", (256, 256, 256), 8)
    yield cutlass("CUTLASS 75 block-scaled", "75", (128, 256, 256))
    yield cutlass("CUTLASS 81 gemm_groupwise", "81-groupwise", (256, 128, 256))
    yield cutlass("CUTLASS 81 gemm_blockwise", "81", (128, 128, 256))
    for number, shape, sms in (
        (1, (128, 256, 128), 2),
        (2, (256, 256, 128), 2),
        (3, (512, 1024, 128), 16),
    ):
        name = f"tutorial-0{number}"
        yield cutlass(f"CuTe Blackwell tutorial 0{number}", name, shape, sms)
    for name in ("nvfp4", "mxfp4"):
        yield triton(name, (128, 128, 256), (128, 128, 512))


def cutlass(title: str, name: str, shape: tuple[int, int, int], sms: int = 2) -> Kernel:
    """Return an example of CUTLASS; its own check has to pass where it ends."""

    def run(machine: Machine) -> str:
        found = execute_on(machine, name, *shape)
        assert found.passed or found.fault, f"{title}: {found.problems}"
        return _headline(found.fault) if found.fault else ""

    return Kernel(title, shape, run, sms)


def triton(
    name: str, block: tuple[int, int, int], shape: tuple[int, int, int]
) -> Kernel:
    """Return Triton's `tl.dot_scaled`; its bits have to be the integer model's."""
    title = f"Triton dot_scaled {name.upper()}, tile {'x'.join(map(str, block))}"

    def run(machine: Machine) -> str:
        from test_triton import run as run_triton

        from fp4ref.errors import HardwareFault

        try:
            d, want = run_triton(name, block, shape, on=machine)
        except HardwareFault as fault:
            return _headline(fault)
        assert np.array_equal(d, want), f"{title}: D differs"
        return ""

    return Kernel(title, shape, run)


def _headline(fault: Exception) -> str:
    """First line of what a fault says, which begins with its name."""
    return str(fault).splitlines()[0]


def record(kernel: Kernel) -> dict[str, Any]:
    """Run a kernel under both orderings and by the text alone."""
    found: dict[str, Any] = {"kernel": kernel.name, "shape": list(kernel.shape)}
    for ordering in ORDERINGS:
        found[ordering] = judged(kernel, ordering)
    text_alone = Machine(kernel.sms, make_schedule(SCHEDULE), "ptx")
    found["stops_with"] = kernel.run(text_alone)
    return found


def judged(kernel: Kernel, ordering: Ordering) -> dict[str, Any]:
    """Run a kernel to its end and return what the engine says by `ordering`.

    The machine itself goes on where shipped kernels expect it to: a fault would end
    the run before the engine has seen all of it.
    """
    machine = Machine(kernel.sms, make_schedule(SCHEDULE), "shipped", races="collect")
    assert isinstance(machine.order, Order)
    machine.order.ordering = ordering
    fault = kernel.run(machine)
    assert not fault, f"{kernel.name}, {ordering}: {fault}"
    findings = machine.order.findings
    return {
        "verdict": findings.verdict,
        "unsure": list(findings.unsure),
        "advisories": dict(sorted(machine.advisories.items())),
        "findings": sorted(
            (
                {
                    "failure": between.failure.value.name,
                    "severity": between.severity,
                    "first": list(between.first),
                    "second": list(between.second),
                    "count": count,
                }
                for between, count in findings.statements.items()
            ),
            key=lambda found: (found["failure"], found["first"], found["second"]),
        ),
    }


def versions() -> dict[str, str]:
    """Return the versions of what compiles kernels, as far as it is installed."""
    found = {}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def recorded(path: Path = RECORD) -> dict[str, Any]:
    """Read the record."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def arguments() -> list[dict[str, Any]]:
    """Read the arguments, each for one kind of finding."""
    found: list[dict[str, Any]] = tomllib.loads(ARGUMENTS.read_text())["argument"]
    return found


def is_argued(argument: Mapping[str, Any], finding: Mapping[str, Any]) -> bool:
    """Whether `argument` is about `finding`: its class and its two operations."""
    first, second = finding["first"][0], finding["second"][0]
    return (
        argument["failure"] == finding["failure"]
        and first in argument["first"]
        and second in argument["second"]
    )


def is_named(name: str, words: Sequence[str]) -> bool:
    """Whether a name has one of `words` in it; without words it counts as named."""
    return not words or any(word in name for word in words)


def update(words: Sequence[str] = ()) -> bool:
    """Record kernels and write the page; whether the record was right before.

    Parameters
    ----------
    words
        As for `is_named`: other kernels stay as recorded.
    """
    before = recorded() if RECORD.exists() else {}
    known = {row["kernel"]: row for row in before.get("kernels", [])}
    known_versions = before.get("versions", {})
    found = {"versions": known_versions | versions(), "kernels": []}
    for kernel in kernels():
        if not is_named(kernel.name, words):
            found["kernels"] += [known[kernel.name]] if kernel.name in known else []
            continue
        print(f"{kernel.name}, order of accesses ...", flush=True)
        found["kernels"].append(record(kernel))
    RECORD.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(render(found, arguments()))
    return found["kernels"] == before.get("kernels")


def render(record: Mapping[str, Any], argued: list[dict[str, Any]]) -> str:
    """Write the page: the verdicts, then each kind of finding with its argument."""
    lines = [tomllib.loads(ARGUMENTS.read_text())["introduction"].strip(), ""]
    lines += ["| kernel | shape | shipped | ptx | by the text alone it stops with |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for row in record["kernels"]:
        shape = "x".join(map(str, row["shape"]))
        stop = row["stops_with"] or "nothing: it runs to its end"
        verdicts = f"{row['shipped']['verdict']} | {row['ptx']['verdict']}"
        lines.append(f"| {row['kernel']} | {shape} | {verdicts} | {stop} |")
    for argument in argued:
        lines += ["", f"## {argument['title']}", "", argument["text"].strip(), ""]
        lines += ["| kernel | first | second | shipped | ptx |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for row in record["kernels"]:
            lines += _rows(row, argument)
    return "\n".join(lines) + "\n"


def _rows(row: Mapping[str, Any], argument: Mapping[str, Any]) -> Iterator[str]:
    """Lines of one kernel in the table of an argument."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for ordering in ORDERINGS:
        for finding in row[ordering]["findings"]:
            if is_argued(argument, finding):
                sides = [f"{name} ({at})" for name, at in
                         (finding["first"], finding["second"])]  # fmt: skip
                said = f"{finding['severity']}, {finding['count']}"
                cells.setdefault((sides[0], sides[1]), {})[ordering] = said
    for (first, second), said in cells.items():
        counts = " | ".join(said.get(ordering, "-") for ordering in ORDERINGS)
        yield f"| {row['kernel']} | {first} | {second} | {counts} |"
