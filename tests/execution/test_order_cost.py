"""execution: what watching the order of accesses costs a traced run."""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from gemm_cases import asked, wide_operands_of

import fp4ref


def traced_run(backend: Any, races: Any) -> fp4ref.Run:
    config, alpha = asked({})
    a, b, c, bias = wide_operands_of(7, (256, 256, 512, None), config)
    return fp4ref.run(
        *(a, b, c),
        bias=bias,
        alpha=alpha,
        config=config,
        backend=backend,
        races=races,
    )


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_a_watched_run_takes_less_than_twice_the_time(backend: str) -> None:
    """Pairs in alternate order, by processor time."""
    times: dict[str, list[float]] = {"off": [], "raise": []}
    for turn in range(9):
        order = ["off", "raise"] if turn % 2 else ["raise", "off"]
        for races in order:
            start = time.process_time()
            traced_run(backend, races)
            times[races].append(time.process_time() - start)
    off, on = (statistics.median(found[1:]) for found in times.values())
    assert on < 2 * off


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["emulator", "ptx"])
def test_a_watched_run_keeps_less_than_twice_the_memory(backend: str) -> None:
    traced_run(backend, "raise")
    peaks = []
    for races in ("off", "raise"):
        tracemalloc.start()
        kept = traced_run(backend, races)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert kept.trace is not None
    assert peaks[1] < 2 * peaks[0]
