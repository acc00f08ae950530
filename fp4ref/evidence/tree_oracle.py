"""tree_oracle: the value of a tree on whole matrices, by another road.

Sums and products are made in float64 and rounded once: 53 bits are enough for that.
Formats are those of ml_dtypes. Reductions take whole matrices in the stated order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.gemm.fusion.node import Node
from fp4ref.numerics import activation, fma_f32

F32 = NDArray[np.float32]
_BLOCK = 16
_NAN = np.uint32(0x7FFFFFFF)


@dataclass
class TreeValue:
    """What a tree gives and leaves.

    Attributes
    ----------
    z
        (L, M, N), before it is converted to D's format.
    aux, reductions
        By name.
    """

    z: F32
    aux: dict[str, NDArray[Any]] = field(default_factory=dict)
    reductions: dict[str, F32] = field(default_factory=dict)


def evaluate(
    tree: Node,
    acc: F32,
    c: F32 | None,
    alpha: float,
    arguments: Mapping[str, Any],
    rules: Mapping[str, Callable[..., F32]] | None = None,
) -> TreeValue:
    """Evaluate a tree.

    Parameters
    ----------
    acc, c
        (L, M, N).
    rules
        Functions of nodes that are not of this package, by class name.

    Raises
    ------
    InputError
        A node has no rule.
    """
    found = TreeValue(acc)
    every = {**_FUNCTIONS, **(rules or {})}

    shared: list[F32] = []

    def value(node: Node) -> F32:
        name = type(node).__name__
        if name == "SplitTree":
            shared.append(value(node.inputs[0]))
            value(node.inputs[1])
            return shared.pop()
        inputs = [value(each) for each in node.inputs]
        if name in every:
            return np.asarray(every[name](*inputs))
        if name in _PIPES:
            whole = np.broadcast_to(inputs[0], acc.shape)
            _PIPES[name](found, node, whole)
            return inputs[0]
        return leaf(node, name)

    def leaf(node: Any, name: str) -> F32:
        match name:
            case "AccFetch":
                return acc
            case "SrcFetch":
                assert c is not None
                return c
            case "SplitTreeFetch":
                return shared[-1]
            case "Alpha":
                return np.asarray(alpha, np.float32)
            case "Constant":
                return np.asarray(node.number, np.float32)
            case "ScalarBroadcast":
                number = arguments.get(node.name, node.default)
                return np.asarray(number, np.float32)
            case "RowBroadcast":
                return np.asarray(arguments[node.name], np.float32)
            case "ColBroadcast":
                return np.asarray(arguments[node.name], np.float32)[:, None]
            case "Embedding":
                table = np.asarray(arguments[node.name])
                rows = np.resize(np.arange(len(table)), acc.shape[-2])
                of_bits = table.dtype == np.uint16
                named = table.view(ml_dtypes.bfloat16) if of_bits else table
                return named.astype(np.float32)[rows]
            case "AuxLoad" | "MaskLoad":
                return np.asarray(arguments[node.name]).astype(np.float32)
        raise InputError(f"{name}: the oracle has no rule for it; pass rules")

    found.z = np.broadcast_to(value(tree), acc.shape)
    return found


def _rounded(operation: np.ufunc) -> Callable[..., F32]:
    """Return the operation in float64, rounded once, with the NaN of PTX."""

    def apply(a: F32, b: F32) -> F32:
        with np.errstate(all="ignore"):
            exact = operation(np.float64(a), np.float64(b))
            return _ptx_nan(np.asarray(exact).astype(np.float32))

    return apply


def _ptx_nan(x: F32) -> F32:
    return np.where(np.isnan(x), _NAN.view(np.float32), x)


def _larger(a: F32, b: F32) -> F32:
    """Return the larger one; of two zeros +0, if there is one."""
    first = (a > b) | ((a == b) & ~np.signbit(a))
    return _ptx_nan(np.where(np.isnan(a) | first, a, b))


def _smaller(a: F32, b: F32) -> F32:
    return _ptx_nan(-_larger(-np.asarray(a), -np.asarray(b)))


_add = _rounded(np.add)


def _add_bf16(a: F32, b: F32) -> F32:
    """Round both to BF16, add in float64, and round to BF16 once."""
    x, y = (stored(np.asarray(each), "bf16").astype(np.float64) for each in (a, b))
    with np.errstate(all="ignore"):
        exact = np.asarray(x + y)
        nearest = exact.astype(np.float32)
        # What is inexact in float32 becomes odd there: no second tie comes about.
        off = np.where(np.isfinite(exact), nearest.astype(np.float64) != exact, False)
        bits = nearest.view(np.uint32)
        down = np.abs(nearest.astype(np.float64)) > np.abs(exact)
        odd = np.where(off, (bits - down) | 1, bits).astype(np.uint32)
    return stored(odd.view(np.float32), "bf16").astype(np.float32)


_FUNCTIONS: dict[str, Callable[..., F32]] = {
    "Add": _add,
    "AddBf16": _add_bf16,
    "Subtract": _rounded(np.subtract),
    "Multiply": _rounded(np.multiply),
    "Divide": _rounded(np.divide),
    "Fma": fma_f32,
    "Maximum": _larger,
    "Minimum": _smaller,
    "Relu": activation.relu,
    "Gelu": activation.gelu,
    "GeluErf": activation.gelu_erf,
    "Silu": activation.silu,
    "Sigmoid": activation.sigmoid,
    "Tanh": activation.tanh,
    "Hardswish": activation.hardswish,
    "LeakyRelu": activation.leaky_relu,
    "DGelu": activation.d_gelu,
    "DRelu": activation.d_relu,
    "DReluZ": activation.d_relu_z,
}


_STORED: dict[str, tuple[Any, int]] = {
    "f32": (np.float32, 0x7FFFFFFF),
    "bf16": (ml_dtypes.bfloat16, 0x7FFF),
    "f16": (np.float16, 0x7FFF),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0x7F),
    "e5m2": (ml_dtypes.float8_e5m2, 0x7F),
}
"""Type of a stored number, and the pattern of PTX's NaN in it."""
_MOST = {"e4m3": np.float32(448), "e5m2": np.float32(57344)}
"""Of a format that saturates, infinities too."""


