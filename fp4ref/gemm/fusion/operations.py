"""operations: CUTLASS's named fusion operations, as trees.

Source: ``cutlass/epilogue/fusion/operations.hpp`` for the names and formulas, and
``sm90_callbacks_tma_warpspecialized.hpp`` for the order of rounding. The scales of an
operation with block scales are D's own: the tree is that of the operation without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fp4ref.errors import ConfigError
from fp4ref.gemm.config import Epilogue, Format, SourceFormat
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
    col_sum,
    d_gelu,
    fma,
    relu,
    row,
    scalar,
)
from fp4ref.numerics.elements import BLOCKS

Activation = Callable[[Value], Value]
_BIAS: Mapping[str, Callable[[str], Value]] = {"Row": col, "Col": row}
"""A bias for each row of D is a column, broadcast along the rows."""
_FP8 = ("e4m3", "e5m2")
"""CUTLASS's ``is_fp8_v``."""


def _linear(bias: Value | None = None) -> Value:
    scaled = alpha * acc if bias is None else fma(alpha, acc, bias)
    return fma(beta, c, scaled)


def _vectors(kind: str, activation: Activation, residual: bool = False) -> Value:
    """Return alpha, beta and bias for each row or column."""
    vector = _BIAS[kind]
    scaled = fma(vector("alphas"), acc, vector("bias"))
    if residual:
        return fma(vector("betas"), c, activation(scaled))
    return activation(fma(vector("betas"), c, scaled))


def _scaled(kind: str) -> Value:
    """Return (beta * scale_c) * C + (alpha * scale_a * scale_b * acc + bias)."""
    factor = alpha * scalar("scale_a") * scalar("scale_b")
    scaled = fma(factor, acc, _BIAS[kind]("bias"))
    return fma(beta * scalar("scale_c"), c, scaled)


def _scaled_out(z: Value, d: Format) -> Value:
    """Return D before its conversion: only an FP8 D has a scale."""
    return z * scalar("scale_d") if d in _FP8 else z


def _amax_aux(
    kind: str, activation: Activation, element: SourceFormat, d: Format
) -> Value:
    """Return the scaled operation; what is FP8 has a maximum, taken unscaled."""
    z = _scaled(kind)
    if element in _FP8:
        z = z | branch(
            lambda z: (z | amax("amax_aux")) * scalar("scale_aux") | aux("aux", element)
        )
    else:
        z = z | aux("aux", element)
    y = activation(z)
    return _scaled_out(y | amax("amax_d") if d in _FP8 else y, d)


def _gradient(d_activation: Callable[..., Value], element: SourceFormat) -> Value:
    return d_activation(_linear(), aux_load("aux", element))


Maker = Callable[..., Value]


def _makers() -> dict[str, Maker]:
    """Return the trees by CUTLASS's name; each takes what it needs of the options."""
    makers: dict[str, Maker] = {
        "ScaledAcc": lambda **_: alpha * acc,
        "LinearCombination": lambda **_: _linear(),
        "LinearCombinationGroupedWgrad": lambda **_: _linear(),
        "LinCombEltAct": lambda f, **_: f(_linear()),
        "LinCombDeEltAct": lambda df, element, **_: _gradient(df, element),
        "LinCombDeEltActDePerRowBias": lambda df, element, **_: (
            _gradient(df, element) | col_sum("dbias")
        ),
        "PerColResAddPerColBiasEltAct": lambda f, **_: _vectors("Col", f, True),
        "LinCombBlockScaleFactor": lambda **_: _linear(),
        "LinCombEltActBlockScaleFactor": lambda f, **_: f(_linear()),
    }
    for kind in _BIAS:
        makers |= _of_bias(kind)
    return makers


def _of_bias(kind: str) -> dict[str, Maker]:
    """Return those that exist for a bias of rows and for one of columns."""
    bias = _BIAS[kind]("bias")
    name = f"Per{kind}Bias"
    return {
        f"LinComb{name}": lambda **_: _linear(bias),
        f"LinComb{name}EltAct": lambda f, **_: f(_linear(bias)),
        f"LinComb{name}EltActAux": lambda f, element, **_: f(
            _linear(bias) | aux("aux", element)
        ),
        f"Per{kind}LinComb{name}EltAct": lambda f, **_: _vectors(kind, f),
        f"ScaledLinComb{name}EltAct": lambda f, d, **_: _scaled_out(
            f(_scaled(kind)), d
        ),
        f"ScaledLinComb{name}EltActAmaxAux": lambda f, element, d, **_: _amax_aux(
            kind, f, element, d
        ),
        f"LinComb{name}BlockScaleFactor": lambda **_: _linear(bias),
        f"LinComb{name}EltActBlockScaleFactor": lambda f, **_: f(_linear(bias)),
    }


OPERATIONS: Mapping[str, Maker] = MappingProxyType(_makers())
"""The 25 that this kernel computes."""
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "LinCombTopKSoftmaxCol": "a softmax of the largest values of a column",
        "Softmax": "CUTLASS has no such operation",
        "BinaryMask": "CUTLASS has no such operation",
    }
)
"""What is asked for and not computed, with the reason."""


def operation(
    name: str,
    *,
    activation: Activation = relu,
    d_activation: Callable[..., Value] = d_gelu,
    element: SourceFormat = "bf16",
    d: Any = None,
    groups_per_tile: int = 1,
    **more: Any,
) -> Epilogue:
    """Return the epilogue of one of CUTLASS's operations.

    Parameters
    ----------
    name
        As in ``operations.hpp``.
    activation, d_activation
        Functions of `fp4ref.gemm.fusion.expression`, for the operations that have one.
    element
        Format of the aux tensor, where there is one. In a scaled operation one of FP8
        has ``scale_aux`` and the maximum ``amax_aux``.
    d
        Format of D; None is float16, or NVFP4 for an operation with block scales. In a
        scaled operation one of FP8 has ``scale_d``, and ``amax_d`` where CUTLASS has.
    groups_per_tile
        Of ``LinearCombinationGroupedWgrad``: 1, with which it moves no accumulator.
    more
        Other fields of `Epilogue`.

    Raises
    ------
    ConfigError
        There is no such operation here, or D has no scales where it needs them.
    """
    if name not in OPERATIONS:
        why = REFUSED.get(name, "no operation of CUTLASS has this name")
        known = ", ".join(sorted(OPERATIONS))
        raise ConfigError(
            f"fusion operation {name!r:.60}: {why}. Source: CUTLASS "
            f"operations.hpp. This kernel computes {known}"
        )
    if groups_per_tile != 1:
        raise ConfigError(
            f"groups_per_tile={groups_per_tile!r:.20}: CUTLASS moves the accumulators "
            "of SM90's register fragment, which this kernel has not. Use "
            "groups_per_tile=1"
        )
    for what, function in (("activation", activation), ("d_activation", d_activation)):
        if not callable(function):
            raise ConfigError(
                f"{what}={function!r:.40}: a function of fp4ref.fusion is needed, as "
                "relu. Use one without quotes"
            )
    has_scales = name.endswith("BlockScaleFactor")
    chosen = ("nvfp4" if has_scales else "f16") if d is None else d
    if has_scales != (isinstance(chosen, str) and chosen in BLOCKS):
        raise ConfigError(
            f"{name} with d={chosen!r:.20}: D has block scales only with an operation "
            "for them. Use d=None, or the operation of the other name"
        )
    tree = OPERATIONS[name](f=activation, df=d_activation, element=element, d=chosen)
    return build(tree, d=chosen, **more)  # type: ignore[arg-type]
