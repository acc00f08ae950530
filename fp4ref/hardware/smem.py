"""Part 1. smem: the byte array of one CTA, and the descriptor that names a tile in it.

The bytes are in `shared_memory`. The generic proxy (ordinary loads and stores) and the
async proxy (TMA, tcgen05) do not see each other's writes without a fence. Bytes written
by ``st.shared`` are marked until the writing warp executes ``fence.proxy.async``; an
async access to a marked byte is a fault. With ``ordering="shipped"`` an MMA without
scales also accepts bytes behind a CTA barrier, as CUTLASS's first tutorial relies on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import DescriptorFault, MisalignedAddress, NotModelled
from fp4ref.hardware.shared_memory import BASE, CHUNK, SharedMemory, writer_mark
from fp4ref.hardware.sm import Cta, Warp
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Bytes, Range

MATRIX_ROW_NBYTES = 16
MATRIX_ROWS = 8


def _mark(warp: Warp) -> int:
    return writer_mark(warp.cta.rank, warp.index)


def store_generic(warp: Warp, cta: Cta, offset: int, data: Bytes) -> None:
    """Write contiguous bytes and mark them until `warp` executes a proxy fence."""
    where = Range(cta.smem.space, offset, data.size)
    cta.smem.write(where, data.reshape(1, -1))
    cta.smem.mark_unfenced(where, _mark(warp))
    leave_unfenced(warp, cta.smem, where)


def leave_unfenced(warp: Warp, memory: SharedMemory, where: Range) -> None:
    """Remember that the warp has marked bytes of `where`, and perhaps others near."""
    known = warp.unfenced.get(memory)
    if known is not None:
        start = min(known.start, where.start)
        where = Range(memory.space, start, max(known.end, where.end) - start)
    warp.unfenced[memory] = where


def mark_elements(
    warp: Warp,
    memory: SharedMemory,
    index: NDArray[np.int64],
    nbytes: int,
    around: Range,
) -> None:
    """Mark groups of bytes by their numbers, all of them inside `around`."""
    memory.mark_elements(index, nbytes, around, _mark(warp))
    leave_unfenced(warp, memory, around)


def load_generic(cta: Cta, offset: int, nbytes: int) -> Bytes:
    """Read contiguous bytes; a refusal of try_cancel counts as seen when it is read."""
    where = Range(cta.smem.space, offset, nbytes)
    data: Bytes = cta.smem.read(where)[0]
    if cta.clc_refusal is not None and cta.clc_refusal.overlaps(where):
        cta.clc_failed = True
    return data


def st(warp: Warp, address: int, data: Bytes) -> None:
    """Store contiguous bytes by the generic proxy: ``st.shared``."""
    cta, offset = warp.cta.resolve_shared(address)
    where = Range(cta.smem.space, offset, data.size)
    warp.machine.order.generic(warp.actor, cta.smem, where, "st.shared", True)
    store_generic(warp, cta, offset, data)
    warp.record("st.shared", {"address": address, "nbytes": int(data.size)})


def st_each(warp: Warp, addresses: NDArray[np.int64], data: Bytes) -> None:
    """Store `data[i]` at `addresses[i]` of the own CTA, one lane each: ``st.shared``.

    Parameters
    ----------
    addresses
        (lanes,) shared addresses.
    data
        (lanes, nbytes).
    """
    cta, first = warp.cta.resolve_shared(int(addresses[0]))
    offsets = first + (addresses - addresses[0])
    cells = offsets[:, None] + np.arange(data.shape[1])
    warp.machine.order.generic(warp.actor, cta.smem, cells, "st.shared", True)
    for offset, row in zip(offsets, data, strict=True):
        store_generic(warp, cta, int(offset), row)
    warp.record("st.shared", {"lanes": int(offsets.size), "nbytes": int(data.size)})


def ld(warp: Warp, address: int, nbytes: int) -> Bytes:
    """Load contiguous bytes by the generic proxy: ``ld.shared``."""
    cta, offset = warp.cta.resolve_shared(address)
    where = Range(cta.smem.space, offset, nbytes)
    warp.machine.order.generic(warp.actor, cta.smem, where, "ld.shared", False)
    data = load_generic(cta, offset, nbytes)
    warp.record("ld.shared", {"address": address, "nbytes": nbytes})
    return data


def stmatrix(warp: Warp, addresses: Sequence[int], rows: Bytes) -> None:
    """Store rows of 8 x 8 matrices: ``stmatrix.sync.aligned.m8n8.xN.shared.b16``.

    Parameters
    ----------
    addresses
        Of each row: 8 for a matrix.
    rows
        (rows, 16): 8 elements of 16 bits each.

    Raises
    ------
    MisalignedAddress, OutOfBounds
    """
    for address, row in zip(addresses, rows, strict=True):
        if address % MATRIX_ROW_NBYTES:
            raise MisalignedAddress(
                f"stmatrix to {address:#x}",
                who=warp.who,
                rule="a row's address is a multiple of 16 [PTX: stmatrix]",
                remedy="align the rows",
            )
        cta, offset = warp.cta.resolve_shared(address)
        where = Range(cta.smem.space, offset, row.size)
        warp.machine.order.generic(warp.actor, cta.smem, where, "stmatrix", True)
        store_generic(warp, cta, offset, row)
    warp.record("stmatrix", {"matrices": len(addresses) // MATRIX_ROWS})


def fence_proxy_async(warp: Warp, space: str = "shared::cta") -> None:
    """Order st.shared before later async use: ``fence.proxy.async``.

    It covers what is ordered before it, of this warp and of others: its effect composes
    with other synchronisation [PTX: membar, fence]. Whether that is so, only the order
    of accesses knows; an untraced run believes it. One for ``"global"`` memory leaves
    shared memory open; ``"generic"`` is all.
    """
    order = warp.machine.order
    if space == "global":
        order.fence_proxy_async(warp.actor, (warp.machine.gmem.space,))
        return
    if order.watches:
        peers = [cta.smem.space for cta in warp.cta.cluster.ctas]
        spaces = {"generic": None, "shared::cluster": tuple(peers)}
        own = (warp.smem.space,)
        order.fence_proxy_async(warp.actor, spaces.get(space, own))
    for each in (each for cta in warp.cta.cluster.ctas for each in cta.warps):
        for memory, where in each.unfenced.items():
            memory.fence(where, _mark(each))
        each.unfenced.clear()
    warp.record("fence.proxy.async.shared::cta", {})


def reach_barrier(warp: Warp) -> None:
    """Note that this warp's unfenced st.shared come before a CTA barrier."""
    for memory, where in warp.unfenced.items():
        memory.reach_barrier(where, _mark(warp))