def stored(x: F32, element: str) -> NDArray[Any]:
    """Return numbers in the format of C, D or an aux tensor.

    Parameters
    ----------
    element
        Name of a format without scales.
    """
    dtype, nan = _STORED[element]
    if element in _MOST:
        x = np.clip(x, -_MOST[element], _MOST[element])
    with np.errstate(over="ignore", invalid="ignore"):
        converted = x.astype(dtype)
    codes = converted.view(f"u{converted.itemsize}")
    return np.where(np.isnan(x), codes.dtype.type(nan), codes).view(dtype)


def _store(found: TreeValue, node: Any, x: F32) -> None:
    found.aux[node.name] = stored(x, node.element)


def _mask(found: TreeValue, node: Any, x: F32) -> None:
    found.aux[node.name] = np.isnan(x) | (x >= 0)


def _maximum(axes: tuple[int, ...]) -> Callable[[TreeValue, Any, F32], None]:
    def reduce(found: TreeValue, node: Any, x: F32) -> None:
        largest = np.abs(x).max(axis=axes)  # a NaN stays
        found.reductions[node.name] = _ptx_nan(largest)

    return reduce


def _in_order(x: F32, axis: int) -> F32:
    """Add along an axis, the first ones first."""
    parts = np.moveaxis(x, axis, 0)
    total: F32 = parts[0]
    for part in parts[1:]:
        total = _add(total, part)
    return total


def _blocks(x: F32, axis: int) -> F32:
    """Cut an axis into blocks of 16, the last one filled with +0."""
    pad = [(0, 0)] * x.ndim
    pad[axis] = (0, -x.shape[axis] % _BLOCK)
    whole = np.pad(x, pad)
    shape = (*whole.shape[:axis], -1, _BLOCK, *whole.shape[axis + 1 :])
    return whole.reshape(shape)


def _halves(x: F32, axis: int) -> F32:
    """Add 16 parts: the first half to the second, until one is left."""
    parts = np.moveaxis(x, axis, 0)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = _add(parts[:half], parts[half:])
    whole: F32 = parts[0]
    return whole


def _row_sum(found: TreeValue, node: Any, x: F32) -> None:
    of_blocks = _halves(_blocks(x, 1), 2)  # (L, blocks, N)
    found.reductions[node.name] = _in_order(_in_order(of_blocks, 1), 0)


def _col_sum(found: TreeValue, node: Any, x: F32) -> None:
    of_blocks = _halves(_blocks(x, 2), 3)  # (L, M, blocks)
    found.reductions[node.name] = _in_order(_in_order(of_blocks, 2), 0)


def _total(found: TreeValue, node: Any, x: F32) -> None:
    of_rows = _halves(_blocks(x, 2), 3)  # (L, M, blocks)
    of_blocks = _halves(_blocks(of_rows, 1), 2)  # (L, blocks, blocks)
    of_batches = _in_order(_in_order(of_blocks, 2), 1)
    found.reductions[node.name] = _in_order(of_batches, 0)


_PIPES: dict[str, Callable[[TreeValue, Any, F32], None]] = {
    "AuxStore": _store,
    "ReluMask": _mask,
    "ScalarMaximum": _maximum((0, 1, 2)),
    "RowMaximum": _maximum((0, 1)),
    "ColMaximum": _maximum((0, 2)),
    "RowSum": _row_sum,
    "ColSum": _col_sum,
    "ScalarSum": _total,
}
