"""formulas: trees of the GEMM that has a mistake, and what their launches pass."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.arguments import ScalarArgument, TensorArgument, VectorArgument
from fp4ref.gemm.fusion.expression import (
    Value,
    acc,
    alpha,
    amax,
    aux,
    aux_load,
    branch,
    c,
    col,
    col_amax,
    col_sum,
    mask_load,
    relu,
    relu_mask,
    row,
    row_amax,
    row_sum,
    scalar,
    total,
    with_source,
)
from fp4ref.gemm.fusion.launch_arguments import arguments_of
from fp4ref.gemm.fusion.node import Node
from fp4ref.numerics.elements import element

_FORMULAS: Mapping[str, Value] = MappingProxyType(
    {
        "aux and maximum": alpha * acc + 0.5 * c + row("bias")
        | aux("y", "bf16")
        | amax("d"),
        "maxima": alpha * acc - row("x") | row_amax("n") | col_amax("m"),
        "sums": alpha * acc + col("bias")
        | row_sum("rows")
        | col_sum("columns")
        | total("all"),
        "dropout": relu(alpha * acc * mask_load("keep") | relu_mask("positive")),
        "gradient": (alpha * acc) * aux_load("z", "bf16") | col_sum("bias"),
        "branch": relu(alpha * acc) | branch(lambda z: z * scalar("s") | aux("z")),
    }
)
"""What a row calls them."""


def formula(name: str, source: str | None) -> Node:
    """Return a tree; C has the format `source`."""
    return with_source(_FORMULAS[name].node, source or "f32")


def arguments(tree: Node, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Return what a launch passes to the nodes of a tree: all numbers finite.

    Parameters
    ----------
    shape
        (L, M, N).
    """
    rng = np.random.default_rng(15)
    passed: dict[str, Any] = {}
    for each in arguments_of(tree).values():
        if isinstance(each, ScalarArgument):
            passed[each.name] = 0.75
        elif isinstance(each, VectorArgument):
            passed[each.name] = _normal(rng, (shape[each.axis],))
        elif isinstance(each, TensorArgument) and each.element == "u1":
            passed[each.name] = rng.random(shape) < 0.5
        elif isinstance(each, TensorArgument):
            dtype = element(each.element).dtype
            passed[each.name] = _normal(rng, shape).astype(dtype)
    return passed


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return rng.standard_normal(shape, np.float32)
