"""gemm_timed: runs of the kernel family on the machine's clock, for several tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fp4ref
from fp4ref.execution.runs import Run
from fp4ref.gemm.config import GemmConfig
from fp4ref.hardware.timing import Durations
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.quantize import quantize
from fp4ref.trace import Trace

CASES: dict[str, tuple[dict[str, Any] | None, tuple[int, int, int], int]] = {
    "clc": ({}, (256, 384, 512), 2),
    "static": ({"scheduler": "static", "raster": "n"}, (256, 256, 512), 2),
    "72b": (None, (128, 256, 512), 2),
    "pair": ({"cta_group": 2, "cluster_m": 2, "tile_m": 256}, (256, 256, 512), 2),
    "cluster": ({"cluster_m": 2, "cluster_n": 2}, (512, 256, 512), 4),
    "split": ({"splits": 2}, (128, 256, 1024), 2),
}


@cache
def operands(m: int, n: int, k: int) -> tuple[BlockScaled, BlockScaled]:
    rng = np.random.default_rng(m + n + k)
    x, w = (rng.standard_normal((rows, k), dtype=np.float32) for rows in (m, n))
    return quantize(x), quantize(w)


def config_of(name: str) -> GemmConfig:
    asked = CASES[name][0]
    return GemmConfig.example_72b() if asked is None else GemmConfig.nvfp4(**asked)


@cache
def ran(name: str, backend: str, schedule: str | int) -> Run:
    _, shape, sms = CASES[name]
    return fp4ref.run(
        *operands(*shape),
        config=config_of(name),
        backend=backend,
        schedule=schedule,
        sms=sms,
        ordering="shipped" if name == "72b" else "ptx",
        trace=schedule == "timed",
    )


def traced_on(
    durations: Durations,
    shape: tuple[int, int, int],
    config: GemmConfig | None = None,
    sms: int = 2,
) -> Trace:
    """The trace of a product on a machine of these durations."""
    run = fp4ref.run(
        *operands(*shape), config=config, schedule=durations, sms=sms, trace=True
    )
    return run.trace
