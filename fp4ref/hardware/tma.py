"""Part 3. tma: asynchronous copies of boxes between global and shared memory.

A load credits the bytes of its full box to an mbarrier (complete_tx); it never arrives.
Elements outside the tensor are filled with zero and their bytes are credited all the
same. A store has no barrier: it belongs to a bulk group of its warp, and lands in two
steps, first reading shared memory, then writing global memory. It ends a row not at the
tensor's last element but at the end of that element's 16-byte chunk. All measured on an
H200.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import ClusterFault, HardwareFault, MisalignedAddress, NotModelled
from fp4ref.hardware.cluster import multicast_targets
from fp4ref.hardware.in_flight import AsyncOp
from fp4ref.hardware.sm import Blocked, Warp
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

SMEM_ALIGNMENT = 128

CHUNK = 16
"""Bytes on which rows of a box start in global memory, and stores end."""

_NAN_FILL = 0x7FF7
"""Every 16 bits of an out-of-bounds element, whatever the type."""


class TmaFault(HardwareFault):
    """A tensor copy does not fit its tensor map."""


def _check(warp: Warp, m: TensorMap, coords: Sequence[int], smem: int) -> None:
    """Raise a fault for a copy that the instruction forbids or we do not model."""
    if m.interleave or m.data_type.is_padded or any(e != 1 for e in m.element_strides):
        raise NotModelled(
            f"tensor copy with {m.data_type.name}, interleave {m.interleave}, element "
            f"strides {m.element_strides}",
            who=warp.who,
            remedy="use a dense tile with element strides of 1",
            gap="tma-element-layout",
        )
    if m.swizzle is not SwizzleMode.NONE and m.box_row_nbytes != m.swizzle.span:
        raise NotModelled(
            f"box rows of {m.box_row_nbytes} bytes with the {m.swizzle.span}-byte "
            "swizzle",
            who=warp.who,
            remedy="make a box row as long as the swizzle span",
            gap="tma-short-rows",
        )
    if len(coords) != m.rank:
        raise TmaFault(
            f"{len(coords)} coordinates for a tensor of rank {m.rank}",
            who=warp.who,
            rule="one coordinate for each dimension, fastest first [PTX: "
            "cp.async.bulk.tensor]",
            remedy="use the .Nd form of the map's rank",
        )
    if any(not -(1 << 31) <= c < 1 << 31 for c in coords):
        raise TmaFault(
            f"coordinates {tuple(coords)}",
            who=warp.who,
            rule="coordinates are signed 32-bit element offsets",
            remedy="give element offsets, not tile indices",
        )
    if coords[0] * m.data_type.bits % (8 * CHUNK):
        raise TmaFault(
            f"coordinates {tuple(coords)}: the first is {m.data_type.bits}-bit element "
            f"{coords[0]}",
            who=warp.who,
            where=f"tensor map of {m.data_type.name}, dimensions {tuple(m.dims)}",
            rule=f"a box row starts on a multiple of {CHUNK} bytes; an H200 ends "
            "anything else with an illegal instruction (measured with types of 8 bits "
            "and more, carried over to 4)",
            remedy=f"step by multiples of {8 * CHUNK // m.data_type.bits} elements",
        )
    if smem % SMEM_ALIGNMENT:
        raise MisalignedAddress(
            f"tensor copy at shared address {smem:#x}",
            who=warp.who,
            where=warp.smem.describe(smem & 0xFFFFFF),
            rule=f"the shared address is a multiple of {SMEM_ALIGNMENT} bytes [PTX: "
            "cp.async.bulk.tensor]",
            remedy="align the stage",
        )


_Piece = tuple[slice, slice, Range]


def _pieces(m: TensorMap, coords: Sequence[int], end: int = 1) -> Iterator[_Piece]:
    """Parts of the box that lie inside the tensor.

    Yields (box rows, bytes of a row, global range); the box rows are numbered with
    dimension 1 fastest. A cut row reaches to a multiple of `end` bytes.
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
def _order(swizzle: SwizzleMode, phase: int, nbytes: int) -> NDArray[np.int64]:
    """Byte of a shared block that starts at `phase`, for each byte of the box."""
    linear = phase + np.arange(nbytes)
    return np.asarray(swizzle.swizzle(linear) - phase, np.int64)