_DESCRIPTOR_SWIZZLE = {mode.descriptor_code: mode for mode in SwizzleMode}


LEADING_BIT = 16
"""First bit of a descriptor's leading-dimension byte offset."""

BASE_OFFSET_BIT = 49
"""First of three bits: the row of the swizzle pattern in which an address of 0 lies."""


@dataclass(frozen=True, slots=True)
class SmemDescriptor:
    """Shared-memory matrix descriptor, 64 bits. Source: PTX, Matrix descriptor.

    ======  ==============================================
    bits    field (addresses and offsets in units of 16 B)
    ======  ==============================================
    0-13    start address
    16-29   leading-dimension byte offset
    32-45   stride-dimension byte offset
    46-48   constant 0b001
    49-51   base offset
    52      leading-dimension mode (sm_103a)
    61-63   swizzle
    ======  ==============================================
    """

    start: int
    leading_nbytes: int
    stride_nbytes: int
    swizzle: SwizzleMode
    base_offset: int = 0

    def encode(self) -> int:
        """Return the 64-bit word."""
        return (
            (self.start & 0x3FFFF) >> 4
            | ((self.leading_nbytes & 0x3FFFF) >> 4) << LEADING_BIT
            | ((self.stride_nbytes & 0x3FFFF) >> 4) << 32
            | 0b001 << 46
            | self.base_offset << BASE_OFFSET_BIT
            | self.swizzle.descriptor_code << 61
        )

    @classmethod
    @lru_cache(maxsize=1024)
    def decode(cls, word: int) -> SmemDescriptor:
        """Read a 64-bit word.

        Raises
        ------
        DescriptorFault
            The constant or the swizzle code is wrong, or reserved bits are set.
        NotModelled
            A base offset without a swizzle, the absolute leading-dimension mode, or
            the 32-byte-atom swizzle is used.
        """
        if (word >> 46) & 7 != 1:
            raise DescriptorFault(
                f"descriptor {word:#018x}: bits 46-48 are {(word >> 46) & 7:#05b}",
                rule="bits 46-48 are 0b001 on sm_100",
                remedy="this is not the Hopper encoding; set bit 46",
            )
        if word & (3 << 14 | 3 << 30 | 0xFF << 53):
            raise DescriptorFault(
                f"descriptor {word:#018x}: reserved bits are set",
                rule="bits 14-15, 30-31 and 53-60 are 0",
                remedy="add to the low word only while addresses stay below 256 KB",
            )
        code = (word >> 61) & 7
        if code in (3, 5, 7):
            raise DescriptorFault(
                f"descriptor {word:#018x}: swizzle code {code}",
                rule="codes are 0 none, 2 128B, 4 64B, 6 32B (1: 32-byte atom)",
                remedy="use the sm_100 codes; Hopper's differ",
            )
        if code == 1:
            raise NotModelled(
                f"descriptor {word:#018x}: the 128-byte swizzle with 32-byte atoms",
                rule="swizzles move chunks of 16 bytes here",
                remedy="use code 2",
                gap="descriptor-32-byte-atom",
            )
        base_offset = (word >> BASE_OFFSET_BIT) & 7
        if base_offset and code == SwizzleMode.NONE.descriptor_code:
            raise NotModelled(
                f"descriptor {word:#018x}: base offset {base_offset} without a swizzle",
                rule="it moves the pattern of a swizzle",
                remedy="clear bits 49-51",
                gap="descriptor-base-offset",
            )
        if (word >> 52) & 1:
            raise NotModelled(
                f"descriptor {word:#018x}: the absolute leading dimension",
                rule="the leading-dimension field is an offset here",
                remedy="clear bit 52",
                gap="descriptor-absolute-stride",
            )
        return cls(
            (word & 0x3FFF) << 4,
            ((word >> LEADING_BIT) & 0x3FFF) << 4,
            ((word >> 32) & 0x3FFF) << 4,
            _DESCRIPTOR_SWIZZLE[code],
            base_offset,
        )

    def offsets(self, rows: int, row_nbytes: int) -> NDArray[np.int64]:
        """Shared address of every byte of a K-major tile, shape (rows, row_nbytes).

        Source: PTX, canonical layouts; CUTLASS ``mma_sm100_desc.hpp``. The start
        address is unswizzled; the XOR acts on the final address, whose row bits are
        counted from the base offset.
        """
        period = self.start & (_PERIOD - 1)
        offsets = _tile_offsets(
            self.swizzle,
            period,
            self.leading_nbytes,
            self.stride_nbytes,
            rows,
            row_nbytes,
            self.base_offset,
        )
        return offsets + (self.start - period)

    def chunk_index(self, rows: int, row_nbytes: int) -> NDArray[np.intp]:
        """Number of every 16-byte chunk of a K-major tile, counted from `BASE`.

        Shape (rows, row_nbytes / 16). Addresses are in units of chunks, and no swizzle
        tears one.
        """
        return (self.offsets(rows, row_nbytes)[:, ::CHUNK] - BASE) // CHUNK

    def mn_major_offsets(self, k: int, row_nbytes: int) -> NDArray[np.int64]:
        """Shared address of every byte of an MN-major tile, shape (k, row_nbytes).

        A row is one k: elements that lie together along M or N. Eight rows are a
        group. With a swizzle the stride goes from group to group and the leading
        dimension from one span of a row to the next; without one they change places,
        and a span is 16 bytes. Source: as `offsets`; CuTe ``make_umma_desc``.

        Raises
        ------
        NotModelled
            The descriptor has a base offset.
        """
        if self.base_offset:
            raise NotModelled(
                f"an MN-major tile with base offset {self.base_offset}",
                rule="patterns start on their own alignment here",
                remedy="align the tile to its swizzle pattern",
                gap="descriptor-base-offset",
            )
        period = self.start & (_PERIOD - 1)
        group, span = self.stride_nbytes, self.leading_nbytes
        if self.swizzle is SwizzleMode.NONE:
            group, span = span, group
        offsets = _mn_major_offsets(self.swizzle, period, span, group, k, row_nbytes)
        return offsets + (self.start - period)


