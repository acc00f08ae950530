"""speed_pairs: `matmul` and `quantize` beside NumPy, in turns, by number of threads.

Each number of threads has a process of its own, as BLAS reads it when it is loaded.
There `matmul` and NumPy, which looks codes and scales up in tables and multiplies in
float32, take turns on the same operands. Of each the shortest turn counts, by the clock
and by the processors; beside other work the second figure is the steadier.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.numerics import decode_e2m1, decode_ue4m3
from fp4ref.numerics.formats import F32
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.product import matmul
from fp4ref.tensors.quantize import quantize

SIZE: Final = 2048
MOST_THREADS: Final = 1024
TURNS: Final = 7
_QUANTIZED: Final = 4
"""Side of the matrix that is quantised, by that of the product's."""

_VARIABLES: Final = (
    *("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)
"""What says how many threads Numba and the libraries that NumPy multiplies by take."""

_CODES: Final = decode_e2m1(np.arange(16, dtype=np.uint8))
_SCALES: Final = decode_ue4m3(np.arange(256, dtype=np.uint8))


@dataclass(frozen=True, slots=True)
class Turns:
    """The shortest turn of each side.

    Attributes
    ----------
    work
        What was done: ``matmul`` of some data, or ``quantize``.
    seconds, cpu_seconds
        By the clock, and of all processors together.
    numpy_seconds, numpy_cpu_seconds
        NumPy's; None for `quantize`.
    ratio, cpu_ratio
        NumPy's seconds over ours: above 1, `matmul` is faster.
    shares
        Of the multiply-adds, by tier.
    memory
        Of `quantize`: the most that was held at once besides the input, by the size of
        the input.
    """

    threads: int
    work: str
    size: int
    seconds: float
    cpu_seconds: float
    numpy_seconds: float | None = None
    numpy_cpu_seconds: float | None = None
    ratio: float | None = None
    cpu_ratio: float | None = None
    shares: dict[str, float] = field(default_factory=dict)
    memory: float | None = None


def ordinary(rng: np.random.Generator, n: int) -> BlockScaled:
    """Normal numbers with a global scale."""
    return quantize(rng.standard_normal((n, n), np.float32), global_scale="auto")


def wide(rng: np.random.Generator, n: int) -> BlockScaled:
    """Blocks over several binades, with a global scale."""
    spread = np.exp(rng.standard_normal((n, n // 16))).repeat(16, axis=1)
    x = rng.standard_normal((n, n)) * spread
    return quantize(x.astype(np.float32), global_scale="auto")


def any_scale(rng: np.random.Generator, n: int) -> BlockScaled:
    """Any code and any finite scale."""
    codes = rng.integers(0, 16, (n, n), np.uint8)
    return BlockScaled(codes, rng.integers(0, 0x7F, (n, n // 16), np.uint8))


def by_tables(q: BlockScaled) -> F32:
    """Return the values of NVFP4 by NumPy alone, without the global scale."""
    blocks = _CODES[q.codes].reshape(*q.scales.shape, -1)
    return (blocks * _SCALES[q.scales][..., np.newaxis]).reshape(q.codes.shape)


def measure_threads(
    threads: Sequence[int], size: int = SIZE, turns: int = TURNS
) -> Iterator[Turns]:
    """Yield what each work took with each number of threads, in processes of their own.

    Parameters
    ----------
    size
        Side of the matrices of the product, a multiple of 64.

    Raises
    ------
    InputError
        A number is not legal, or a process failed.
    """
    require_integer(size, "size", 64, 8192)
    if size % 64:
        raise InputError(f"size {size}; take a multiple of 64, K of an MMA")
    for count in threads:
        require_integer(count, "threads", 1, MOST_THREADS)
    for count in threads:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "fp4ref.evidence.speed_pairs",
                str(size),
                str(turns),
            ],
            env=os.environ | dict.fromkeys(_VARIABLES, str(count)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise InputError(
                f"threads {count}: the process that measures ended with "
                f"{done.returncode} and said {said!r}. Take a smaller size"
            )
        for each in json.loads(done.stdout):
            yield Turns(count, **each)


def measure_here(size: int, turns: int) -> Iterator[dict[str, Any]]:
    """Yield what `measure_threads` does, with the threads of this process."""
    for make in (ordinary, wide, any_scale):
        rng = np.random.default_rng(size)
        a, b = make(rng, size), make(rng, size)
        _, report = matmul(a, b, report=True)
        pairs = [_turn(a, b) for _ in range(turns)]
        (wall, cpu), (numpy_wall, numpy_cpu) = np.min(pairs, axis=0).tolist()
        yield {
            "work": f"matmul, {make.__name__.replace('_', ' ')}",
            "size": size,
            "seconds": wall,
            "cpu_seconds": cpu,
            "numpy_seconds": numpy_wall,
            "numpy_cpu_seconds": numpy_cpu,
            "ratio": numpy_wall / wall,
            "cpu_ratio": numpy_cpu / cpu,
            "shares": {tier.value: share for tier, share in report.shares.items()},
        }
    yield _quantize(_QUANTIZED * size, turns)


def _turn(a: BlockScaled, b: BlockScaled) -> tuple[tuple[float, float], ...]:
    """Time ours and NumPy's."""
    ours = _timed(lambda: matmul(a, b))
    return ours, _timed(lambda: by_tables(a) @ by_tables(b).T)


def _quantize(size: int, turns: int) -> dict[str, Any]:
    x = np.random.default_rng(size).standard_normal((size, size), np.float32)
    quantize(x, global_scale="auto")
    found = [_timed(lambda: quantize(x, global_scale="auto")) for _ in range(turns)]
    wall, cpu = np.min(found, axis=0).tolist()
    tracemalloc.start()
    quantize(x, global_scale="auto")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "work": "quantize",
        "size": size,
        "seconds": wall,
        "cpu_seconds": cpu,
        "memory": peak / x.nbytes,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main(arguments: Sequence[str]) -> None:
    """Print as JSON what `measure_here` yields for a size and a number of turns."""
    size, turns = map(int, arguments)
    print(json.dumps(list(measure_here(size, turns))))


if __name__ == "__main__":
    main(sys.argv[1:])