def _swizzled(m: TensorMap, smem: int) -> NDArray[np.int64]:
    """Byte of the shared block at `smem`, for each byte of the box in order."""
    return _order(m.swizzle, smem % m.swizzle.alignment, m.box_nbytes)


def _gather(warp: Warp, m: TensorMap, pieces: Sequence[_Piece]) -> Bytes:
    """Read a box from global memory, shape (rows, row bytes)."""
    gmem = warp.machine.gmem
    if len(pieces) == 1 and pieces[0][2].size == m.box_nbytes:
        return _converted(m, gmem.read(pieces[0][2]))
    tile = _fill(m)
    for rows, row_bytes, where in pieces:
        tile[rows, row_bytes] = _converted(m, gmem.read(where))
    return tile


def _converted(m: TensorMap, data: Bytes) -> Bytes:
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


def load(
    warp: Warp,
    tensor_map: TensorMap,
    coords: Sequence[int],
    dst: int,
    mbar: int,
    cta_mask: int | None = None,
) -> None:
    """``cp.async.bulk.tensor.Nd.shared::cluster.global...complete_tx::bytes``.

    Frames 5.4.4 to 5.4.7.

    Parameters
    ----------
    coords
        Element offsets, fastest dimension first; may be outside the tensor.
    dst, mbar
        Shared addresses of the tile and of the barrier that is credited.
    cta_mask
        Multicast: same offsets in every CTA of the mask.

    Raises
    ------
    MisalignedAddress, TmaFault, ClusterFault, NotModelled
    """
    _check(warp, tensor_map, coords, dst)
    cta, offset = warp.cta.resolve_shared(dst)
    bar_cta, bar_offset = warp.cta.resolve_shared(mbar)
    nbytes = tensor_map.box_nbytes
    if cta is not bar_cta:
        raise ClusterFault(
            f"tensor copy to cta {cta.ctaid} that credits an mbarrier of cta "
            f"{bar_cta.ctaid}",
            who=warp.who,
            where=bar_cta.smem.describe(bar_offset),
            rule="tile and mbarrier are in the same CTA [PTX: cp.async.bulk.tensor; "
            "only .cta_group::2, not modelled, differs]",
            remedy="map both addresses to the same rank",
        )
    if cta_mask is None:
        targets = [(cta, bar_cta)]
    else:
        targets = [(c, c) for c in multicast_targets(warp, cta_mask)]
    pieces = list(_pieces(tensor_map, coords))
    blocks = [Range(c.smem.space, offset, nbytes) for c, _ in targets]

    def land() -> None:
        block = np.empty((1, nbytes), np.uint8)
        tile = _gather(warp, tensor_map, pieces)
        block[0, _swizzled(tensor_map, offset)] = tile.ravel()
        for (c, b), where in zip(targets, blocks, strict=True):
            c.smem.write_async(where, block)
            b.mbarriers.update(bar_offset, tx_bytes=-nbytes, who="tma")

    operands = _operands(warp, tensor_map, coords, dst) | {"mbar": mbar}
    if cta_mask is not None:
        operands["cta_mask"] = cta_mask
    warp.issue(
        f"cp.async.bulk.tensor.{tensor_map.rank}d.load",
        operands,
        land,
        unit="tma",
        reads=[where for _, _, where in pieces],
        writes=blocks,
    )


