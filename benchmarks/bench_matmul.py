"""bench_matmul: `matmul` beside NumPy's dequantise and float32 product, over sizes.

``python benchmarks/bench_matmul.py [--largest N]`` takes the two in turns in one
process and prints the median of each one's seconds and of their ratios, NumPy's over
fp4ref's, with the share of each tier. NumPy's side looks codes and scales up in tables.
CPU seconds are printed too: on a shared machine they are the steadier figure. Threads
are what ``OPENBLAS_NUM_THREADS`` and ``NUMBA_NUM_THREADS`` say. A last line has the
events per second of a traced run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import fp4ref
from fp4ref.numerics import decode_e2m1, decode_ue4m3

Pair = tuple[fp4ref.BlockScaled, fp4ref.BlockScaled]
CODES = decode_e2m1(np.arange(16, dtype=np.uint8))
SCALES = decode_ue4m3(np.arange(256, dtype=np.uint8))
TURNS = 5


def normal(rng: np.random.Generator, n: int) -> fp4ref.BlockScaled:
    """Ordinary data with a global scale."""
    x = rng.standard_normal((n, n)).astype(np.float32)
    return fp4ref.quantize(x, global_scale="auto")


def log_normal(rng: np.random.Generator, n: int) -> fp4ref.BlockScaled:
    """Blocks over several binades."""
    spread = np.exp(rng.standard_normal((n, n // 16))).repeat(16, axis=1)
    x = (rng.standard_normal((n, n)) * spread).astype(np.float32)
    return fp4ref.quantize(x, global_scale="auto")


def any_scale(rng: np.random.Generator, n: int) -> fp4ref.BlockScaled:
    """Any code and any finite scale."""
    codes = rng.integers(0, 16, (n, n), np.uint8)
    return fp4ref.BlockScaled(codes, rng.integers(0, 0x7F, (n, n // 16), np.uint8))


def dequantised(q: fp4ref.BlockScaled) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the values by tables, without the global scale."""
    blocks = CODES[q.codes].reshape(*q.scales.shape, -1)
    return (blocks * SCALES[q.scales][..., np.newaxis]).reshape(q.codes.shape)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(name: str, pair: Pair) -> None:
    """Print one line."""
    a, b = pair
    _, report = fp4ref.matmul(a, b, report=True)
    turns = [
        (
            timed(lambda: fp4ref.matmul(a, b)),
            timed(lambda: dequantised(a) @ dequantised(b).T),
        )
        for _ in range(TURNS)
    ]
    cells = []
    for which in (0, 1):
        ours, numpy = (median(turn[side][which] for turn in turns) for side in (0, 1))
        ratio = median(turn[1][which] / turn[0][which] for turn in turns)
        cells.append(f"{ours:8.3f} {numpy:8.3f} {ratio:6.2f}")
    shares = " ".join(f"{100 * share:6.2f}" for share in report.shares.values())
    print(f"{name:11} {len(a.codes):6} {' '.join(cells)} {shares}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--largest", type=int, default=2048, help="side of the matrices"
    )
    largest = parser.parse_args().largest
    print(f"{'':18} {'wall':^24} {'CPU':^24} {'tiers, %':^20}")
    print(
        f"{'data':11} {'side':>6} "
        + f"{'fp4ref':>8} {'NumPy':>8} {'ratio':>6} " * 2
        + "   f32    f64    int"
    )
    rng = np.random.default_rng(0)
    size = 256
    while size <= largest:
        for make in (normal, log_normal, any_scale):
            measure(make.__name__, (make(rng, size), make(rng, size)))
        size *= 2
    small = normal(rng, 256), normal(rng, 256)
    events = len(fp4ref.run(*small).trace or ())
    wall, cpu = timed(lambda: fp4ref.run(*small))
    print(
        f"traced run: {events} events, {events / wall:.0f} a second, "
        f"{events / cpu:.0f} a CPU second"
    )


if __name__ == "__main__":
    main()
