"""tree_cases: trees and what their launches pass, each with a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref import GemmConfig
from fp4ref.gemm.fusion.expression import (
    Value,
    acc,
    add,
    add_bf16,
    alpha,
    amax,
    aux,
    aux_load,
    beta,
    branch,
    build,
    c,
    clamp,
    col,
    col_amax,
    col_sum,
    d_gelu,
    d_relu,
    d_relu_z,
    divide,
    embedding,
    gelu,
    gelu_erf,
    hardswish,
    leaky_relu,
    mask_load,
    relu,
    relu_mask,
    row,
    row_amax,
    row_sum,
    scalar,
    sigmoid,
    silu,
    tanh,
    total,
)

Maker = Callable[[np.random.Generator, tuple[int, ...]], Any]


@dataclass(frozen=True)
class TreeCase:
    """A tree, the formats of C and D, and the launch's arguments by name."""

    name: str
    tree: Value
    d: str = "f32"
    c: str | None = None
    passed: dict[str, Maker] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.name

    def config(self, **changes: Any) -> GemmConfig:
        """The default with this epilogue, and some fields changed."""
        asked = GemmConfig(epilogue=build(self.tree, d=self.d, c=self.c))  # type: ignore[arg-type]
        return asked.replace(**changes)

    def arguments(
        self, rng: np.random.Generator, shape: tuple[int, ...]
    ) -> dict[str, Any]:
        """What a launch of this shape passes."""
        return {name: make(rng, shape) for name, make in self.passed.items()}


def _numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Normal numbers, and some special ones."""
    x = rng.standard_normal(shape, np.float32)
    flat = x.reshape(-1)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40], np.float32)
    flat[rng.integers(0, flat.size, special.size)] = special
    return x


def _row(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return _numbers(rng, shape[-1:])


def _col(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return _numbers(rng, shape[-2:-1])


def _finite(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return rng.standard_normal(shape, np.float32)


def _number(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return float(np.float32(rng.normal()))


def _tensor(dtype: Any) -> Maker:
    return lambda rng, shape: _numbers(rng, shape).astype(dtype)


def _bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.random(shape) < 0.5


def _table(rows: int) -> Maker:
    """Rows of N numbers of BF16."""
    return lambda rng, shape: _numbers(rng, (rows, shape[-1])).astype(
        ml_dtypes.bfloat16
    )


_linear = alpha * acc + beta * c
TREES = (
    TreeCase("scaled", alpha * acc),
    TreeCase("no accumulator", col("x") + row("y"), passed={"x": _col, "y": _row}),
    TreeCase(
        "relu, mask and maxima",
        relu(_linear + row("bias") | relu_mask("positive"))
        | aux("y", "bf16")
        | amax("d"),
        d="f16",
        passed={"bias": _row},
    ),
    TreeCase(
        "sums",
        (alpha * acc | row_sum("rows")) + col("bias")
        | col_sum("columns")
        | total("all"),
        passed={"bias": lambda rng, shape: _finite(rng, shape[-2:-1])},
    ),
    TreeCase(
        "maxima by row and column",
        alpha * acc - row("x") | row_amax("n") | col_amax("m") | aux("y", "f16"),
        d="bf16",
        passed={"x": lambda rng, shape: _finite(rng, shape[-1:])},
    ),
    TreeCase(
        "backward of GELU",
        d_gelu(_linear, aux_load("z", "bf16")) | col_sum("bias"),
        d="bf16",
        passed={"z": _tensor(ml_dtypes.bfloat16), "beta": _number},
    ),
    TreeCase(
        "backward of ReLU",
        d_relu(alpha * acc, mask_load("m")) + d_relu_z(1.0, aux_load("z")),
        passed={"m": _bits, "z": _tensor(np.float32)},
    ),
    TreeCase(
        "residual",
        add(
            silu(col("a") * acc + col("bias")),
            row("b") * clamp(c, -2.0, scalar("most", 2.0)),
        ),
        d="f32",
        c="bf16",
        passed={"a": _col, "b": _row, "bias": _col},
    ),
    TreeCase(
        "gated",
        (sigmoid(alpha * acc) | branch(lambda z: -z / 3.0 | aux("z", "e4m3")))
        * tanh(aux_load("g", "f16"))
        | amax("y_amax"),
        d="f16",
        passed={"g": _tensor(np.float16)},
    ),
    TreeCase(
        "E4M3 out, in and aside",
        (
            (_linear | branch(lambda z: (z | amax("z")) * 300.0 | aux("y", "e4m3")))
            | amax("d")
        )
        * scalar("scale_d"),
        d="e4m3",
        passed={"scale_d": lambda rng, shape: 48.0},
    ),
    TreeCase(
        "E5M2 out, in and aside",
        (_linear | aux("y", "e5m2")) * 3e4 + aux_load("z", "e5m2"),
        d="e5m2",
        c="e5m2",
        passed={"z": _tensor(ml_dtypes.float8_e5m2)},
    ),
    TreeCase(
        "position embedding",
        add_bf16(alpha * acc, embedding("e")) + embedding("f"),
        passed={"e": _table(5), "f": _table(300)},
    ),
    TreeCase(
        "activations",
        gelu(gelu_erf(alpha * acc))
        - divide(hardswish(acc), scalar("s"))
        + leaky_relu(acc, 0.125),
        d="nvfp4",
        passed={"s": _number},
    ),
)
"""Every node of the expression language is in one of them."""
