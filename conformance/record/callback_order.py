"""callback_order: in which order CUTLASS's collective epilogue calls a tree's nodes.

``callback_order.cu`` is compiled with CUTLASS's own kernels, and they are executed on
one emulated SM, two tiles each. Nodes of their trees print every callback.
``tests/data/callback_order.json`` has what they printed. Tests compare this package's
epilogue with it, and print it again in the long run;
``python conformance/record/callback_order.py`` rewrites it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from fp4ref.cutlass.cudart import Launch, Runtime
from fp4ref.cutlass.entries import read_entries
from fp4ref.cutlass.process import run_program
from fp4ref.cutlass.toolchain import Toolchain, build, build_stand_in, find_toolchain
from fp4ref.errors import InputError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch, parse

HERE = Path(__file__).parent
CALLBACKS = HERE.parents[1] / "tests/data/callback_order.json"
SECONDS = 900
"""The program computes nothing itself; it waits for its kernels."""
LOAD_WARP, STORE_WARPS = "3", ("4", "5", "6", "7")
"""CUTLASS's ``WarpCategory``; the first of the store warps issues the stores."""

Run = dict[str, Any]


def said(tools: Toolchain, schedule: str = "eager") -> str:
    """Return what the program and its kernels print.

    Raises
    ------
    InputError
        It cannot be built, or a kernel ended with a fault.
    """
    built = build(tools, HERE / "callback_order.cu", progress=print)
    text = built.ptx.read_text()
    module = parse(text)

    def run_kernel(machine: Machine, found: Launch) -> list[str]:
        return launch(
            machine,
            Program.of(module, found.name),
            found.grid,
            found.block,
            found.params,
            cluster=found.cluster,
            preferred=found.preferred,
            nonportable=found.nonportable,
            smem_nbytes=found.smem_nbytes,
        )

    # One SM: a CTA finishes both tiles, and its stages wrap.
    machine = Machine(1, make_schedule(schedule), ordering="shipped")
    runtime = Runtime(machine, read_entries(text), run_kernel)
    library = build_stand_in(tools)
    ended = run_program(built.program, [], library, runtime, SECONDS)
    if runtime.fault or ended.reason or "failed" in ended.output:
        raise InputError(f"callback_order: {runtime.fault or ended.reason}")
    return ended.output


def runs(output: str) -> dict[str, Run]:
    """Return each run of the program: its policy, its load warp, its store warps.

    Raises
    ------
    InputError
        A store warp was called in another order than the others, or another one than
        the first issued a store.
    """
    found: dict[str, Run] = {}
    for part in output.split("run ")[1:]:
        name, policy, *lines = part.splitlines()
        names_of, values = policy.split()[1::2], policy.split()[2::2]
        warps: dict[str, list[str]] = {}
        for line in lines:
            warp, _, row = line.partition(" ")
            warps.setdefault(warp, []).append(row)
        first, *others = (warps[warp] for warp in STORE_WARPS)
        for other in others:
            if other != [_not_issued(row) for row in first]:
                raise InputError(f"{name}: the store warps differ")
        numbers = dict(zip(names_of, map(int, values), strict=True))
        found[name] = {
            "policy": numbers,
            "load": list(_joined(warps.get(LOAD_WARP, []))),
            "store": list(_joined(first)),
        }
    return found


def _not_issued(row: str) -> str:
    return row[:-1] + "0" if row.startswith("tma_store") else row


def _joined(rows: Sequence[str]) -> Iterator[str]:
    """Write the nodes of one callback behind it: ``"previsit 0 1 1 1: 0 1 2"``."""
    told = [row.split() for row in rows]
    for (callback, *what), group in groupby(told, lambda r: (r[0], *r[2:])):
        nodes = " ".join(row[1] for row in group)
        yield f"{' '.join((callback, *what))}: {nodes}"


def record(tools: Toolchain) -> dict[str, Any]:
    """Run the program."""
    versions = {name: metadata.version(name) for name in ("nvidia-cutlass",)}
    return {"packages": versions, "runs": runs(said(tools))}


def text(found: Mapping[str, Any]) -> str:
    """Return the file: one line for what a run says of a warp's callback."""
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    CALLBACKS.write_text(text(record(find_toolchain())), "utf-8")
