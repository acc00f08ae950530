"""oracle: the answer by another road, with no tile, stage or descriptor in it.

`expected` applies the arithmetic to whole matrices: every bit of a run must equal it.
`bound` compares with the float64 product of the dequantised operands, where the
difference may be no larger than the datapath's own truncation allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import (
    require_array,
    require_finite_float32,
    require_instance,
)
from fp4ref.errors import InputError
from fp4ref.evidence import fused_dot_add
from fp4ref.evidence.fused_dot_add import fused_product
from fp4ref.evidence.tree_oracle import evaluate, stored
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.launch_arguments import require_known
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.plan import plan
from fp4ref.gemm.void_d import void_d
from fp4ref.numerics import (
    add_f32,
    encode_bf16,
    encode_f16,
    fma_f32,
    gelu,
    matmul_block_scaled,
    mul_f32,
    quantize_blocks,
    relu,
    silu,
)
from fp4ref.numerics.formats import require_float32
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.product import require_pair
from fp4ref.tensors.unscaled import Operand, OperandLike, require_operand

FRACTION_BITS = 35
"""Bits that the MMA keeps below the largest exponent (MMA-Sim, GST-FDPA)."""


@dataclass(frozen=True)
class Expected:
    """D and SFD that a run must have, bit for bit, and what its tree leaves.

    The scales lie as those of `fp4ref.Run`: along M where D does.
    """

    d: NDArray[Any]
    sfd: NDArray[np.uint8] | None
    aux: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reductions: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def expected(
    a: OperandLike,
    b: OperandLike,
    c: NDArray[Any] | None = None,
    bias: NDArray[np.float32] | None = None,
    config: GemmConfig | None = None,
    alpha: float | None = None,
    arguments: Mapping[str, Any] | None = None,
    rules: Mapping[str, Callable[..., NDArray[np.float32]]] | None = None,
) -> Expected:
    """Return D and SFD of the whole problem, from whole products and `quantize_blocks`.

    The product is the integer model's of packed E2M1, and `fused_product` of all
    others. `alpha` is None for 1 over the product of the global scales, as in
    `fp4ref.run`; so are `arguments`. `rules` are functions of a tree's nodes that are
    not of this package, by class name.
    """
    config = GemmConfig() if config is None else config
    require_instance(
        config, "config", GemmConfig, "For example GemmConfig.nvfp4(d_format='bf16')"
    )
    a, b = require_operand(a, "a"), require_operand(b, "b")
    accumulators = _sum_of_splits(a, b, config.tiles.splits)
    source = None if c is None else _float32_of_c(c, config, accumulators.shape)
    if bias is not None:
        bias = require_float32(bias, "bias")
        of_rows = isinstance(config.epilogue.fusion, Node)
        lengths = accumulators.shape[-2:] if of_rows else accumulators.shape[-1:]
        if not any(bias.shape == (length,) for length in lengths):
            raise InputError(
                f"bias of shape {bias.shape}; need {accumulators.shape[-1:]}"
            )
    if alpha is not None:
        alpha = require_finite_float32(alpha, "alpha")
    else:
        alpha = 1.0 / (float(a.global_scale or 1) * float(b.global_scale or 1))
    for name, table in (("arguments", arguments), ("rules", rules)):
        if table is not None:
            require_instance(table, name, dict, "For example {'beta': 0.5}")
    tree = config.epilogue.fusion
    if isinstance(tree, Node):
        given = dict(arguments or {}) | ({} if bias is None else {"bias": bias})
        acc = accumulators
        return _of_tree(tree, acc, source, alpha, given, config, rules or {})
    require_known(plan(config).fusion, arguments or {})
    alpha32 = np.float32(alpha)
    if bias is None:
        z = mul_f32(alpha32, accumulators)
    else:
        z = fma_f32(alpha32, accumulators, bias)
    if config.epilogue.beta != 0 and source is not None:
        z = fma_f32(np.float32(config.epilogue.beta), source, z)
    else:
        z = add_f32(z, np.float32(0))
    match config.epilogue.activation:
        case "relu":
            z = relu(z)
        case "gelu":
            z = gelu(z)
        case "silu":
            z = silu(z)
    return _converted(z, config)


def _of_tree(
    tree: Node,
    accumulators: NDArray[np.float32],
    source: NDArray[np.float32] | None,
    alpha: float,
    arguments: Mapping[str, Any],
    config: GemmConfig,
    rules: Mapping[str, Callable[..., NDArray[np.float32]]],
) -> Expected:
    """Return what a tree gives and leaves; a bias may be of rows or columns."""
    batched = accumulators.ndim == 3
    require_known(tree, arguments)
    acc = accumulators if batched else accumulators[None]
    c = source if source is None or batched else source[None]
    found = evaluate(tree, acc, c, alpha, arguments, rules)
    aux = {name: x if batched else x[0] for name, x in found.aux.items()}
    of_d = _converted(found.z if batched else found.z[0], config)
    return replace(of_d, aux=aux, reductions=found.reductions)


def _converted(z: NDArray[np.float32], config: GemmConfig) -> Expected:
    """Return z in D's format, with the scales of its blocks."""
    match config.epilogue.d_format:
        case None:
            return Expected(void_d(), None)
        case "f32":
            return Expected(z, None)
        case "bf16":
            return Expected(encode_bf16(z).view(ml_dtypes.bfloat16), None)
        case "f16":
            return Expected(encode_f16(z).view(np.float16), None)
        case "e4m3" | "e5m2" as name:
            return Expected(stored(z, name), None)
    if config.epilogue.store == "plain":
        return Expected(*_blocks(z, config))
    codes, scales = _blocks(np.swapaxes(z, -1, -2), config)
    return Expected(np.swapaxes(codes, -1, -2), np.swapaxes(scales, -1, -2))


