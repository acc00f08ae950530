"""delays: launches with random sleeps at waits, arrivals and operations.

Each launch has a seed of its own, but for the first, which has no sleeps. All must
leave the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import fp4ref
from fp4ref import GemmConfig
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.tensors.unscaled import require_operand
from probes.probe import pattern

NAME = "delays: "
LAUNCHES = 3000
Shape = tuple[int, int, int, int]
PAIR: dict[str, Any] = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
CASES: dict[str, tuple[Shape, dict[str, Any]]] = {
    "two batches": ((2, 700, 520, 544), {}),
    "NVFP4 out": ((1, 128, 128, 256), {"d_format": "nvfp4"}),
    "clusters of 2 x 2": (
        (1, 300, 300, 544),
        {"cluster_m": 2, "cluster_n": 2, "d_format": "bf16"},
    ),
    "split-K": ((1, 300, 260, 1536), {"splits": 2}),
    "pairs": ((1, 300, 130, 1056), PAIR),
    "pairs, multicast": ((1, 520, 260, 544), PAIR | {"cluster_m": 4, "cluster_n": 2}),
    "pairs, static, NVFP4 out": (
        (1, 520, 260, 288),
        PAIR | {"cluster_n": 2, "scheduler": "static", "d_format": "nvfp4"},
    ),
    "whole rounds": ((1, 300, 130, 3104), {"stages": 2}),
    "pairs of 64 rows, f16": (
        (1, 300, 130, 192),
        PAIR | {"tile_m": 128, "operand_format": "f16"},
    ),
}


def problem(shape: Shape, config: GemmConfig) -> GemmProblem:
    """Return a product of any codes, with scales around 1; of f16 around 1 too."""
    batches, m, n, k = shape
    made = []
    for seed, rows in ((3, m), (4, n)):
        raw = pattern(seed, -(-batches * rows * k // 8)).view(np.uint8)
        codes = raw[: batches * rows * k].reshape(batches, rows, k)
        if config.operands.operand_format == "f16":
            made.append((codes.astype(np.float16) - 128) / 64)
            continue
        scales = 0x30 + codes[..., ::16] % 16
        made.append(fp4ref.BlockScaled(codes & 15, scales))
    a, b = (require_operand(each, name) for each, name in zip(made, "ab", strict=True))
    return GemmProblem(Machine(8), a, b, None, None, config, 1.0)


def problems() -> Iterator[tuple[str, GemmProblem]]:
    """Yield each case by its name in the job."""
    for name, (shape, changes) in CASES.items():
        yield NAME + name, problem(shape, GemmConfig.nvfp4(**changes))


def small_pair() -> GemmProblem:
    """Return one tile of a pair, for the checkers."""
    return problem((1, 256, 64, 512), GemmConfig.nvfp4(**PAIR, tile_n=64))


def long_pair() -> GemmProblem:
    """Return one tile of a pair that uses each of two stages four times.

    Without scales: the leader gets a part of SFB from its peer, and would wait for it.
    """
    config = GemmConfig.nvfp4(**PAIR, tile_n=64, stages=2, operand_format="f16")
    return problem((1, 256, 64, 512), config)


def settings() -> list[dict[str, bytes]]:
    """Return what each launch writes to the soft kernel's variables."""
    return [{"soft_delay_seed": np.uint32(seed).tobytes()} for seed in range(LAUNCHES)]