_PERIOD = 1024
"""The longest swizzle pattern; addresses that differ by it are permuted alike."""


@lru_cache(maxsize=256)
def _tile_offsets(
    swizzle: SwizzleMode,
    start: int,
    leading_nbytes: int,
    stride_nbytes: int,
    rows: int,
    row_nbytes: int,
    base_offset: int = 0,
) -> NDArray[np.int64]:
    row = np.arange(rows)[:, None]
    byte = np.arange(row_nbytes)[None, :]
    if swizzle is SwizzleMode.NONE:
        pitch = 16
        inner = byte // 16 * leading_nbytes + byte % 16
    else:
        pitch = swizzle.span
        inner = byte
    linear = start + row // 8 * stride_nbytes + row % 8 * pitch + inner
    counted = linear - (base_offset << 7)
    return np.asarray(linear ^ counted ^ swizzle.swizzle(counted), np.int64)


@lru_cache(maxsize=256)
def _mn_major_offsets(
    swizzle: SwizzleMode,
    start: int,
    span_nbytes: int,
    group_nbytes: int,
    k: int,
    row_nbytes: int,
) -> NDArray[np.int64]:
    row = np.arange(k)[:, None]
    byte = np.arange(row_nbytes)[None, :]
    span = swizzle.span
    inner = byte // span * span_nbytes + byte % span
    linear = start + row // 8 * group_nbytes + row % 8 * span + inner
    return np.asarray(swizzle.swizzle(linear), np.int64)
