"""family: a pairwise cover of what a configuration can ask, each with a problem.

The cover is in ``tests/data/family_cover.txt``, since its search takes half a minute;
``python tests/gemm/family.py`` writes it again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from gemm_cases import Case, Operands, asked, wide_operands_of
from narrow_operands import narrow

from fp4ref import GemmConfig, plan
from fp4ref.gemm.config import TILE_K
from fp4ref.gemm.fusion.expression import (
    acc,
    alpha,
    aux,
    beta,
    build,
    c,
    col_amax,
    row_sum,
)
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.plan.rules import broken
from fp4ref.numerics.kinds import kind_of

FIELDS: dict[str, tuple[Any, ...]] = {
    "pair": (False, True),
    "rows": (128, 64),
    "tile_n": (64, 128, 192, 256),
    "cluster_n": (1, 2, 4),
    "clusters_m": (1, 2),
    "k_group": (1, 2, 4),
    "operand_format": (
        *("nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2"),
        *("e4m3", "e5m2", "e2m3", "bf16", "f16"),
    ),
    "b_format": (None, "mxfp4", "mxfp8_e4m3", "mxfp6_e2m3", "e4m3", "e3m2", "e2m1"),
    "scheduler": ("clc", "static"),
    "raster": ("m", "n"),
    "raster_swizzle": (1, 2),
    "splits": (1, 2, 3),
    "accumulator_stages": (1, 2),
    "d_format": ("f32", "bf16", "f16", "nvfp4", None),
    "c_format": (None, "f32", "bf16"),
    "activation": (None, "relu", "gelu"),
    "bias": (False, True),
    "d_stages": (1, 2),
    "swap_ab": (False, True),
    "store": ("plain", "transposed"),
    "loader": ("tma", "cp_async"),
    "tmem_load": ("32x32b", "16x256b"),
    "element_wise": ("registers", "smem"),
    "subtile_n": (32, 16, 64),
    "reuse_smem_c": (False, True),
    "delay_tma_store": (False, True),
    "batches": (None, 2),
}
"""What is varied. `rows` are those of D in a CTA, `clusters_m` CTAs or pairs along M;
one C stage is enough, unless D lies in C's."""
SHAPES = ((1, 33, 64), (129, 65, 544), (200, 264, 288), (140, 128, 1056))
SCHEDULES = ("eager", "late", "seed")
COVER = Path(__file__).parents[1] / "data/family_cover.txt"

Choice = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


def config_of(choice: Choice) -> dict[str, Any]:
    """Fields of the configuration that a choice asks for."""
    row = {
        k: v
        for k, v in choice.items()
        if k not in ("pair", "rows", "clusters_m", "batches")
    }
    group = 2 if choice["pair"] else 1
    row |= {"cta_group": group, "tile_m": choice["rows"] * group}
    shared = choice["d_stages"] + 1 if choice["reuse_smem_c"] else 1
    row |= {"cluster_m": group * choice["clusters_m"], "c_stages": shared}
    row["beta"] = 0.5 if choice["c_format"] else 0.0
    if choice["d_format"] is None:
        row |= {"beta": 0.0, "fusion": void_tree(choice["c_format"])}
    return row


def void_tree(source: str | None) -> Node:
    """A formula whose value is stored beside D, with its sums."""
    value = alpha * acc if source is None else alpha * acc + beta * c
    left = value | aux("y", "bf16") | row_sum("rows") | col_amax("columns")
    node = build(left, c=source).fusion
    assert isinstance(node, Node)
    return node


def is_legal(choice: Choice) -> bool:
    """Whether the rules allow it."""
    return not broken(GemmConfig.nvfp4(**config_of(choice)))


def pairs_of(choice: Choice) -> set[Pair]:
    """Every two values that stand together in a choice."""
    return set(itertools.combinations(sorted(choice.items(), key=lambda x: x[0]), 2))


def legal_near(choice: Choice, rng: np.random.Generator) -> Choice:
    """Give B a format that fits A's, and fields their first value until it is legal."""
    choice = dict(choice)
    fitting = [
        each
        for each in FIELDS["b_format"]
        if kind_of(choice["operand_format"], each or choice["operand_format"])
    ]
    if choice["b_format"] not in fitting:
        choice["b_format"] = fitting[rng.integers(len(fitting))]
    for i in rng.permutation(len(FIELDS)):
        if is_legal(choice):
            break
        name = tuple(FIELDS)[i]
        choice[name] = FIELDS[name][0]
    return choice


def two_fields() -> Iterator[Choice]:
    """Every two values of two fields, with the first of each other field."""
    base = {name: values[0] for name, values in FIELDS.items()}
    for (x, xs), (y, ys) in itertools.combinations(FIELDS.items(), 2):
        for one, other in itertools.product(xs, ys):
            yield base | {x: one, y: other}


def searched_cover() -> list[Choice]:
    """Choices that have every legal pair of values, the same in each run."""
    rng = np.random.default_rng(14)
    drawn = [
        {name: values[rng.integers(len(values))] for name, values in FIELDS.items()}
        for _ in range(600)
    ]
    legal = [legal_near(choice, rng) for choice in drawn]
    legal += filter(is_legal, two_fields())
    pairs = [pairs_of(choice) for choice in legal]
    missing = set().union(*pairs)
    chosen = []
    while missing:
        best = max(range(len(legal)), key=lambda i: len(pairs[i] & missing))
        chosen.append(legal[best])
        missing -= pairs[best]
    return chosen + legal[: max(0, 150 - len(chosen))]


def as_line(choice: Choice) -> str:
    """Write a choice: for each field the number of its value, counted from 0."""
    return " ".join(str(FIELDS[name].index(choice[name])) for name in FIELDS)


@cache
def cover() -> tuple[Choice, ...]:
    """Choices that have every legal pair of values."""
    lines = COVER.read_text("utf-8").splitlines()
    return tuple(
        {
            name: values[int(number)]
            for (name, values), number in zip(FIELDS.items(), line.split(), strict=True)
        }
        for line in lines
    )


def cases() -> Iterator[Case]:
    """Each choice on one shape, schedule and machine after another."""
    turns = zip(itertools.cycle(SHAPES), itertools.cycle(SCHEDULES), strict=False)
    for choice, ((m, n, k), schedule) in zip(cover(), turns, strict=False):
        config = config_of(choice)
        k = k_of(k, config)
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
        planned = plan(config)
        if planned.formats[0] == "nvfp4":
            shape = (self.m, self.n, self.k, self.batches)
            return wide_operands_of(seed, shape, config, self.scale_format)
        wide = wide_operands_of(seed, (self.m, self.n, 64, self.batches), config)
        lead = () if self.batches is None else (self.batches,)
        sides = zip((self.m, self.n), planned.formats, strict=True)
        a, b = (
            narrow(seed + i, (*lead, rows, self.k), format)
            for i, (rows, format) in enumerate(sides)
        )
        return wide._replace(a=a, b=b)


def k_of(k: int, config: dict[str, Any]) -> int:
    """A K of as many k-tiles as NVFP4 has, that the formats take."""
    planned = plan(GemmConfig.nvfp4(**config))
    step = planned.k_multiple
    return -(-k * planned.tile_k // TILE_K // step) * step


if __name__ == "__main__":
    COVER.write_text("\n".join(map(as_line, searched_cover())) + "\n", "utf-8")
