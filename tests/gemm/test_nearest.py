"""What a refusal tells to use is legal: the rule holds with it."""

from __future__ import annotations

import itertools
import re
from ast import literal_eval
from typing import Any

import pytest

from fp4ref import GemmConfig
from fp4ref.gemm.config import FIELDS
from fp4ref.gemm.plan.nearest import nearest_float, nearest_of
from fp4ref.gemm.plan.rules import broken

PAIR = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
NEAREST: list[tuple[dict[str, Any], str]] = [
    ({"tile_m": 100}, "; the nearest is 128"),
    ({"tile_n": 10**9}, "; the nearest is 256"),
    ({"cluster_m": 3}, "; the nearest is 2"),
    ({"bias": 1}, "; the nearest is True"),
    ({"scheduler": "CLCs"}, "; the nearest is clc"),
    ({"operand_format": "nvfp"}, "; the nearest is nvfp4"),
    ({"b_format": "mxfp44"}, "; the nearest is mxfp4"),
    ({"operand_format": "MXFP8"}, "; the nearest is mxfp8_e4m3"),
    ({"d_format": "fp16"}, "; the nearest is f16"),
    ({"splits": 0}, "; the nearest is 1"),
    ({"beta": -1e300}, "; the nearest is -3.4028234663852886e+38"),
    ({"splits": 70_000}, "Use splits=65535"),
    ({"norm_constant": 0.0}, "Use norm_constant=1.0"),
    ({"beta": 1.0}, "Use beta=0, or c_format='f32'"),
    ({"b_format": "mxfp4"}, "Use b_format='nvfp4'"),
    ({"tile_k": 64}, "Use tile_k=256, or None"),
    ({"tile_m": 256}, "Use tile_m=128"),
    ({"tile_m": 64}, "Use tile_m=128"),
    ({"tile_m": 64, "operand_format": "bf16"}, "Use tile_m=128"),
    ({**PAIR, "tile_m": 128}, "Use tile_m=256"),
    ({"cta_group": 2, "tile_m": 256}, "Use cluster_m=2"),
    ({"cluster_m": 4, "cluster_n": 4}, "Use cluster_n=2"),
    ({"accumulator_stages": 9}, "Use accumulator_stages=4"),
    ({"accumulator_stages": 4}, "Use accumulator_stages=3"),
    ({"accumulator_stages": 1, "tile_n": 256, "k_group": 4}, "Use k_group=2"),
    ({"d_stages": 30}, "Use d_stages=9"),
    ({"c_stages": 2**60, "c_format": "f32"}, "Use c_stages=7"),
    ({"k_group": 4}, "Use k_group=2"),
    ({"d_stages": 99, "k_group": 4}, "Use d_stages=1 and c_stages=1 and k_group=1"),
    ({"stages": 1}, "Use stages=2"),
    ({"stages": 20}, "Use stages=5"),
    ({"clc_stages": 4000}, "Use clc_stages=316"),
    ({"store": "transposed", "d_format": "nvfp4"}, "Use element_wise=smem"),
    ({"swap_ab": True}, "Use element_wise=smem"),
    ({"d_format": None}, "Use d_format='f32'"),
    ({"d_format": None, "delay_tma_store": True}, "Use delay_tma_store=False"),
    ({"d_format": None, "reuse_smem_c": True}, "Use reuse_smem_c=False"),
    ({"tmem_load": "16x256b"}, "Use d_format=bf16"),
    ({"loader": "cp_async", "operand_format": "mxfp8_e4m3"}, "Use loader=tma"),
]


def remedies(said: str) -> list[dict[str, Any]]:
    """Changes of which each is a remedy by itself."""
    if near := re.search(r"^(\w+)=.*; the nearest is (\S+)$", said):
        return [{near[1]: value_of(near[2])}]
    use = re.search(r"Use (\w+=.*)$", said)
    if not use:
        return []
    text = use[1].partition(";")[0]
    text, *others = re.split(r", or ", text)
    found = [dict(pair_of(each) for each in text.split(" and "))]
    return found + [dict([pair_of(each)]) for each in others if "=" in each]


def pair_of(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, value_of(value.split()[0])


def value_of(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@pytest.mark.parametrize(("asked", "words"), NEAREST, ids=lambda v: str(v)[:40])
def test_a_refusal_names_the_nearest_legal_value(
    asked: dict[str, Any], words: str
) -> None:
    config = GemmConfig.nvfp4(**asked)
    found = [(rule, said) for rule, said in broken(config) if words in said]
    assert found, [said for _, said in broken(config)]
    rule, said = found[0]
    assert remedies(said)
    for remedy in remedies(said):
        names = {each.name for each, _ in broken(config.replace(**remedy))}
        assert rule.name not in names, remedy


def test_one_more_than_the_nearest_is_refused() -> None:
    fields = ("accumulator_stages", "d_stages", "c_stages", "stages", "clc_stages")
    for asked, words in NEAREST:
        if use := re.fullmatch(rf"Use ({'|'.join(fields)})=(\d+)", words):
            field, count = use[1], int(use[2])
            if asked[field] > count:
                assert broken(GemmConfig.nvfp4(**asked | {field: count + 1})), use[0]


ODD = (None, "", "x", 10**5000, float("nan"), 1j, [], {}, b"clc", True)


def test_without_a_nearest_value_none_is_told() -> None:
    for one, value in itertools.product(FIELDS, ODD):
        for rule, said in broken(GemmConfig.nvfp4(**{one: value})):
            for remedy in remedies(said):
                mended = GemmConfig.nvfp4(**{one: value}).replace(**remedy)
                assert rule.name not in {each.name for each, _ in broken(mended)}
    assert nearest_of(2.5, (1, 2)) == nearest_of("q", ("clc",)) == ""
    assert nearest_float(float("nan")) == nearest_float("1") == ""