def _blocks(
    z: NDArray[np.float32], config: GemmConfig
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the codes, and a scale for 16 of them along the last dimension."""
    n = z.shape[-1]
    pad = [(0, 0)] * (z.ndim - 1) + [(0, -n % NVFP4_VEC_SIZE)]
    codes, scales = quantize_blocks(
        np.pad(z, pad),
        norm=config.epilogue.norm_constant,
        scale_format=config.epilogue.sfd_format,
        vec_size=NVFP4_VEC_SIZE,
    )
    return codes[..., :n], scales


K_TILE_NBYTES = 128
"""K of a k-tile in bytes of an operand's row: the span of its swizzle."""


def _sum_of_splits(a: Operand, b: Operand, splits: int) -> NDArray[np.float32]:
    """Return the accumulators of split-K: each split's own, added one after another.

    K is cut at multiples of a k-tile, as evenly as possible and the longer parts
    first; empty parts add nothing. The order is that of K.
    """
    k_tile = K_TILE_NBYTES * 8 // require_pair(a, b).container_bits
    k_tiles = np.arange(0, a.codes.shape[-1], k_tile)
    parts = np.array_split(k_tiles, min(splits, len(k_tiles)))
    ends = [(int(part[0]), int(part[-1]) + k_tile) for part in parts]
    shares = (_accumulators(_columns(a, *end), _columns(b, *end)) for end in ends)
    return reduce(add_f32, shares)


def _columns(q: Operand, first: int, last: int) -> Operand:
    """Return columns `first` to `last` - 1 of K, with the scales of their blocks."""
    codes = q.codes[..., first:last]
    if not isinstance(q, BlockScaled):
        return replace(q, codes=codes)
    blocks = slice(first // q.vec_size, -(-last // q.vec_size))
    return replace(q, codes=codes, scales=q.scales[..., blocks])


def _accumulators(a: Operand, b: Operand) -> NDArray[np.float32]:
    """Return the accumulators after the last instruction.

    Without BLAS, by which the machine's own MMA multiplies.
    """
    kind = require_pair(a, b)
    if kind.name != "mxf4nvf4":
        return fused_product(a, b, kind)
    assert isinstance(a, BlockScaled)
    assert isinstance(b, BlockScaled)
    return _of_packed_e2m1(a, b)


def _of_packed_e2m1(a: BlockScaled, b: BlockScaled) -> NDArray[np.float32]:
    lead = a.codes.shape[:-2]
    d = np.empty((*lead, a.codes.shape[-2], b.codes.shape[-2]), np.float32)
    for i in np.ndindex(*lead):
        d[i] = matmul_block_scaled(
            *(a.codes[i], b.codes[i], a.scales[i], b.scales[i]),
            scale_format=a.scale_format,
            vec_size=a.vec_size,
        )
    return d


_C_DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


def _float32_of_c(
    c: object, config: GemmConfig, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """Return C as float32; bf16 may be given as its uint16 bits.

    Raises
    ------
    InputError
        Another type than `config.epilogue.c_format`, or another shape than D.
    """
    array = require_array(c, "c")
    need = _C_DTYPES[config.epilogue.c_format or "f32"]
    if config.epilogue.c_format == "bf16" and array.dtype == np.uint16:
        array = array.view(ml_dtypes.bfloat16)
    if array.dtype != need or array.shape not in (shape, (1, *shape)):
        raise InputError(
            f"c is {array.dtype} {array.shape}; give {need} {shape} (c_format "
            f"{config.epilogue.c_format!r}; bf16 also as its uint16 bits)"
        )
    return array.astype(np.float32).reshape(shape)


@dataclass(frozen=True)
class Bound:
    """Accumulators against float64.

    Attributes
    ----------
    exact
        A @ B.T of the dequantised codes and block scales in float64.
    allowed
        Largest difference that the datapath can make, per element.
    worst_ratio
        Largest |difference| / allowed; at most 1 if the arithmetic is right.
        Infinite if a NaN is missing, or is where none belongs.
    """

    exact: NDArray[np.float64]
    allowed: NDArray[np.float64]
    worst_ratio: float

    @property
    def holds(self) -> bool:
        """Whether every element is within its bound."""
        return self.worst_ratio <= 1.0


def bound(a: OperandLike, b: OperandLike, accumulators: NDArray[np.float32]) -> Bound:
    """Bound the accumulators' distance from the float64 product.

    A NaN scale makes its row or column NaN, and nothing else: an accumulator that is
    NaN where the float64 product is not, or the other way round, is beyond any bound.
    Accumulators are finite otherwise, as with UE4M3 scales.

    One K=64 instruction truncates each of its five terms 35 bits below the largest
    exponent e, and its sum once to 24 bits. With P the sum of all |a * b| (scales
    included), every partial sum and every term is at most P in magnitude, so

    - truncating the sum costs less than 2^-23 P (or 2^-149 below the normal range);
    - aligning costs less than 5 * 2^(e - 35). The exponent of a group is the sum of its
      scales' exponents, and that of C is at most log2 P, so 2^e <= max(2^s, P), where
      2^s is at most the product of the largest scales of the row and of the column.

    The other kinds have K + 1 terms in an instruction of K, are cut 25 bits below the
    largest exponent, and take the exponents of the elements too; one of a zero is -133.

    The float64 product itself is off by at most K * 2^-53 * P.
    """
    a, b = require_operand(a, "a"), require_operand(b, "b")
    kind = require_pair(a, b)
    accumulators = require_float32(accumulators, "accumulators")
    x, y = _values(a), np.swapaxes(_values(b), -1, -2)
    k = x.shape[-1]
    with np.errstate(invalid="ignore"):
        exact = x @ y
        magnitude = np.abs(x) @ np.abs(y)
    steps, terms, kept = -(-k // kind.k), 5, FRACTION_BITS
    if kind.name == "mxf4nvf4":
        one_sided = _largest_scale(a), _largest_scale(b)
    else:
        terms, kept = kind.k + 1, fused_dot_add.FRACTION_BITS
        one_sided = _largest_exponent(a), _largest_exponent(b)
    scale = one_sided[0][..., :, None] * one_sided[1][..., None, :]
    largest = np.maximum(scale, magnitude * (1 + 2.0**-20))
    truncation = np.maximum(2.0**-23 * magnitude * (1 + 2.0**-20), 2.0**-149)
    alignment = terms * 2.0**-kept * largest
    allowed = steps * (truncation + alignment) + k * 2.0**-53 * magnitude
    if accumulators.shape != exact.shape:
        raise InputError(
            f"accumulators of shape {accumulators.shape}; need {exact.shape}"
        )
    nan = np.isnan(exact)
    if not np.array_equal(np.isnan(accumulators), nan):
        return Bound(exact, allowed, float("inf"))
    difference = np.abs(accumulators.astype(np.float64) - exact)
    ratio = (difference / allowed).max(initial=0, where=~nan)
    return Bound(exact, allowed, float(ratio))


def _values(q: Operand) -> NDArray[np.float64]:
    """Return code * block scale in float64, without the global scale."""
    return q.dequantize(np.float64) * float(q.global_scale or 1)


def _largest_exponent(q: Operand) -> NDArray[np.float64]:
    """Return 2^e for the largest exponent of each row, at least that of a zero."""
    exponent = fused_dot_add.values(q).exponent.max(axis=-1)
    largest: NDArray[np.float64] = np.exp2(
        np.maximum(exponent, fused_dot_add.ZERO_EXPONENT / 2)
    )
    return largest


def _largest_scale(q: Operand) -> NDArray[np.float64]:
    """Largest block scale of each row, (..., M)."""
    assert isinstance(q, BlockScaled)  # of packed E2M1
    largest: NDArray[np.float64] = (
        q.scale_format.decode(q.scales).astype(np.float64).max(axis=-1)
    )
    return largest
