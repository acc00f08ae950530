"""recorded: one steady tile of document 003's kernel and of variants, from its trace.

The emulator takes seconds for each, so the tiles are in
``fp4ref/data/lab_traced_tiles.json.gz``; ``python -m fp4ref.lab.traced.recorded`` makes
them anew. What they are made of does not depend on how long anything takes. They are
traced with slow loads, because a warp that need not wait leaves no trace of its wait.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

from fp4ref.execution.runs import run
from fp4ref.hardware.timing import Durations
from fp4ref.lab.document_003 import TABLE, variant, work
from fp4ref.lab.timing.graph import Graph
from fp4ref.lab.traced.tile import LEAST_TILES, Step, from_dict, of_trace, to_dict

FILE: Final = Path(__file__).parents[2] / "data" / "lab_traced_tiles.json.gz"
NAMES: Final = (
    *("baseline", "F19a, late release", "F17, direct stores", "F19b, bulk copies"),
    *("F20, next tile ahead", "F24, swizzled", "TN=128", "F12, TN=128, 6 stages"),
)
"""Variants of `fp4ref.lab.document_003` that are traced."""
SLOW: Final = 4.0
"""Bytes a clock that TMA brings to an SM while the kernel is traced."""


def traced(name: str) -> list[Step]:
    """Run a variant on the clock, and cut out a tile."""
    config = variant(name)
    k, n = work().k, config.tile.n
    shape = LEAST_TILES * config.tile.m, n
    a, b = (np.zeros((rows, k), ml_dtypes.float8_e4m3fn) for rows in shape)
    trace = run(
        a,
        b,
        config=config,
        arguments={TABLE: np.zeros((1, n), ml_dtypes.bfloat16)},
        sms=config.cluster.cta_group,
        schedule=Durations.of().changed(tma_fill_bandwidth=SLOW),
        trace=True,
    ).trace
    assert trace is not None
    return of_trace(Graph(trace))


@cache
def _read() -> dict[str, Any]:
    packed = resources.files("fp4ref.data").joinpath(FILE.name).read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


@cache
def tile(name: str) -> tuple[Step, ...]:
    """Return the recorded tile of one of `NAMES`."""
    return tuple(from_dict(each) for each in _read()[name])


def main() -> None:
    """Trace every variant and write the tiles."""
    found = {}
    for name in NAMES:
        found[name] = [to_dict(step) for step in traced(name)]
        print(name, len(found[name]), "steps")
    text = json.dumps(found, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
