"""bench_emulator: what a run costs, and what the order of accesses adds to it.

``python benchmarks/bench_emulator.py [--json FILE] [--size N ...]`` prints two tables.
Untraced runs of n x n x n, each in a process of its own: CPU time, largest resident
size, and hardware operations in a second of CPU time. Traced runs: time of runs in
turns with and without the order in one process, memory of a process for each. How long
a product takes beside other programs is ``fp4ref bench``.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np

import fp4ref

Backend = Literal["emulator", "ptx"]
BACKENDS: tuple[Backend, ...] = ("emulator", "ptx")
SIZES = (512, 1024, 2048)
ORDER_SHAPE = (256, 256, 512)
ORDER_REPEATS = 5


@dataclass(frozen=True)
class SizeRow:
    """An untraced run of a size.

    Attributes
    ----------
    seconds
        CPU time, of all threads.
    peak_mb
        Largest resident size of the process.
    operations
        Hardware operations that it counted.
    """

    backend: Backend
    size: int
    tiles: int
    seconds: float
    peak_mb: float
    operations: int


@dataclass(frozen=True)
class OrderRow:
    """A traced run without the order of accesses, and with it.

    Attributes
    ----------
    seconds
        The shortest of some runs of each kind, taken in turns.
    peak_mb
        Largest resident size of a process that does one such run.
    growth_mb
        What the run adds to that of a process that has done a small one.
    """

    backend: Backend
    seconds: tuple[float, float]
    peak_mb: tuple[float, float]
    growth_mb: tuple[float, float]


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
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage of a child starts at the size of its parent.
        (line,) = (x for x in status.read_text().splitlines() if x[:6] == "VmHWM:")
        return int(line.split()[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def untraced(backend: Backend, size: int) -> SizeRow:
    """Run once without a trace, in this process."""
    fp4ref.run(*operands(128, 128, 256), backend=backend, trace=False)
    a, b = operands(size, size, size)
    start = time.process_time()
    found = fp4ref.run(a, b, backend=backend, trace=False)
    seconds = time.process_time() - start
    operations = sum(found.stats.values())
    tiles = (-(-size // fp4ref.GemmConfig().tile.m)) ** 2
    return SizeRow(backend, size, tiles, seconds, 1000 * peak_gb(), operations)


def print_sizes(rows: Iterable[SizeRow]) -> None:
    """Print each size as it is measured."""
    print("\nuntraced runs of n x n x n")
    print(f"{'what':10} {'n':>5} {'tiles':>6} {'CPU s':>8} {'peak MB':>8} {'op/s':>9}")
    for row in rows:
        cells = f"{row.seconds:8.2f} {row.peak_mb:8.0f}"
        speed = f"{row.operations / row.seconds:9,.0f}"
        what = f"{row.backend:10} {row.size:5} {row.tiles:6}"
        print(what, cells, speed, flush=True)


def measure_sizes(sizes: Sequence[int]) -> Iterator[SizeRow]:
    """Measure each backend and size in a process of its own."""
    for size in sizes:
        for backend in BACKENDS:
            with get_context("spawn").Pool(1) as pool:
                yield pool.apply(untraced, (backend, size))


def traced(backend: Backend, watched: bool, shape: tuple[int, int, int]) -> None:
    """Run once with a trace, with or without the order of accesses."""
    races: Literal["raise", "off"] = "raise" if watched else "off"
    fp4ref.run(*operands(*shape), backend=backend, races=races)


def order_memory(backend: Backend, watched: bool) -> tuple[float, float]:
    """Peak and growth in MB of this process, which has done nothing before."""
    traced(backend, watched, (128, 128, 64))
    before = peak_gb()
    traced(backend, watched, ORDER_SHAPE)
    after = peak_gb()
    return 1000 * after, 1000 * (after - before)


def measure_order(backend: Backend) -> OrderRow:
    """Measure one backend."""
    traced(backend, True, ORDER_SHAPE)
    best = [float("inf"), float("inf")]
    for _ in range(ORDER_REPEATS):
        for watched in (False, True):
            taken = seconds(lambda w=watched: traced(backend, w, ORDER_SHAPE), 1)
            best[watched] = min(best[watched], taken)
    memory = []
    for watched in (False, True):
        with get_context("spawn").Pool(1) as pool:
            memory.append(pool.apply(order_memory, (backend, watched)))
    (peak, growth), (peak_with, growth_with) = memory
    return OrderRow(
        backend, (best[0], best[1]), (peak, peak_with), (growth, growth_with)
    )


def print_order(rows: list[OrderRow]) -> None:
    """Print what the order of accesses costs."""
    print(f"\ntraced run of {'x'.join(map(str, ORDER_SHAPE))}, without and with order")
    print(f"{'what':10} {'':14} {'without':>9} {'with':>9} {'ratio':>6}")
    for row in rows:
        for what, (without, watched) in (
            ("seconds", row.seconds),
            ("peak MB", row.peak_mb),
            ("growth MB", row.growth_mb),
        ):
            ratio = watched / without if without else float("nan")
            cells = f"{without:9.3f} {watched:9.3f} {ratio:6.2f}"
            print(f"{row.backend:10} {what:14} {cells}")


def kept(rows: Iterable[SizeRow], found: list[SizeRow]) -> Iterator[SizeRow]:
    """Give rows on, and keep them in `found`."""
    for row in rows:
        found.append(row)
        yield row


def main() -> None:
    """Measure, print, and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--size", type=int, action="append", help="may be repeated")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}")
    sizes: list[SizeRow] = []
    print_sizes(kept(measure_sizes(options.size or SIZES), sizes))
    order = [measure_order(backend) for backend in BACKENDS]
    print_order(order)
    if options.json:
        found = [asdict(row) for row in (*sizes, *order)]
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
