"""Trees and arguments that cannot be, and what a tree is read as."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.errors import ConfigError, InputError
from fp4ref.gemm.fusion.aux_store import AuxStore
from fp4ref.gemm.fusion.expression import (
    Value,
    acc,
    alpha,
    amax,
    aux,
    aux_load,
    beta,
    branch,
    build,
    c,
    col,
    mask_load,
    node_of,
    relu,
    row,
    scalar,
    total,
)
from fp4ref.gemm.fusion.split_tree_fetch import SplitTreeFetch
from fp4ref.gemm.plan.json_values import json_values

M, N, K = 40, 48, 64


def refused(tree: Any, **changes: Any) -> str:
    """What is said of a tree, or of a field beside it."""
    config = GemmConfig(epilogue=build(tree)).replace(**changes)
    with pytest.raises(ConfigError) as caught:
        plan(config)
    return str(caught.value)


def launched(tree: Value, **given: Any) -> fp4ref.Run:
    a, b = (fp4ref.quantize(np.ones((x, K), np.float32)) for x in (M, N))
    config = GemmConfig(epilogue=build(tree))
    return fp4ref.run(a, b, config=config, trace=False, **given)


@pytest.mark.parametrize(
    ("tree", "changes", "said"),
    [
        (acc, {"fusion": 5}, "fusion=5: a tree of fp4ref.gemm.fusion is needed"),
        (acc, {"fusion": acc}, "a tree of fp4ref.gemm.fusion is needed"),
        (acc, {"bias": True}, "bias=True with a tree: .*Use bias=False"),
        (acc, {"activation": "relu"}, "activation='relu' with a tree: "),
        (
            acc + c,
            {"c_format": "f16"},
            "c_format='f16' with a tree that reads C as f32",
        ),
        (c * c, {}, "a tree with C in 2 places: .*Factor C out"),
        (row("x") + col("x"), {}, "ColBroadcast and RowBroadcast are both called 'x'"),
        (row("a b"), {}, "a node is called 'a b': letters, digits and _ only"),
        (row("class"), {}, "a node is called 'class': a short ASCII name"),
        (row("x" * 41), {}, "a short ASCII name"),
        (row(None), {}, r"without a name: .*Use row\('bias'\)"),  # type: ignore[arg-type]
        ((acc | aux("y")) * (acc | aux("y")), {}, "stores 'y' 2 times"),
        (
            acc | branch(lambda z: z) | branch(lambda z: z),
            {},
            "a tree with 2 branches: one value is shared",
        ),
        (Value(SplitTreeFetch()) + acc, {}, "SplitTreeFetch outside of a branch"),
        (acc, {"store": "transposed"}, "across its .*Use element_wise=smem"),
        (Value(AuxStore(acc.node, "y", m_major=True)), {}, "Use store='transposed'"),
        (
            acc,
            {"tmem_load": "16x256b", "d_format": "f16"},
            "tmem_load='16x256b' with a tree: ",
        ),
    ],
)
def test_a_tree_that_cannot_be_is_refused_with_the_rule(
    tree: Value, changes: dict[str, Any], said: str
) -> None:
    assert re.search(said, refused(tree, **changes))


@pytest.mark.parametrize(
    ("tree", "given", "said"),
    [
        (acc + c, {}, "the tree needs c; pass c= of shape"),
        (acc + c, {"c": np.zeros((M, N + 1), np.float32)}, r"give float32 \(40, 48\)"),
        (acc + row("bias"), {}, r"bias: the tree takes float32 \(48,\), and nothing"),
        (
            acc + row("bias"),
            {"bias": np.zeros(M, np.float32)},
            r"bias: the tree takes float32 \(48,\), and got float32 \(40,\)",
        ),
        (acc * scalar("s"), {}, r"scalar\('s'\), and arguments has no 's'"),
        (acc * scalar("s"), {"arguments": {"s": float("nan")}}, "s=nan"),
        (acc * scalar("s"), {"arguments": {"s": "x"}}, "s='x'"),
        (
            acc + aux_load("z", "bf16"),
            {"arguments": {"z": np.zeros((M, N), np.float32)}},
            r"z: the tree takes bfloat16 \(40, 48\), and got float32",
        ),
        (
            acc * mask_load("m"),
            {"arguments": {"m": np.zeros((N, M), np.bool_)}},
            r"m: the tree takes bool \(40, 48\), and got bool \(48, 40\)",
        ),
        (acc * mask_load("m"), {"arguments": {"m": "no"}}, "m: "),
        (acc | aux("y"), {"arguments": {"y": 1}}, "y: the tree writes it"),
        (acc | amax("y"), {"arguments": {"y": 1}}, "y: the tree writes it"),
        (acc | total("y"), {"arguments": {"y": 1}}, "y: the tree writes it"),
        (acc, {"arguments": {"x": 1}}, "arguments: 'x'; this kernel takes nothing"),
        (acc, {"arguments": [1]}, "arguments"),
        (acc, {"bias": np.zeros(N, np.float32)}, "arguments: 'bias'"),
        (
            acc + row("bias"),
            {"bias": np.zeros(N, np.float32), "arguments": {"bias": 0}},
            "bias is passed as bias= and in arguments",
        ),
    ],
)
def test_what_a_launch_passes_is_checked_before_it(
    tree: Value, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        launched(tree, **given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc * "x",
        lambda: acc + float("inf"),
        lambda: build("relu"),  # type: ignore[arg-type]
        lambda: aux("y", "e2m1"),  # type: ignore[arg-type]
        lambda: aux_load("y", 3),  # type: ignore[arg-type]
        lambda: acc | 3,  # type: ignore[operator]
        lambda: acc | branch(lambda z: None),  # type: ignore[arg-type, return-value]
        lambda: build(acc, tile=3),
    ],
)
def test_what_is_no_formula_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_a_product_that_is_added_is_an_fma() -> None:
    linear = repr(node_of(alpha * acc + beta * c))
    scaled = "Multiply<Alpha, AccFetch>"
    number = "ScalarBroadcast<&GemmParams::scalar_beta>"
    assert linear == f"Fma<{number}, SrcFetch<NONE>, {scaled}>"
    assert repr(node_of(2.0 * acc + 1.0)).startswith("Fma<Constant<0x40000000>")
    assert repr(node_of(1.0 + acc)) == "Add<Constant<0x3f800000>, AccFetch>"


def test_a_tree_is_hashable_and_its_text_is_its_type() -> None:
    config = GemmConfig(epilogue=build(relu(alpha * acc) | aux("y"), d="f16"))
    assert hash(config) == hash(GemmConfig(epilogue=config.epilogue))
    text = json.loads(json.dumps(json_values(config)))["epilogue"]["fusion"]
    assert text == "AuxStore<Relu<Multiply<Alpha, AccFetch>>, F32, &GemmParams::aux_y>"
