"""predict: D and SFD of a reading, at some rows and columns only."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.tree_oracle import stored
from fp4ref.evidence.triage.case import Case, one_nan
from fp4ref.evidence.triage.reading import I64, Order, Reading, Side, through
from fp4ref.numerics import (
    add_f32,
    encode_bf16,
    encode_e2m1,
    encode_f16,
    fma_f32,
    gelu,
    matmul_block_scaled,
    mul_f32,
    quantize_blocks,
    relu,
    silu,
)
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.product import matmul, require_pair

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Codes = NDArray[Any]
ACTIVATIONS = {"relu": relu, "gelu": gelu, "silu": silu}
_STORE: dict[str, Callable[[F32], Codes]] = {
    "bf16": encode_bf16,
    "f16": encode_f16,
    "e4m3": lambda z: stored(z, "e4m3").view(np.uint8),
    "e5m2": lambda z: stored(z, "e5m2").view(np.uint8),
}


class Output(NamedTuple):
    """Codes of D (rows, columns), and of SFD (rows, blocks) if D has scales."""

    d: Codes
    sfd: NDArray[np.uint8] | None


def read(q: BlockScaled, side: Side, rows: I64) -> BlockScaled:
    """Return the rows of an operand as a kernel reads them."""
    cols, k = q.scales.shape[1], q.shape[1]
    codes, scales = q.codes[rows], q.scales[rows]
    if side.code_maps:
        row, at = through(side.code_maps, rows[:, None], np.arange(k)[None])
        codes = np.where(row < 0, 0, q.codes[row, at % k])
    if side.scale_maps:
        row, at = through(side.scale_maps, rows[:, None], np.arange(cols)[None])
        scales = np.where(row < 0, 0, q.scales[row, at % cols])
    return BlockScaled(
        codes.astype(np.uint8), scales.astype(np.uint8), q.format, q.scale_format
    )


def accumulators(case: Case, reading: Reading, rows: I64, columns: I64) -> F32:
    """Return the sums of the products (rows, columns)."""
    a, b = read(case.a, reading.a, rows), read(case.b, reading.b, columns)
    if reading.order not in ("mma", "any"):
        return _in_float32(a, b, reading.order)
    if reading.splits == 1:
        return _product(a, b)
    return reduce(add_f32, (_product(*both) for both in _slices(case, a, b, reading)))


def _product(a: BlockScaled, b: BlockScaled) -> F32:
    """Return the product by the integer model, which is quick where tiles are small."""
    if require_pair(a, b).name != "mxf4nvf4":
        return matmul(a, b)
    return matmul_block_scaled(
        *(a.codes, b.codes, a.scales, b.scales),
        scale_format=a.scale_format,
        vec_size=a.vec_size,
    )


def split_starts(k: int, k_tile: int, splits: int) -> list[int]:
    """Return where each slice of K starts, and at last K: whole k-tiles."""
    k_tiles = np.arange(0, k, k_tile)
    parts = np.array_split(k_tiles, min(splits, len(k_tiles)))
    return [*(int(part[0]) for part in parts), k]


def _slices(
    case: Case, a: BlockScaled, b: BlockScaled, reading: Reading
) -> list[tuple[BlockScaled, BlockScaled]]:
    starts = split_starts(case.k, case.k_tile, reading.splits)
    return [
        (_part(a, first, last), _part(b, first, last))
        for first, last in pairwise(starts)
    ]


def _part(q: BlockScaled, first: int, last: int) -> BlockScaled:
    scales = q.scales[:, first // q.vec_size : last // q.vec_size]
    return BlockScaled(q.codes[:, first:last], scales, q.format, q.scale_format)


def _in_float32(a: BlockScaled, b: BlockScaled, order: Order) -> F32:
    """Return the sums as float32 units make them, rounded to nearest."""
    x, y = a.dequantize(np.float64), b.dequantize(np.float64)
    with np.errstate(all="ignore"):
        if order == "float64":
            return (x @ y.T).astype(np.float32)
        step = 1 if order == "one by one" else a.vec_size
        acc = np.zeros((len(x), len(y)), np.float32)
        for k in range(0, x.shape[1], step):
            acc += (x[:, k : k + step] @ y[:, k : k + step].T).astype(np.float32)
    return acc


def exact(case: Case, reading: Reading, rows: I64, columns: I64) -> tuple[F64, F64]:
    """Return the sums in float64, and the norms of the products."""
    x = read(case.a, reading.a, rows).dequantize(np.float64)
    y = read(case.b, reading.b, columns).dequantize(np.float64)
    with np.errstate(all="ignore"):
        return x @ y.T, np.sqrt((x * x) @ (y * y).T)


def formula(case: Case, reading: Reading, acc: F32, rows: I64, columns: I64) -> F32:
    """Return z, what D is before it is rounded."""
    alpha, epilogue = np.float32(reading.alpha), case.config.epilogue
    bias = _bias(case, reading, rows, columns)
    if bias is None:
        z = mul_f32(alpha, acc)
    elif reading.bias == "scaled":
        z = mul_f32(alpha, add_f32(acc, bias))
    else:
        z = fma_f32(alpha, acc, bias)
    if case.c is not None:
        z = fma_f32(np.float32(epilogue.beta), case.c[np.ix_(rows, columns)], z)
    else:
        z = add_f32(z, np.float32(0))
    apply = ACTIVATIONS.get(epilogue.activation or "")
    return apply(z) if apply else z


def _bias(case: Case, reading: Reading, rows: I64, columns: I64) -> F32 | None:
    if case.bias is None or reading.bias == "missing":
        return None
    if reading.bias == "row":
        return case.bias[rows % case.n][:, None]
    return case.bias[columns][None]


def output(case: Case, reading: Reading, rows: I64, columns: I64) -> Output:
    """Return D and SFD; with an nvfp4 D the columns come in whole blocks."""
    acc = accumulators(case, reading, rows, columns)
    return converted(case, reading, formula(case, reading, acc, rows, columns))


def converted(case: Case, reading: Reading, z: F32) -> Output:
    """Return z in D's format."""
    if case.format == "f32":
        return Output(one_nan(np.ascontiguousarray(z).view(np.uint32), "f32"), None)
    if case.format != "nvfp4":
        return Output(one_nan(_STORE[case.format](z), case.format), None)
    n = z.shape[1]
    blocks = np.pad(z, ((0, 0), (0, -n % NVFP4_VEC_SIZE)))
    codes, scales = quantize_blocks(
        blocks,
        norm=reading.norm,
        scale_format=case.config.epilogue.sfd_format,
        vec_size=NVFP4_VEC_SIZE,
    )
    if reading.unrounded:
        codes = _with_unrounded(blocks)
    return Output(codes[:, :n], scales)


def _with_unrounded(z: F32) -> NDArray[np.uint8]:
    """Return codes of ``6 * z / amax``: the scale before it was rounded."""
    blocks = z.reshape(len(z), -1, NVFP4_VEC_SIZE)
    with np.errstate(all="ignore"):
        amax = np.abs(blocks).max(axis=-1, keepdims=True)
        scale = amax * (np.float32(1) / np.float32(6))
        scaled = np.where(amax == 0, np.float32(0), blocks / scale)
    return encode_e2m1(scaled).reshape(z.shape)