def store(warp: Warp, tensor_map: TensorMap, coords: Sequence[int], src: int) -> None:
    """``cp.async.bulk.tensor.Nd.global.shared::cta.bulk_group``. Frame 7.9.

    Parts outside the tensor are not written, except to the end of the 16-byte chunk in
    which a row ends.

    Raises
    ------
    MisalignedAddress, TmaFault, ClusterFault, NotModelled
    """
    _check(warp, tensor_map, coords, src)
    if any(c < 0 for c in coords):
        raise TmaFault(
            f"store to coordinates {tuple(coords)}",
            who=warp.who,
            rule="the first corner of a store is not negative; an H200 ends one with "
            "an illegal instruction [CUDA guide, tensor memory access]",
            remedy="start the box inside; only its far ends may be outside",
        )
    cta, offset = warp.cta.resolve_shared(src)
    if cta is not warp.cta:
        raise ClusterFault(
            f"tensor store from the shared memory of cta {cta.ctaid}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="the source is .shared::cta [PTX: cp.async.bulk.tensor]",
            remedy="store from the CTA that holds the tile",
        )
    where_smem = Range(cta.smem.space, offset, tensor_map.box_nbytes)
    pieces = list(_pieces(tensor_map, coords, CHUNK))
    tile: Bytes = np.empty((0, 0), np.uint8)

    def land_read() -> None:
        nonlocal tile
        block = cta.smem.read_async(where_smem)[0]
        rows = prod(tensor_map.box[1:])
        tile = block[_swizzled(tensor_map, offset)].reshape(rows, -1)

    def land_write() -> None:
        for rows, row_bytes, where in pieces:
            warp.machine.gmem.write(where, tile[rows, row_bytes])

    operands = _operands(warp, tensor_map, coords, src)
    read = warp.issue(
        f"cp.async.bulk.tensor.{tensor_map.rank}d.store",
        operands,
        land_read,
        unit="tma.read",
        reads=[where_smem],
        survives_exit=True,
    )
    write = warp.issue(
        read.operation,
        operands,
        land_write,
        unit="tma",
        writes=[where for _, _, where in pieces],
        after=[read],
        survives_exit=True,
        part_of=read,
    )
    warp.bulk_open += [read, write]


def _operands(
    warp: Warp, m: TensorMap, coords: Sequence[int], smem: int
) -> dict[str, object]:
    named = warp.machine.gmem.find(m.address)
    return {
        "tensor": named.name if named else hex(m.address),
        "coords": list(coords),
        "smem": smem,
        "box": list(m.box),
        "bits": m.data_type.bits,
        "swizzle": int(m.swizzle),
        "tx_bytes": m.box_nbytes,
    }


def _fill(m: TensorMap) -> Bytes:
    """Return a box of out-of-bounds values, shape (rows, row bytes)."""
    shape = (prod(m.box[1:]), m.box_row_nbytes)
    if not m.oob_nan:
        return np.zeros(shape, np.uint8)
    return np.full((shape[0], shape[1] // 2), _NAN_FILL, "<u2").view(np.uint8)


def commit_group(warp: Warp) -> None:
    """``cp.async.bulk.commit_group``: close the group of the stores issued so far."""
    groups = warp.bulk_groups
    # The oldest groups that are done need not be remembered; later ones still count.
    while groups and all(op.landed for op in groups[0]):
        groups.pop(0)
    groups.append(warp.bulk_open)
    warp.bulk_open = []
    warp.record("cp.async.bulk.commit_group", {"group": warp.bulk_count})
    warp.bulk_count += 1


@dataclass(frozen=True, slots=True)
class BulkWait:
    """A warp waits for bulk groups."""

    ops: tuple[AsyncOp, ...]

    def ready(self) -> bool:
        """Whether all have landed."""
        return all(op.landed for op in self.ops)

    def describe(self) -> str:
        """How many operations are left."""
        return f"bulk groups: {sum(not op.landed for op in self.ops)} in flight"

    def released_by(self) -> str:
        """The TMA unit."""
        return "tma"


def wait_group(
    warp: Warp, pending: int, read: bool = False
) -> Generator[Blocked, None, None]:
    """``cp.async.bulk.wait_group{.read} pending``.

    Blocks until at most the newest `pending` groups are unfinished; with `read`, until
    their *sources* have been read, so that the shared memory may be reused.
    """
    groups = warp.bulk_groups[: max(0, len(warp.bulk_groups) - pending)]
    ops = tuple(
        op for group in groups for op in group if not read or op.unit == "tma.read"
    )
    since = -1
    wait = BulkWait(ops)
    if not wait.ready():
        since = warp.now
        yield wait
    suffix = ".read" if read else ""
    warp.record(f"cp.async.bulk.wait_group{suffix}", {"pending": pending}, since=since)


def prefetch_tensormap(warp: Warp, tensor_map: TensorMap) -> None:
    """``prefetch.tensormap``: no effect on any value."""
    named = warp.machine.gmem.find(tensor_map.address)
    warp.record("prefetch.tensormap", {"tensor": named.name if named else ""})
