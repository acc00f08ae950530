"""Each rule judges the fields that it names, and no pair of values ends otherwise."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from fp4ref import GemmConfig, ScaleFormat, plan
from fp4ref.errors import ConfigError
from fp4ref.gemm.config import FIELDS
from fp4ref.gemm.fusion.expression import acc, alpha, aux, build, c
from fp4ref.gemm.fusion.registry import activations
from fp4ref.gemm.plan import Plan
from fp4ref.gemm.plan.rules import RULES, Rule, broken
from fp4ref.numerics.kinds import OPERAND_FORMATS

PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
STAGED = {"d_format": "bf16", "operand_format": "e4m3", "tile_n": 256}
STAGED |= {"scheduler": "static"}
TREE = build(alpha * acc + c, c="bf16").fusion
LEGAL = [
    GemmConfig(),
    GemmConfig.example_72b(beta=0.5),
    GemmConfig.nvfp4(**PAIR, cluster_n=2, k_group=2, operand_format="mxfp4"),
    GemmConfig.nvfp4(scheduler="static", tile_n=64, scale_buffers=1, bias=True),
    GemmConfig.nvfp4(**PAIR, operand_format="mxfp8_e4m3", b_format="mxfp6_e2m3"),
    GemmConfig.nvfp4(operand_format="bf16", tile_n=256, tile_k=64),
    GemmConfig.nvfp4(swap_ab=True, element_wise="smem", tile_n=64, splits=2),
    GemmConfig.nvfp4(tmem_load="16x256b", d_format="bf16", loader="cp_async"),
    GemmConfig.nvfp4(fusion=TREE, c_format="bf16"),
    GemmConfig.nvfp4(fusion=build(acc | aux("y")).fusion, d_format=None),
    GemmConfig.nvfp4(**PAIR | {"tile_m": 128}, operand_format="f16"),
    GemmConfig.nvfp4(tile_n=256, accumulator_stages=2),
    GemmConfig.nvfp4(staging="padded", epilogue_warps=6, **STAGED),
    GemmConfig.nvfp4(staging="swizzled", warp_order="load_first", **PAIR | STAGED),
    GemmConfig.nvfp4(staging="none", prefetch_tile=True, **STAGED),
]


class Part:
    """A part of a configuration that remembers which of its fields were read."""

    def __init__(self, part: str, values: Any, read: set[str]) -> None:
        self._part, self._values, self._read = part, values, read

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._values, name)
        own = f"{self._part}_{name}" if self._part == "tile" else name
        self._read.add(own)
        return value


class Watched:
    """A configuration that remembers which of its fields were read."""

    def __init__(self, config: GemmConfig) -> None:
        self._config = config
        self.read: set[str] = set()

    def __getattr__(self, part: str) -> Any:
        return Part(part, getattr(self._config, part), self.read)

    def asked(self, name: str) -> Any:
        part, field = FIELDS[name]
        return getattr(getattr(self, part), field)


def fields_read(rule: Rule, config: GemmConfig) -> set[str]:
    """Fields on which the answer of a rule depends."""
    watched = Watched(config)
    rule.check(Plan(watched))  # type: ignore[arg-type]
    return watched.read


def named(rule: Rule) -> set[str]:
    """Fields that a rule names, by itself or by a rule that goes before it."""
    by_name = {each.name: each for each in RULES}
    found = set()
    for name in rule.reads:
        found |= named(by_name[name]) if name in by_name else {name}
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_names_the_fields_that_it_reads(rule: Rule) -> None:
    """What it does not name it would compute with, although it is refused already."""
    for config in LEGAL:
        assert not broken(config)
        assert fields_read(rule, config) <= named(rule)


VALUES: dict[str, tuple[Any, ...]] = {
    "tile_m": (64, 128, 256),
    "tile_n": (32, 64, 96, 128, 192, 256),
    "tile_k": (None, 64, 128, 256),
    "operand_format": (*OPERAND_FORMATS, "int8"),
    "b_format": (None, *OPERAND_FORMATS, "int8"),
    "stages": (None, 1, 2, 99),
    "accumulator_stages": (0, 1, 2, 4),
    "scale_buffers": (0, 1, 2),
    "k_group": (1, 2, 3, 4),
    "cta_group": (1, 2, 4),
    "cluster_m": (1, 2, 3, 4, 8),
    "cluster_n": (1, 2, 4, 8),
    "scheduler": ("clc", "static", "other"),
    "raster": ("m", "n", "k"),
    "raster_swizzle": (1, 2, 4, 8, 3),
    "clc_stages": (0, 1, 8),
    "d_format": ("f32", "bf16", "f16", "e4m3", "e5m2", "nvfp4", None, "e3m2"),
    "sfd_format": (*ScaleFormat, "ue8m0"),
    "norm_constant": (1.0, -1.0),
    "c_format": (None, "f32", "bf16", "f16", "e4m3", "e5m2", "f64"),
    "beta": (0.0, 1.0, float("nan")),
    "bias": (False, True, 1),
    "activation": (None, *activations(), "tanh"),
    "c_stages": (1, 40),
    "d_stages": (1, 0, 20),
    "subtile_n": (16, 32, 64, 128, 24),
    "reuse_smem_c": (False, True, 1),
    "delay_tma_store": (False, True, 1),
    "splits": (1, 2, 0, 70_000),
    "swap_ab": (False, True, 1),
    "loader": ("tma", "cp_async", "other"),
    "mma_loop": ("rolled", "unrolled", "other"),
    "store": ("plain", "transposed", "other"),
    "element_wise": ("registers", "smem", "other"),
    "tmem_load": ("32x32b", "16x256b", "16x64b"),
    "fusion": (None, TREE, "relu"),
    "staging": ("tiles", "padded", "bulk", "swizzled", "none", "rows"),
    "unroll": (1, 2, 4, 3),
    "release": ("loaded", "stored", "never"),
    "warp_order": ("mma_first", "load_first", "other"),
    "epilogue_warps": (4, 2, 6, 8, 5),
    "prefetch_tile": (False, True, 1),
}
"""For each field what is legal by itself, and what is not."""
ANYTHING = (0, -0.0, 1j, "", b"x", None, True, [], 10**5000, float("inf"))


def judged(config: GemmConfig) -> bool:
    """Whether it is allowed; if not, the error has more than a word."""
    if not (found := broken(config)):
        p = plan(config)
        assert (p.smem.end <= 232_448, p.tmem.end <= 512) == (True, True)
        return True
    said = "\n".join(text for _, text in found)
    with pytest.raises(ConfigError) as caught:
        plan(config)
    assert str(caught.value).startswith(said)
    assert len(said) > 10
    return False


def pairs(base: GemmConfig) -> tuple[int, int]:
    """How many pairs of fields with two of their values are allowed, and refused."""
    counts = [0, 0]
    for one, other in itertools.combinations(FIELDS, 2):
        for x, y in itertools.product(VALUES[one], VALUES[other]):
            counts[judged(base.replace(**{one: x, other: y}))] += 1
    return counts[1], counts[0]


def test_every_pair_of_values_gives_a_plan_or_a_config_error() -> None:
    assert set(VALUES) == set(FIELDS)
    allowed, refused = pairs(GemmConfig())
    assert allowed > 1000
    assert refused > 1000


@pytest.mark.soak
@pytest.mark.parametrize("base", LEGAL[1:], ids=range(1, len(LEGAL)))
def test_every_pair_of_values_on_other_configurations(base: GemmConfig) -> None:
    allowed, refused = pairs(base)
    assert allowed > 100
    assert refused > 1000


def test_every_pair_of_fields_with_anything_gives_a_config_error() -> None:
    """Of each pair of fields one has what no field takes, the other turns about."""
    turn = itertools.count()
    for one, other in itertools.permutations(FIELDS, 2):
        n = next(turn)
        odd = ANYTHING[n % len(ANYTHING)], ANYTHING[n // 7 % len(ANYTHING)]
        judged(GemmConfig.nvfp4(**{one: odd[0], other: odd[1]}))


def test_a_rule_that_names_too_little_would_be_seen() -> None:
    rule = Rule("rows", "", ("tile_n",), lambda p: str(p.b_rows))
    assert not fields_read(rule, GemmConfig()) <= named(rule)
