"""record: what the banks of a Hopper card's shared memory count.

``python -m probes.banks.record --build CUBIN`` where a compiler is; on the card
``python -m probes.banks.record --cubin CUBIN OUT``. That measures cycles, then runs
itself below Nsight Compute, which reads the counters of wavefronts (passes) and of
bank conflicts of every launch. It writes ``OUT/banks_h200.json``. With ``--held-out``
it asks for the patterns on which the model was not made, and writes
``OUT/banks_held_out_h200.json``.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

from fp4ref.device import compile_cuda, find_gpu
from fp4ref.device.launch import Call, Module, Pointer
from probes.banks.patterns import (
    HELD_OUT_SEED,
    SEED,
    SMEM_NBYTES,
    Pattern,
    digest,
    held_out,
    patterns,
)

SOURCE: Final = Path(__file__).parent / "banks.cu"
RECORD: Final = Path(__file__).parents[2] / "tests" / "data" / "banks_h200.json"
HELD_OUT: Final = RECORD.with_name("banks_held_out_h200.json")
WARPS: Final = 8
LOOPS: Final = 64
UNROLL: Final = 16
ACCESSES: Final = WARPS * LOOPS * UNROLL
"""Instructions of a launch."""

COUNTERS: Final = {
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
PART: Final = 114
"""Launches below one Nsight Compute."""

TIMEOUT_S: Final = 60


def call(pattern: Pattern) -> Call:
    """Describe the launch of a pattern."""
    return Call(
        pattern.entry,
        {"out": np.zeros(16 * WARPS, np.uint8), "offsets": pattern.buffer},
        (Pointer("out"), Pointer("offsets"), np.uint32(LOOPS)),
        block=(32 * WARPS, 1, 1),
        smem_nbytes=SMEM_NBYTES,
    )


def sources() -> str:
    """SHA-256 over the CUDA files."""
    files = (SOURCE, SOURCE.parents[1] / "probe.cuh")
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def cycles(module: Module, pattern: Pattern) -> int:
    """Return cycles of all warps together, of the second run."""
    module.run(call(pattern))
    times = module.run(call(pattern))["out"].view(np.uint64)
    return int(times[1::2].max() - times[::2].min())


def counted(text: str) -> list[dict[str, int]]:
    """Read Nsight Compute's table: the counters of each launch."""
    rows = text.splitlines()
    (first,) = [i for i, row in enumerate(rows) if row.startswith('"ID"')]
    found: dict[int, dict[str, int]] = {}
    names = {metric: name for name, metric in COUNTERS.items()}
    for row in csv.DictReader(rows[first:]):
        name = names.get(row["Metric Name"])
        if name is not None:
            value = int(float(row["Metric Value"].replace(",", "")))
            found.setdefault(int(row["ID"]), {})[name] = value
    return [found[i] for i in sorted(found)]


def profile(cubin: Path, first: int, ncu: str, *words: str) -> list[dict[str, int]]:
    """Run a part of the patterns below Nsight Compute."""
    command = [ncu, "--csv", "--page", "details", "--print-units", "base"]
    command += ["--clock-control", "none", "--metrics", ",".join(COUNTERS.values())]
    command += [sys.executable, "-m", "probes.banks.record", "--cubin", str(cubin)]
    command += ["--first", str(first), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    try:
        return counted(done.stdout)
    except ValueError:
        raise SystemExit(f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}") from None


def write(file: Path, found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Write a line a pattern."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = json.dumps(found, indent=1)[:-2] + f',\n "patterns": [\n{lines}\n]}}\n'
    file.write_text(text)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.banks.record")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--build", type=Path)
    parser.add_argument("--cubin", type=Path)
    parser.add_argument("--first", type=int)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--held-out", action="store_true")
    given = parser.parse_args()
    if given.build:
        made = compile_cuda(
            SOURCE.read_text(), name=SOURCE.name, include=[SOURCE.parents[1]]
        )
        given.build.write_bytes(made.cubin)
        given.build.with_suffix(".ptx").write_text(made.ptx)
        return 0
    every = held_out() if given.held_out else patterns()
    module = Module(given.cubin.read_bytes())
    if given.first is not None:
        for each in every[given.first : given.first + PART]:
            module.run(call(each))
        return 0
    ask(module, every, given)
    return 0


def ask(module: Module, every: Sequence[Pattern], given: argparse.Namespace) -> None:
    """Measure the cycles of every pattern, then count, and write the record."""
    gpu = find_gpu()
    file = given.out / (HELD_OUT if given.held_out else RECORD).name
    facts = {
        "card": gpu.card,
        "driver": gpu.driver,
        "date": datetime.date.today().isoformat(),
        "sources": sources(),
        "seed": HELD_OUT_SEED if given.held_out else SEED,
        "digest": digest(every),
        "accesses": ACCESSES,
        "counters": COUNTERS,
    }
    rows: list[dict[str, Any]] = [
        {"name": p.name, "access": p.entry, "cycles": cycles(module, p)} for p in every
    ]
    write(file, facts, rows)
    words = ["--held-out"] if given.held_out else []
    for first in range(0, len(every), PART):
        for row, counts in zip(
            rows[first : first + PART],
            profile(given.cubin, first, given.ncu, *words),
            strict=True,
        ):
            row.update(counts)
        write(file, facts, rows)
        print(f"{first + PART} of {len(every)} counted", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
