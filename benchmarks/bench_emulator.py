"""bench_emulator: how long the emulator takes, beside NumPy on the same machine.

``python benchmarks/bench_emulator.py [--json FILE] [--full]`` prints a table. All rows
are measured in one run; the ratio is to float32 NumPy on the same problem, which
dequantises and multiplies. ``--full`` adds the untraced 2048^3 run.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fp4ref


@dataclass(frozen=True)
class Row:
    """One measurement; `ratio` is to NumPy, memory is the peak so far."""

    what: str
    m: int
    n: int
    k: int
    seconds: float
    ratio: float
    peak_gb: float


def operands(m: int, n: int, k: int) -> tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]:
    """Normal data, quantised with a global scale."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    return fp4ref.quantize(a, global_scale="auto"), fp4ref.quantize(
        b, global_scale="auto"
    )


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the shortest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def peak_gb() -> float:
    """Largest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def measure(full: bool) -> list[Row]:
    """Measure every row, NumPy first."""
    warm = operands(128, 128, 64)
    fp4ref.run(*warm, trace=False)  # compiles or loads the integer model
    fp4ref.matmul(*operands(512, 512, 512))
    sizes: list[tuple[int, int, int, bool, bool]] = [
        (256, 256, 512, True, True),
        (1024, 1024, 1024, True, True),
        (2048, 2048, 2048, full, False),
    ]
    rows: list[Row] = []
    for m, n, k, untraced, traced in sizes:
        a, b = operands(m, n, k)
        repeats = 3 if m < 1024 else 1
        numpy_time = seconds(lambda a=a, b=b: a.dequantize() @ b.dequantize().T, 3)

        def add(
            what: str,
            work: Callable[[], Any],
            *,
            at: tuple[int, int, int] = (m, n, k),
            base: float = numpy_time,
            repeats: int = repeats,
        ) -> None:
            taken = seconds(work, repeats)
            rows.append(Row(what, *at, taken, taken / base, peak_gb()))

        rows.append(Row("NumPy float32", m, n, k, numpy_time, 1.0, peak_gb()))
        add("matmul", lambda a=a, b=b: fp4ref.matmul(a, b))
        if untraced:
            add("emulator", lambda a=a, b=b: fp4ref.run(a, b, trace=False))
        if traced:
            add("emulator, traced", lambda a=a, b=b: fp4ref.run(a, b))
    return rows


def main() -> None:
    """Measure, print, and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--full", action="store_true", help="add the 2048^3 emulation")
    options = parser.parse_args()
    rows = measure(options.full)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"{'what':18} {'M x N x K':>16} {'seconds':>9} {'x NumPy':>9} {'peak GB':>8}")
    for r in rows:
        size = f"{r.m}x{r.n}x{r.k}"
        print(
            f"{r.what:18} {size:>16} {r.seconds:9.3f} {r.ratio:9.1f} {r.peak_gb:8.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
