"""tree_bound: a tree in float64, and how far float32 may be from it, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.fusion.node import Node

F64 = NDArray[np.float64]
UNIT = 2.0**-23
"""Twice what rounding to float32 costs, relative to the result."""


class Near(NamedTuple):
    """A value, and the largest error of what float32 has for it."""

    value: F64
    error: F64


class Function(NamedTuple):
    """A function of one argument, its largest slope and its own largest error."""

    of: Callable[[F64], F64]
    slope: float
    error: float


_erf = np.vectorize(math.erf, otypes=[np.float64])
_ROOT = math.sqrt(2 / math.pi)


def _gelu_tanh(x: F64) -> F64:
    return x / 2 * (1 + np.tanh(_ROOT * (x + 0.044715 * x**3)))


def _sigmoid(x: F64) -> F64:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -700, 700))))


FUNCTIONS = {
    "Relu": Function(lambda x: np.maximum(x, 0), 1, 0),
    "Gelu": Function(_gelu_tanh, 1.13, 2e-6),
    "GeluErf": Function(lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))), 1.13, 2e-6),
    "Silu": Function(lambda x: x * _sigmoid(x), 1.1, 2e-6),
    "Sigmoid": Function(_sigmoid, 0.25, 3e-7),
    "Tanh": Function(np.tanh, 1, 3e-7),
    "Hardswish": Function(lambda x: x * np.clip(x + 3, 0, 6) / 6, 1.5, 2e-6),
}


def d_gelu(dy: F64, z: F64) -> F64:
    """The derivative of GELU's tanh form, as CUTLASS has it."""
    t = np.tanh(0.7978845608028654 * z * (1 + 0.044715 * z * z))
    grown = 0.7978845608028654 + 0.1070322243 * z * z
    return np.asarray(dy * (z / 2 * (1 - t * t) * grown + (1 + t) / 2))


def near(
    tree: Node, acc: F64, c: F64 | None, alpha: float, passed: Mapping[str, Any]
) -> Near:
    """Evaluate a tree of an operation in float64."""

    def product(a: Near, b: Near) -> Near:
        value = a.value * b.value
        carried = abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error
        return Near(value, carried + UNIT * abs(value))

    def sum_of(a: Near, b: Near) -> Near:
        value = a.value + b.value
        return Near(value, a.error + b.error + UNIT * abs(value))

    def exact(value: Any) -> Near:
        array = np.asarray(value).astype(np.float64)
        return Near(array, np.zeros_like(array))

    def of(node: Any) -> Near:
        name = type(node).__name__
        if name == "SplitTree":
            return of(node.a)
        inputs = [of(each) for each in node.inputs]
        if name in FUNCTIONS:
            of_one = FUNCTIONS[name]
            (x,) = inputs
            own = of_one.error * np.maximum(1, abs(x.value))
            return Near(of_one.of(x.value), of_one.slope * x.error + own)
        match name:
            case "Multiply":
                return product(*inputs)
            case "Add":
                return sum_of(*inputs)
            case "Fma":
                return sum_of(product(*inputs[:2]), inputs[2])
            case "DGelu":
                dy, z = inputs
                value = d_gelu(dy.value, z.value)
                return Near(value, 1.2 * dy.error + 1e-5 * (1 + abs(dy.value)))
            case "AccFetch":
                return exact(acc)
            case "SrcFetch":
                return exact(c)
            case "Alpha":
                return exact(alpha)
            case "ScalarBroadcast":
                return exact(passed.get(node.name, node.default))
            case "RowBroadcast" | "AuxLoad":
                return exact(passed[node.name])
            case "ColBroadcast":
                return exact(passed[node.name][:, None])
        return inputs[0]  # a store or a reduction hands its value on

    return of(tree)
