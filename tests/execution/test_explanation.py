"""The value of every node at one element of D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import GemmConfig
from fp4ref.errors import InputError
from fp4ref.execution.explanation import Explanation
from fp4ref.gemm.fusion.expression import (
    acc,
    alpha,
    amax,
    aux,
    beta,
    build,
    c,
    relu,
    row,
)

M, N, K = 70, 90, 64
TREE = relu(alpha * acc + beta * c + row("bias")) | aux("mask") | amax("D")


def explained(m: int, n: int, **changes: Any) -> tuple[Explanation, fp4ref.Run]:
    rng = np.random.default_rng(3)
    a, b = (fp4ref.quantize(rng.standard_normal((x, K), np.float32)) for x in (M, N))
    source = rng.standard_normal((M, N)).astype(np.float16)
    bias = rng.standard_normal(N, np.float32)
    config = GemmConfig(epilogue=build(TREE, d="f16")).replace(**changes)
    run = fp4ref.run(a, b, source, bias=bias, config=config, trace=False)
    return run.explain(m=m, n=n), run


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"swap_ab": True, "element_wise": "smem", "tile_n": 64},
        {"scheduler": "static", "cta_group": 2, "tile_m": 256, "cluster_m": 2},
        {"store": "transposed", "element_wise": "smem"},
        {"store": "transposed", "swap_ab": True},
    ],
    ids=["default", "swapped", "static pair", "rows of M", "rows of M, swapped"],
)
def test_the_values_of_the_nodes_are_those_of_the_formula(
    changes: dict[str, Any],
) -> None:
    """By the nodes' names in the tree that was written, also where D lies otherwise."""
    found, run = explained(5, 70, **changes)
    names = [each.node.split("<")[0] for each in found.nodes]
    assert names == [
        *("ScalarBroadcast", "SrcFetch", "Alpha", "AccFetch", "Multiply", "Fma"),
        *("RowBroadcast", "Add", "Relu", "AuxStore", "ScalarMaximum"),
    ]
    value = {
        name: np.float32(x.value) for name, x in zip(names, found.nodes, strict=True)
    }
    assert value["Multiply"] == value["Alpha"] * value["AccFetch"]
    assert value["Fma"] == value["SrcFetch"] + value["Multiply"]
    assert value["Add"] == value["Fma"] + value["RowBroadcast"]
    assert value["AuxStore"] == run.aux["mask"][5, 70] == max(value["Add"], 0)
    assert np.float16(value["ScalarMaximum"]) == run.d[5, 70]


def test_it_is_a_table_of_bits() -> None:
    found, run = explained(5, 70)
    first, *lines = str(found).splitlines()
    assert first == "D[5, 70] of batch 0"
    beta_node = "ScalarBroadcast<&GemmParams::scalar_beta>"
    assert lines[0].split() == ["0x3f800000", "1", beta_node]
    assert len(lines) == len(found.nodes)
    assert run.reductions["D"] == run.aux["mask"].max()


def test_an_element_outside_of_d_is_refused() -> None:
    _, run = explained(0, 0)
    with pytest.raises(InputError, match="n=90: D has 90; give 0 to 89"):
        run.explain(5, 90)
    with pytest.raises(InputError, match="m: -1"):
        run.explain(-1, 0)
