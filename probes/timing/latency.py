"""latency: cycles of barriers, shared memory and TMA copies on the card.

Each measurement is a kernel of one cluster that writes the cycles of one operation
after the other. Boxes are of 128 bytes by 1 to 128 rows, 2 KB apart; a near one is the
same each time, far ones follow each other through 262 MB, more than the L2 cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.device.compile import compile_cuda
from fp4ref.device.launch import Call, MapOf, Module, Pointer
from fp4ref.trace import Bytes

SOURCE = Path(__file__).parent / "latency.cu"
SAMPLES = 1000
OWN = "mbarrier, arrive and see it"
THERE = "mbarrier, to another {} and back"
ROWS = (1, 8, 32, 128)
ROW_NBYTES = 128
PITCH_NBYTES = 2048
FAR_NBYTES = SAMPLES * 128 * PITCH_NBYTES
SMEM_NBYTES = 32 << 10


def _call(
    entry: str, *more: Any, ctas: int = 1, threads: int = 32, gmem: int = 0
) -> Call:
    """Describe one launch that writes its samples to `out`."""
    buffers: dict[str, Bytes] = {"out": np.zeros(4 * SAMPLES, np.uint8)}
    if gmem:
        buffers["far"] = np.zeros(gmem, np.uint8)
    maps = [each for each in more if isinstance(each, MapOf)]
    rest = [each for each in more if not isinstance(each, MapOf)]
    shape = (ctas, 1, 1)
    return Call(
        entry,
        buffers,
        (*maps, Pointer("out"), np.uint32(SAMPLES), *rest),
        grid=shape,
        block=(threads, 1, 1),
        cluster=shape,
        smem_nbytes=SMEM_NBYTES,
    )


def _map(rows: int) -> MapOf:
    dims = (ROW_NBYTES, FAR_NBYTES // PITCH_NBYTES)
    return MapOf("far", 0, dims, (PITCH_NBYTES,), (ROW_NBYTES, rows))


def measurements() -> Iterator[tuple[str, Call]]:
    """Yield each measurement: what it is, and the launch."""
    u32 = np.uint32
    yield "clock, read twice", _call("clock_read", threads=1)
    own, there = "mbarrier_own", "mbarrier_there_and_back"
    yield OWN, _call(own)
    yield f"{OWN}, scope of the cluster", _call(f"{own}_in_cluster")
    yield THERE.format("warp"), _call(there, threads=64)
    there += "_in_cluster"
    what = f"{THERE.format('warp')}, scope of the cluster"
    yield what, _call(there, u32(1), threads=64)
    yield THERE.format("CTA"), _call(there, u32(2), ctas=2)
    yield "bar.sync of two warps", _call("bar_sync", threads=64)
    yield "ld.shared", _call("shared_load", u32(0), threads=1, ctas=2)
    yield (
        "ld.shared::cluster of another CTA",
        _call("shared_load", u32(1), threads=1, ctas=2),
    )
    for rows in ROWS:
        nbytes = u32(rows * ROW_NBYTES)
        for name, step in (("near", 0), ("far", 128)):
            what = f"TMA load, {nbytes} bytes, {name}"
            yield (
                what,
                _call("tma_load", _map(rows), nbytes, u32(step), gmem=FAR_NBYTES),
            )
        for name, written in (("read", 0), ("written", 1)):
            what = f"TMA store, {nbytes} bytes, until {name}"
            given = (_map(rows), u32(0), u32(written))
            yield what, _call("tma_store", *given, gmem=FAR_NBYTES)


def spread(cycles: NDArray[np.uint32]) -> dict[str, int]:
    """Return the spread of samples, in cycles of the SM."""
    at = np.percentile(cycles, [0, 10, 50, 90, 100])
    names = ("least", "p10", "median", "p90", "most")
    return {name: int(each) for name, each in zip(names, at, strict=True)}


def measure() -> dict[str, dict[str, int]]:
    """Run everything on the card; the second launch counts."""
    compiled = compile_cuda(
        SOURCE.read_text(),
        name=SOURCE.name,
        include=[SOURCE.parents[1]],
    )
    module, found = Module(compiled.cubin), {}
    for name, call in measurements():
        module.run(call)
        found[name] = spread(module.run(call)["out"].view(np.uint32))
    return found
