"""other_matmuls: what the matrix products of other_texts.toml are launched with.

A and B are whole numbers from -4 to 4 in BF16, or all codes of E2M1 with powers of two
as scales. Every sum of theirs is exact in float32, so the product has one right value
in BF16 or FP16: every bit is compared, whatever the order of sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

BF16 = np.dtype(ml_dtypes.bfloat16)
_SWIZZLES = {128: SwizzleMode.B128}
"""By bytes of a panel's row; none otherwise."""
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
_E4M3 = {0.5: 0x30, 1.0: 0x38, 2.0: 0x40, 4.0: 0x48}
Launched = tuple[list[Any], dict[int, tuple[NDArray[np.float64], float]]]
"""Arguments, and which of them holds what afterwards, and within which bound."""


@dataclass(frozen=True)
class Mapped:
    """An array that the kernel reads through a tensor map.

    Attributes
    ----------
    array
        Shape (rows, bytes of a row), or elements of a row.
    panel, box
        Columns of a panel, and rows and columns of a box.
    rank
        2 for one panel a copy, 3 for as many as the box has.
    type
        Of an element.
    alignment
        Bytes, of the map among the parameters: 128 by nvcc, 64 by CuTe DSL.
    """

    array: NDArray[Any]
    panel: int
    box: tuple[int, int]
    rank: int
    type: DataType = DataType.BFLOAT16
    alignment: int = 128

    def at(self, address: int) -> TensorMap:
        """Return the map, as its author's host code makes it."""
        rows, row_nbytes = self.array.shape[0], self.array[0].nbytes
        columns = 8 * row_nbytes // self.type.bits
        panel_nbytes = self.panel * self.type.bits // 8
        if self.rank == 2:
            dims: tuple[int, ...] = (columns, rows)
            strides: tuple[int, ...] = (row_nbytes,)
            box: tuple[int, ...] = (self.panel, self.box[0])
        else:
            dims = (self.panel, rows, columns // self.panel)
            strides = (row_nbytes, panel_nbytes)
            box = (self.panel, self.box[0], self.box[1] // self.panel)
        swizzle = _SWIZZLES.get(panel_nbytes, SwizzleMode.NONE)
        return TensorMap(self.type, address, dims, strides, box, swizzle=swizzle)


def product(spec: Mapping[str, Any]) -> Launched:
    """Return the launch of a product of BF16.

    Parameters
    ----------
    spec
        ``shape``: M, N and K. ``a``, ``b``: how each is mapped, `Mapped`'s panel, box
        and rank; without, it is a pointer. ``transposed``: whether K is the first
        dimension of A and B in memory. ``profiled``: whether a buffer for the author's
        profiler follows, unused here. ``more``: rows behind A, which lanes without a
        row load for nothing.
    """
    m, n, k = spec["shape"]
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 5, (rows, k)).astype(BF16) for rows in (m, n))
    want = a.astype(np.float64) @ b.astype(np.float64).T
    arguments: list[Any] = []
    for name, array in (("a", a), ("b", b)):
        stored = np.ascontiguousarray(array.T) if spec.get("transposed") else array
        if name == "a" and "more" in spec:
            stored = np.concatenate([stored, stored[: spec["more"]]])
        if name in spec:
            panel, rows, columns, rank = spec[name]
            stored = Mapped(stored, panel, (rows, columns), rank)
        arguments.append(stored)
    arguments += [np.zeros((m, n), BF16), *(np.int32(x) for x in (m, n, k))]
    if spec.get("profiled"):
        arguments += [np.uint64(0), np.int32(0)]
    rounded = want.astype(np.float32).astype(BF16).astype(np.float64)
    return arguments, {2: (rounded, 0.0)}


def product_in_halves(spec: Mapping[str, Any]) -> Launched:
    """Return the launch of a product whose operands and every sum are in FP16.

    Parameters
    ----------
    spec
        ``shape``: M, N and K. B is (N, K).
    """
    m, n, k = spec["shape"]
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    sizes = [np.uint64(x) for x in (m, n, k)]
    want = a.astype(np.float64) @ b.astype(np.float64).T
    return [a, b, np.zeros((m, n), np.float16), *sizes], {2: (want, 0.0)}


def _scaled(spec: Mapping[str, Any]) -> tuple[list[Mapped], list[Any], Any]:
    """Return A and B, their scales as bytes of the MMA's tiles, and the product."""
    m, n, k = spec["shape"]
    rng = np.random.default_rng(7)
    operands, values, scale_bytes = [], [], []
    for name, rows in (("a", m), ("b", n)):
        codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        scales = rng.choice(list(_E4M3), (rows, k // 16))
        sign = np.where(codes & 8, -1.0, 1.0)
        values.append(sign * _E2M1[codes & 7] * np.repeat(scales, 16, axis=1))
        packed = codes[:, ::2] | codes[:, 1::2] << 4  # the first code is the low nibble
        panel, box_rows, columns, rank = spec[name]
        box = (box_rows, columns)
        operands.append(Mapped(packed, panel, box, rank, DataType.U4_ALIGN8B))
        as_bytes = np.vectorize(_E4M3.__getitem__)(scales).astype(np.uint8)
        # 128 rows and four scales: row r lies at 16 (r % 32) + 4 (r // 32).
        tiles = as_bytes.reshape(rows // 128, 4, 32, k // 64, 4)
        scale_bytes.append(np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)))
    return operands, scale_bytes, values[0] @ values[1].T


def scaled_product(spec: Mapping[str, Any]) -> Launched:
    """Return the launch of a product of NVFP4 into FP16.

    Parameters
    ----------
    spec
        ``shape``, ``a`` and ``b``: as those of `product`.
    """
    operands, scale_bytes, want = _scaled(spec)
    sizes = [np.int32(x) for x in spec["shape"]]
    out = np.zeros(want.shape, np.float16)
    rounded = want.astype(np.float16).astype(np.float64)
    return [*operands, *scale_bytes, out, *sizes], {4: (rounded, 0.0)}


def scaled_product_of_tensors(spec: Mapping[str, Any]) -> Launched:
    """Return the launch of a product of NVFP4 into BF16 by CuTe DSL's parameters.

    A tensor that is copied is its map and its shape, D a pointer, shape and stride.

    Parameters
    ----------
    spec
        As that of `scaled_product`. ``tile_n``: columns of a tile.
    """
    m, n, k = spec["shape"]
    operands, scale_bytes, want = _scaled(spec)
    arguments: list[Any] = []
    for operand, rows in zip(operands, (m, n), strict=True):
        arguments += [replace(operand, alignment=64), np.int32(rows), np.int32(k)]
    for scales, blocks in zip(scale_bytes, (1, spec["tile_n"] // 128), strict=True):
        rows = scales.shape[0]
        # Words of eight scales; a box is 256 of them, four tiles along K.
        words = scales.reshape(rows, -1).view(np.int64)
        arguments.append(Mapped(words, 256, (blocks, 256), 2, DataType.INT64, 64))
        arguments += [np.int32(k), np.int32(rows)]
    at = len(arguments)
    arguments += [np.zeros((m, n), BF16), *(np.int32(x) for x in (m, n, n, 0))]
    rounded = want.astype(np.float32).astype(BF16).astype(np.float64)
    return arguments, {at: (rounded, 0.0)}
