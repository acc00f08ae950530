"""tensormap_proxy: tensor maps in memory, changed by a kernel and used by it.

``tensormap.replace`` changes one field of the 128 bytes, as measured for every field on
an H200. What no instruction replaces stays as the driver wrote it, such as L2 promotion
and the bytes of the box. A copy decodes its map when it is issued.

Writes of a map are of the generic proxy, and copies use it through the tensormap proxy.
The fences between the two are checked by the order engine. On an H200 a second use of
a changed map was one of the old map in 800 of 800 launches without an acquire, and of
the new one in 1,000 of 1,000 with it. Here the bytes are always the new ones.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fp4ref.errors import (
    ClusterFault,
    HardwareFault,
    MisalignedAddress,
    TensorMapError,
)
from fp4ref.hardware import tensor_map_bits as bits
from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.sm import Warp
from fp4ref.hardware.smem import load_generic, store_generic
from fp4ref.hardware.tensor_map import NBYTES, TensorMap
from fp4ref.trace import Bytes, Range

ALIGNMENT = 64
"""Of a map that is acquired or used; an H200 ends anything else with an error."""

SPACES = ("global", "shared::cta")

EXTENTS = {
    "box_dim": bits.BOX,
    "global_dim": bits.DIMS,
    "element_stride": bits.ELEMENT_STRIDES,
}
"""Fields with an ordinal whose value is stored minus one."""

CODES = {
    "interleave_layout": (bits.INTERLEAVE, 3),
    "swizzle_mode": (bits.SWIZZLE, 4),
    "swizzle_atomicity": (bits.ATOMICITY, 4),
    "fill_mode": (bits.FILL, 2),
}
"""Fields that take an immediate code, and how many codes there are."""

_ELEMENT_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7, 8, 11, 12, 13)
"""In the map, by the number in PTX: ftz stands before f64, and tf32 sets a bit."""

_PTX_TF32 = (11, 12)

_CLEARED = {
    "global_address": bits.BitField((2, 21, 1)),
    "swizzle_mode": bits.BitField((2, 22, 1)),
}
"""Bits without a known meaning that go to 0 with a field; the driver sets neither."""


class TensorMapFault(HardwareFault):
    """A map in memory cannot be used, or not be changed as asked for."""


def replaced(data: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """Return 128 bytes with one field of ``tensormap.replace`` changed.

    Parameters
    ----------
    field
        ``global_address``, ``rank`` (from zero), ``global_stride`` (bytes), or a key of
        `EXTENTS` or `CODES`, or ``elemtype``.
    ordinal
        Dimension of an extent or element stride; of strides, 0 is that of dimension 1.
    """
    words = bits.unpacked(data)
    if field == "global_address":
        bits.ADDRESS.put(words, value)
    elif field == "rank":
        bits.RANK.put(words, value)
    elif field == "global_stride":
        bits.STRIDES[ordinal].put(words, value >> 4)
    elif field == "elemtype":
        bits.ELEMENT.put(words, _ELEMENT_CODES[value])
        if value in _PTX_TF32:
            # No other type takes the flag away again, as on an H200.
            bits.TF32.put(words, 1)
    elif field in EXTENTS:
        EXTENTS[field][ordinal].put(words, (value - 1) & 0xFFFF_FFFF)
    else:
        CODES[field][0].put(words, value)
    if field in _CLEARED:
        _CLEARED[field].put(words, 0)
    return bits.packed(words)


def replace(
    warp: Warp, space: str, address: int, field: str, value: int, ordinal: int = 0
) -> None:
    """``tensormap.replace.tile.field.space.b1024``: change one field of a map.

    Parameters
    ----------
    space
        One of `SPACES`.
    field, value, ordinal
        As for `replaced`.

    Raises
    ------
    ClusterFault, OutOfBounds, UninitialisedRead
    """
    name = f"tensormap.replace.tile.{field}"
    order, gmem = warp.machine.order, warp.machine.gmem
    shared = space != "global"
    memory: Memory = warp.smem if shared else gmem
    offset = _own_shared(warp, name, address) if shared else address
    where = Range(memory.space, offset, NBYTES)
    order.generic(warp.actor, memory, where, name, False)
    before = load_generic(warp.cta, offset, NBYTES) if shared else gmem.read(where)
    after = _array(replaced(before.tobytes(), field, value, ordinal))
    order.generic(warp.actor, memory, where, name, True)
    if shared:
        store_generic(warp, warp.cta, offset, after)
    else:
        gmem.write(where, after.reshape(1, -1))
    warp.record(name, {"address": address, "ordinal": ordinal, "value": value})


def cp_fenceproxy(warp: Warp, dst: int, src: int, scope: str) -> None:
    """``tensormap.cp_fenceproxy``: copy a map to global memory, and release it.

    Parameters
    ----------
    dst, src
        A global and a shared address.

    Raises
    ------
    ClusterFault, OutOfBounds, UninitialisedRead
    """
    name = "tensormap.cp_fenceproxy"
    gmem, order = warp.machine.gmem, warp.machine.order
    offset = _own_shared(warp, name, src)
    source = Range(warp.smem.space, offset, NBYTES)
    target = Range(gmem.space, dst, NBYTES)
    order.collective(warp.actor, warp.smem, source, name, False)
    data = load_generic(warp.cta, offset, NBYTES)
    order.copy_tensormap(warp.actor, gmem, target, name, scope)
    gmem.write(target, data.reshape(1, -1))
    warp.record(name, {"dst": dst, "src": src, "scope": scope})


def fence_release(warp: Warp, scope: str) -> None:
    """``fence.proxy.tensormap::generic.release``: give away maps written so far."""
    warp.machine.order.release_tensormap(warp.actor, scope)
    warp.record("fence.proxy.tensormap::generic.release", {"scope": scope})


def fence_acquire(warp: Warp, address: int, scope: str) -> None:
    """``fence.proxy.tensormap::generic.acquire`` of the map at a global address.

    Raises
    ------
    OutOfBounds, MisalignedAddress
    """
    name = "fence.proxy.tensormap::generic.acquire"
    _check_alignment(warp, name, address)
    gmem = warp.machine.gmem
    where = Range(gmem.space, address, NBYTES)
    gmem.check_bounds(where)
    warp.machine.order.acquire_tensormap(warp.actor, gmem, where, scope)
    warp.record(name, {"address": address, "scope": scope})


def use(warp: Warp, address: int, operation: str) -> TensorMap:
    """Return the map at a global address, for a copy that is issued now.

    Raises
    ------
    TensorMapFault, MisalignedAddress, OutOfBounds, UninitialisedRead
    """
    _check_alignment(warp, operation, address)
    gmem = warp.machine.gmem
    where = Range(gmem.space, address, NBYTES)
    warp.machine.order.use_tensormap(warp.actor, gmem, where, operation)
    return read(warp, address, operation)


def read(warp: Warp, address: int, operation: str) -> TensorMap:
    """Return the map at a global address; a prefetch asks for no more.

    Raises
    ------
    TensorMapFault
        The bytes are no map that the machine has.
    OutOfBounds, UninitialisedRead
    """
    gmem = warp.machine.gmem
    data = gmem.read(Range(gmem.space, address, NBYTES))[0].tobytes()
    try:
        return decode(data)
    except TensorMapError as error:
        raise TensorMapFault(
            f"{operation} with a map that cannot be used: {error}",
            who=warp.who,
            where=gmem.describe(address),
            rule="a kernel that changes a map leaves one that "
            "cuTensorMapEncodeTiled would make [PTX: tensormap.replace]",
            remedy="check what tensormap.replace put into each field, and that all "
            "128 bytes came from an encoded map",
        ) from None


@lru_cache(maxsize=256)
def decode(data: bytes) -> TensorMap:
    """Return the map of 128 bytes.

    Raises
    ------
    TensorMapError
    """
    return TensorMap.from_bytes(data)


def _array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def _check_alignment(warp: Warp, name: str, address: int) -> None:
    if address % ALIGNMENT:
        raise MisalignedAddress(
            f"{name} of a tensor map at {address:#x}",
            who=warp.who,
            rule=f"a tensor map lies on a multiple of {ALIGNMENT} bytes [CUDA driver "
            "API: CUtensorMap]; an H200 ends others with a misaligned address",
            remedy="align the map",
        )


def _own_shared(warp: Warp, name: str, address: int) -> int:
    """Return the offset of a ``.shared::cta`` address."""
    cta, offset = warp.cta.resolve_shared(address)
    if cta is not warp.cta:
        raise ClusterFault(
            f"{name} in shared memory of cta {cta.ctaid}",
            who=warp.who,
            where=cta.smem.describe(offset),
            rule="it takes a .shared::cta address [PTX: tensormap.replace, "
            "tensormap.cp_fenceproxy]",
            remedy="let a warp of that CTA do it",
        )
    return offset
