"""family: a pairwise cover of what a configuration can ask, each with a problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from gemm_cases import Case, Operands, asked, wide_operands_of

import fp4ref
from fp4ref import BlockScaled, GemmConfig
from fp4ref.gemm.plan.rules import broken

FIELDS: dict[str, tuple[Any, ...]] = {
    "pair": (False, True),
    "tile_n": (64, 128, 192, 256),
    "cluster_n": (1, 2, 4),
    "clusters_m": (1, 2),
    "k_group": (1, 2, 4),
    "operand_format": ("nvfp4", "mxfp4"),
    "scheduler": ("clc", "static"),
    "raster": ("m", "n"),
    "raster_swizzle": (1, 2),
    "splits": (1, 2, 3),
    "accumulator_stages": (1, 2),
    "d_format": ("f32", "bf16", "f16", "nvfp4"),
    "c_format": (None, "f32", "bf16"),
    "activation": (None, "relu", "gelu"),
    "bias": (False, True),
    "d_stages": (1, 2),
    "batches": (None, 2),
}
"""What is varied. `clusters_m` are CTAs or pairs along M; one C stage is enough."""
SHAPES = ((1, 33, 64), (129, 65, 544), (200, 300, 800), (256, 128, 1056))
SCHEDULES = ("eager", "late", "seed")

Choice = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


def config_of(choice: Choice) -> dict[str, Any]:
    """Fields of the configuration that a choice asks for."""
    row = {
        k: v for k, v in choice.items() if k not in ("pair", "clusters_m", "batches")
    }
    group = 2 if choice["pair"] else 1
    row |= {"cta_group": group, "tile_m": 128 * group}
    row |= {"cluster_m": group * choice["clusters_m"], "c_stages": 1}
    return row | {"beta": 0.5 if choice["c_format"] else 0.0}


def is_legal(choice: Choice) -> bool:
    """Whether the rules allow it."""
    return not broken(GemmConfig.nvfp4(**config_of(choice)))


def pairs_of(choice: Choice) -> set[Pair]:
    """Every two values that stand together in a choice."""
    return set(itertools.combinations(sorted(choice.items(), key=lambda x: x[0]), 2))


@cache
def cover() -> tuple[Choice, ...]:
    """Choices that have every legal pair of values, the same in each run."""
    rng = np.random.default_rng(14)
    drawn = [
        {name: values[rng.integers(len(values))] for name, values in FIELDS.items()}
        for _ in range(6000)
    ]
    legal = [choice for choice in drawn if is_legal(choice)]
    missing = set().union(*map(pairs_of, legal))
    chosen = []
    while missing:
        best = max(legal, key=lambda choice: len(pairs_of(choice) & missing))
        chosen.append(best)
        missing -= pairs_of(best)
    return tuple(chosen + legal[: max(0, 150 - len(chosen))])


def cases() -> Iterator[Case]:
    """Each choice on one shape, schedule and machine after another."""
    turns = zip(itertools.cycle(SHAPES), itertools.cycle(SCHEDULES), strict=False)
    for choice, ((m, n, k), schedule) in zip(cover(), turns, strict=False):
        config = config_of(choice)
        size = config["cluster_m"] * config["cluster_n"]
        yield FamilyCase(
            *(m, n, k, choice["batches"]),
            sms=size * (1 + len(str(choice)) % 2),
            schedule=schedule,
            config=config,
        )


class FamilyCase(Case):
    """A case whose operands have the format that the configuration asks for."""

    def operands(self, seed: int) -> Operands:
        config = asked(self.config)[0]
        shape = (self.m, self.n, self.k, self.batches)
        wide = wide_operands_of(seed, shape, config, self.scale_format)
        if config.operands.operand_format == "nvfp4":
            return wide
        a, b = (mxfp4(seed + i, q.codes.shape) for i, q in enumerate(wide[:2]))
        return wide._replace(a=a, b=b)


def mxfp4(seed: int, shape: tuple[int, ...]) -> BlockScaled:
    """Values of widely different scale, and a NaN block in the last of three rows."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-40, 41, (*shape[:-1], 1))).astype(np.float32)
    q = fp4ref.quantize(rng.standard_normal(shape, np.float32) * scale, format="mxfp4")
    scales = q.scales.copy()
    if shape[-2] >= 3:
        scales[..., -1, -1] = 0xFF
    return replace(q, scales=scales)
