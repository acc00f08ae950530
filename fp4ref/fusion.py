"""fusion: an epilogue's formula, written as one.

::

    from fp4ref.fusion import acc, alpha, amax, aux, beta, build, c, relu, row

    tree = relu(alpha * acc + beta * c + row("bias")) | aux("mask") | amax("d")
    config = fp4ref.GemmConfig(epilogue=build(tree, d="f16"))

`build` makes an epilogue of a tree; `cutlass_operation` makes one of the name that
CUTLASS has for it. Each function makes a node, a file of `fp4ref.gemm.fusion` with a
twin in ``kernel/gemm/fusion``.
"""

from fp4ref.gemm.fusion.expression import (
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
    fma,
    gelu,
    gelu_erf,
    hardswish,
    leaky_relu,
    mask_load,
    maximum,
    minimum,
    multiply,
    operation,
    relu,
    relu_mask,
    row,
    row_amax,
    row_sum,
    scalar,
    sigmoid,
    silu,
    subtract,
    tanh,
    total,
)
from fp4ref.gemm.fusion.operations import operation as cutlass_operation

__all__ = [
    "acc",
    "add",
    "add_bf16",
    "alpha",
    "amax",
    "aux",
    "aux_load",
    "beta",
    "branch",
    "build",
    "c",
    "clamp",
    "col",
    "col_amax",
    "col_sum",
    "cutlass_operation",
    "d_gelu",
    "d_relu",
    "d_relu_z",
    "divide",
    "embedding",
    "fma",
    "gelu",
    "gelu_erf",
    "hardswish",
    "leaky_relu",
    "mask_load",
    "maximum",
    "minimum",
    "multiply",
    "operation",
    "relu",
    "relu_mask",
    "row",
    "row_amax",
    "row_sum",
    "scalar",
    "sigmoid",
    "silu",
    "subtract",
    "tanh",
    "total",
]
