"""tma_box: the bytes of a box, in global memory and in shared memory.

A box lies at coordinates of a tensor; what is outside the tensor has a fill value. In
shared memory the box is a block, permuted by the swizzle. It has no gaps, but for the
padded types: there 16 elements lie at the start of every 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.byte_array import MOST_KNOWN, POISON
from fp4ref.hardware.global_memory import GlobalMemory
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

NAN_FILL = 0x7FF7
"""Every 16 bits of an out-of-bounds element, whatever the type."""

CHUNK = 16
"""Bytes on which rows of a box start in global memory, and stores end."""

Piece = tuple[slice, slice, Range]
"""Box rows, bytes of a row, and where they are in global memory."""


def inside(m: TensorMap, coords: Sequence[int], end: int = 1) -> Sequence[Piece]:
    """Return what `pieces` gives; a map remembers it, as boxes are copied again."""
    key = (*coords, end)
    found: Sequence[Piece] | None = m.boxes.get(key)
    if found is None:
        if len(m.boxes) >= MOST_KNOWN:
            m.boxes.clear()
        found = m.boxes[key] = tuple(pieces(m, coords, end))
    return found


def pieces(m: TensorMap, coords: Sequence[int], end: int = 1) -> Iterator[Piece]:
    """Parts of the box that lie inside the tensor.

    The box rows are numbered with dimension 1 fastest. A cut row reaches to a multiple
    of `end` bytes.
    """
    low = max(0, -coords[0])
    high = min(m.box[0], m.dims[0] - coords[0])
    if low >= high:
        return
    bits = m.data_type.bits
    # 16 elements of 4 bits end on a byte; the box itself ends on a chunk.
    stop = -(-high * bits // (8 * end)) * end
    row_bytes = slice(low * bits // 8, stop)
    first_byte = m.address + (coords[0] + low) * bits // 8
    if m.rank == 1:
        yield slice(0, 1), row_bytes, _rows("gmem", first_byte, row_bytes, 1, 0)
        return
    row_low = max(0, -coords[1])
    row_high = min(m.box[1], m.dims[1] - coords[1])
    if row_low >= row_high:
        return
    outer = [range(extent) for extent in m.box[2:]]
    for number, reversed_index in enumerate(product(*outer[::-1])):
        index = reversed_index[::-1]
        at = [c + i for c, i in zip(coords[2:], index, strict=True)]
        if any(not 0 <= a < d for a, d in zip(at, m.dims[2:], strict=True)):
            continue
        start = first_byte + (coords[1] + row_low) * m.strides[0]
        start += sum(a * s for a, s in zip(at, m.strides[1:], strict=True))
        rows = slice(number * m.box[1] + row_low, number * m.box[1] + row_high)
        yield (
            rows,
            row_bytes,
            _rows("gmem", start, row_bytes, row_high - row_low, m.strides[0]),
        )


def _rows(space: str, start: int, row_bytes: slice, rows: int, pitch: int) -> Range:
    return Range(space, start, row_bytes.stop - row_bytes.start, rows, pitch)


@lru_cache(maxsize=64)
def _order(
    swizzle: SwizzleMode, phase: int, nbytes: int, data: int
) -> NDArray[np.int64]:
    """Byte of a shared block that starts at `phase`, for each byte of the box.

    `data` bytes of every 16 are the box's.
    """
    linear = phase + np.arange(nbytes).reshape(-1, CHUNK)[:, :data].ravel()
    return np.asarray(swizzle.swizzle(linear) - phase, np.int64)


def swizzled(m: TensorMap, smem: int) -> NDArray[np.int64]:
    """Byte of the shared block at `smem`, for each byte of the box in order."""
    padded = m.data_type.is_padded
    data = CHUNK * m.data_type.bits // 8 if padded else CHUNK
    return _order(m.swizzle, smem % m.swizzle.alignment, m.box_smem_nbytes, data)


@lru_cache(maxsize=64)
def _chunks(
    swizzle: SwizzleMode, phase: int, nbytes: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Chunk of the shared block for each chunk of the box, and the other way round."""
    of_block = _order(swizzle, phase, nbytes, CHUNK)[::CHUNK] // CHUNK
    return of_block, np.argsort(of_block)


def _permuted(data: Bytes, order: NDArray[np.intp]) -> Bytes:
    """Put chunks into an order; no swizzle tears one."""
    chunks = data.reshape(-1).view(f"V{CHUNK}")
    return chunks.take(order).view(np.uint8)


def box_of(m: TensorMap, offset: int, block: Bytes) -> Bytes:
    """Take a box, (rows, row bytes), out of its block at a shared address."""
    rows = prod(m.box[1:])
    if m.data_type.is_padded:
        return block[swizzled(m, offset)].reshape(rows, -1)
    of_block, _ = _chunks(m.swizzle, offset % m.swizzle.alignment, block.size)
    return _permuted(block, of_block).reshape(rows, -1)


def shared_block(
    m: TensorMap, offset: int, tile: Bytes
) -> tuple[Bytes, NDArray[np.bool_] | None]:
    """Lay a box out for shared memory; return where padding is, if the type has any."""
    size = m.box_smem_nbytes
    if not m.data_type.is_padded:
        _, to_smem = _chunks(m.swizzle, offset % m.swizzle.alignment, size)
        return _permuted(tile, to_smem).reshape(1, size), None
    at = swizzled(m, offset)
    block, padding = np.full((1, size), POISON, np.uint8), np.ones((1, size), np.bool_)
    block[0, at], padding[0, at] = tile.ravel(), False
    return block, padding


def gather(gmem: GlobalMemory, m: TensorMap, parts: Sequence[Piece]) -> Bytes:
    """Read a box from global memory, shape (rows, row bytes)."""
    if len(parts) == 1 and parts[0][2].size == m.box_nbytes:
        return converted(m, gmem.read(parts[0][2]))
    tile = fill(m)
    for rows, row_bytes, where in parts:
        tile[rows, row_bytes] = converted(m, gmem.read(where))
    return tile


def converted(m: TensorMap, data: Bytes) -> Bytes:
    """Round TF32 elements on their way in, nearest even; NaN loses sign and payload.

    The other types pass as they are, the FTZ ones with their subnormals.
    """
    if m.data_type not in (DataType.TFLOAT32, DataType.TFLOAT32_FTZ):
        return data
    bits = np.ascontiguousarray(data).view("<u4")
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    kept = np.where(is_nan, np.uint32(0), bits)  # keeps the sum from wrapping
    rounded = kept + np.uint32(0xFFF) + (kept >> np.uint32(13) & np.uint32(1))
    rounded &= np.uint32(0xFFFFE000)
    return np.where(is_nan, np.uint32(0x7FFFE000), rounded).view(np.uint8)


def fill(m: TensorMap) -> Bytes:
    """Return a box of out-of-bounds values, shape (rows, row bytes)."""
    rows = prod(m.box[1:])
    shape = (rows, m.box_nbytes // rows)
    if not m.oob_nan:
        return np.zeros(shape, np.uint8)
    return np.full((shape[0], shape[1] // 2), NAN_FILL, "<u2").view(np.uint8)
