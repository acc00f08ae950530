"""tma: boxes of every swizzle, type, rank and position, loaded and stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, MapOf, Pointer
from fp4ref.hardware import mbarrier, smem, tma
from fp4ref.hardware.sm import Body, Cta, Role, Warp
from fp4ref.hardware.tensor_map import DataType
from fp4ref.trace import Bytes, Range
from probes.probe import (
    Case,
    Outputs,
    Probe,
    blank,
    new_machine,
    pattern_bytes,
    results,
    tensor_map,
)

POISON = 0xA5
IMAGE = 1024
SPANS = (16, 32, 64, 128)
FLOATS = tuple(t for t in DataType if t.is_float)
UNPACKED = tuple(t for t in DataType if t.bits >= 8)


def _tensor_nbytes(m: MapOf) -> int:
    """Bytes from the first element to past the 16-byte chunk of the last."""
    nbytes = m.dims[0] * DataType(m.data_type).bits // 8
    for extent, stride in zip(m.dims[1:], m.strides, strict=True):
        nbytes += (extent - 1) * stride
    return m.offset + -(-nbytes // 16) * 16 + 16


def _image_nbytes(m: MapOf, offset: int) -> int:
    row = m.box[0] * DataType(m.data_type).bits // 8
    # Swizzled rows that are shorter than the span still lie a span apart.
    box = prod(m.box[1:]) * max(row, SPANS[m.swizzle] if m.swizzle else 0)
    return -(-(offset + box) // 128) * 128 + 256


def _coordinates(coords: Sequence[int]) -> tuple[np.int32, ...]:
    return tuple(np.int32(c) for c in (*coords, 0, 0, 0, 0, 0)[:5])


def _load(
    name: str,
    m: MapOf,
    coords: Sequence[int],
    offset: int = 1024,
    refusal: str = "",
    data: Bytes | None = None,
) -> Case:
    # An element stride skips rows, and dimension 0 has none.
    steps = (1, *(m.element_strides or (1,) * len(m.dims))[1:])
    extents = [-(-b // s) for b, s in zip(m.box, steps, strict=True)]
    nbytes = prod(extents) * DataType(m.data_type).bits // 8
    image_nbytes = _image_nbytes(m, offset)
    random = pattern_bytes(len(name) * 7919 + nbytes, _tensor_nbytes(m))
    call = Call(
        "tma_load",
        {
            "tensor": random if data is None else data,
            "image": blank(image_nbytes),
            "status": blank(16),
        },
        (
            m,
            Pointer("image"),
            Pointer("status"),
            np.int32(len(m.dims)),
            *_coordinates(coords),
            np.uint32(offset),
            np.uint32(nbytes),
            np.uint32(image_nbytes),
        ),
        smem_nbytes=IMAGE + image_nbytes,
    )
    return Case(f"load {name}", call, ("image", "status"), refusal)


def _store(
    name: str,
    m: MapOf,
    coords: Sequence[int],
    offset: int = 1024,
    refusal: str = "",
    data: Bytes | None = None,
) -> Case:
    image_nbytes = _image_nbytes(m, offset)
    image = pattern_bytes(len(name) * 104729 + image_nbytes, image_nbytes)
    if data is not None:
        image[offset : offset + data.size] = data
    call = Call(
        "tma_store",
        {
            "tensor": blank(_tensor_nbytes(m)),
            "image": image,
        },
        (
            m,
            Pointer("image"),
            np.int32(len(m.dims)),
            *_coordinates(coords),
            np.uint32(offset),
            np.uint32(image_nbytes),
        ),
        smem_nbytes=IMAGE + image_nbytes,
    )
    return Case(f"store {name}", call, ("tensor",), refusal)


def _flat(
    dtype: DataType,
    row: int,
    rows: int,
    *,
    width: int | None = None,
    height: int | None = None,
    **more: object,
) -> MapOf:
    """Return a matrix whose box rows have `row` bytes, with a gap after each row."""
    nbytes = dtype.bits // 8
    width = width or 2 * row // nbytes
    pitch = -(-width * nbytes // 16) * 16 + 16
    dims = (width, height or 2 * rows)
    return MapOf("tensor", dtype, dims, (pitch,), (row // nbytes, rows), **more)  # type: ignore[arg-type]


def _deep(rank: int, swizzle: int) -> MapOf:
    """Return a small tensor of any rank; every stride has a gap."""
    row = 128 if swizzle else 32
    dims = (row // 2 + 8, 5, 4, 3, 2)[:rank]
    strides = [dims[0] * 2 + 16 + -(dims[0] * 2) % 16]
    for extent in dims[1:-1]:
        strides.append(strides[-1] * extent + 16)
    return MapOf(
        "tensor",
        DataType.UINT16,
        dims,
        tuple(strides[: rank - 1]),
        (row // 2, 3, 2, 2, 2)[:rank],
        swizzle=swizzle,
    )


def _places() -> Iterator[tuple[str, MapOf, tuple[int, ...], int]]:
    """Boxes whose elements move as they are: name, map, coordinates, offset."""
    u8, u16 = DataType.UINT8, DataType.UINT16
    for swizzle, span in enumerate(SPANS):
        row = span if swizzle else 48
        for offset in range(1024, 1024 + max(256, 8 * span), 128):
            m = _flat(u8, row, 9, swizzle=swizzle)
            yield f"swizzle {swizzle} at {offset}", m, (16, 2), offset
    for dtype in UNPACKED:
        for swizzle in (0, 3):
            m = _flat(dtype, 128, 4, swizzle=swizzle)
            chunk = 128 // dtype.bits
            yield f"{dtype.name} swizzle {swizzle}", m, (chunk, 2), 1024
    for rank in range(1, 6):
        for swizzle in (0, 3):
            m = _deep(rank, swizzle)
            yield f"rank {rank} swizzle {swizzle}", m, (8, 1, 1, 1, 0)[:rank], 1024
            below = (-8, -1, -1, -1, -1)[:rank]
            yield f"rank {rank} swizzle {swizzle} below", m, below, 1024
            above = (m.dims[0] - 8, *(d - 1 for d in m.dims[1:]))
            yield f"rank {rank} swizzle {swizzle} above", m, above, 1024
    m = _flat(u16, 64, 4, width=40, height=6)
    far = 2**31
    outside = {
        "left": (-8, 1), "right": (24, 1), "over": (8, -2), "under": (8, 4),
        "corner low": (-24, -3), "corner high": (32, 5), "gone left": (-32, 0),
        "gone right": (40, 0), "gone over": (0, -4), "gone under": (0, 6),
        "far right": (far - 8, 0), "far left": (-far, 0), "far under": (0, far - 1),
        "far over": (0, -far),
    }  # fmt: skip
    for name, coords in outside.items():
        yield f"outside {name}", m, coords, 1024
    yield (
        "box larger than the tensor",
        _flat(u8, 64, 8, width=40, height=5),
        (0, 0),
        128,
    )
    yield "rows of one chunk", _flat(u8, 16, 20), (16, 3), 128
    yield "box of 256 rows", _flat(u8, 16, 256), (0, 0), 128
    yield "box of 256 bytes", _flat(u8, 256, 2), (16, 0), 128
    shifted = MapOf("tensor", u8, (64, 4), (80,), (64, 4), offset=16)
    yield "address of 16 bytes", shifted, (0, 0), 128
    for dtype in (u8, u16, DataType.FLOAT32, DataType.UINT64):
        nbytes = dtype.bits // 8
        for row in range(32, 64, max(nbytes, 3)):
            ragged = _flat(dtype, 64, 3, width=row // nbytes, height=2)
            name = f"{dtype.name} row of {row // nbytes * nbytes} bytes"
            yield f"ragged {name}", ragged, (0, 0), 1024
            yield f"ragged {name} from 16", ragged, (16 // nbytes, 0), 1024
    ragged = _flat(u8, 128, 5, width=73, height=4, swizzle=3)
    yield "ragged swizzled", ragged, (16, 0), 1024
    for name, row in (("32", 64), ("64", 64), ("96", 96)):
        m = MapOf("tensor", u8, (row, 8), (row,), (32, 8), swizzle=1)
        yield f"dense pitch {name}", m, (32, 0), 1024


def _short_rows() -> Iterator[tuple[str, MapOf, tuple[int, ...], int]]:
    """Swizzled boxes whose rows are shorter than the span."""
    for swizzle, span in list(enumerate(SPANS))[1:]:
        for row in range(16, span, 16):
            m = _flat(DataType.UINT8, row, 10, swizzle=swizzle)
            yield f"short row {row} of {span}", m, (16, 1), 1024
            yield f"short row {row} of {span} off", m, (16, 1), 1024 + 256
            yield f"short row {row} of {span} under", m, (16, 12), 1024


def _strided() -> Iterator[tuple[str, MapOf, tuple[int, ...], int]]:
    """Element strides other than 1."""
    for strides in ((2, 1), (1, 2), (1, 3), (3, 2), (1, 8)):
        m = _flat(DataType.UINT16, 64, 8, element_strides=strides)
        name = "x".join(map(str, strides))
        yield f"element strides {name}", m, (8, 1), 1024
        yield f"element strides {name} outside", m, (24, 5), 1024
        m = _flat(DataType.UINT16, 128, 8, swizzle=3, element_strides=strides)
        yield f"element strides {name} swizzled", m, (8, 1), 1024
    deep = _deep(3, 0)
    m = MapOf("tensor", 1, deep.dims, deep.strides, (16, 5, 4), (1, 2, 3))
    yield "element strides 1x2x3", m, (0, 0, 0), 1024


def _forbidden() -> Iterator[tuple[str, MapOf, tuple[int, ...], int, str]]:
    """Copies that silicon ends with a trap: name, map, coordinates, offset, fault."""
    for dtype in (DataType.UINT8, DataType.UINT16, DataType.FLOAT32, DataType.INT64):
        m = _flat(dtype, 64, 4)
        yield f"{dtype.name} from element 1", m, (1, 0), 1024, "TmaFault"
    m = _flat(DataType.UINT8, 64, 4)
    yield "from byte 8", m, (8, 0), 1024, "TmaFault"
    yield "from byte -8", m, (-8, 0), 1024, "TmaFault"
    for offset in (16, 64):
        yield (
            f"shared address + {offset}",
            m,
            (0, 0),
            1024 + offset,
            "MisalignedAddress",
        )


def _special_values() -> NDArray[np.uint32]:
    """Float32 patterns that a conversion on the way would change."""
    patterns = [
        0, 1, 2, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x5000, 0x3FF000,
        0x7FFFFF, 0x7FF000, 0x7FEFFF, 0x7FF001, 0x00800000, 0x00801000, 0x3F800000,
        0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F802FFF, 0x3F803000, 0x3F803001,
        0x3F805000, 0x3FFFF000, 0x3FFFEFFF, 0x7F7FEFFF, 0x7F7FF000, 0x7F7FFFFF,
        0x7F800000, 0x7F800001, 0x7F800FFF, 0x7F801000, 0x7F802000, 0x7FC00000,
        0x7FC01234, 0x7FFFFFFF, 0x7FFFE000, 0x7FBFFFFF,
    ]  # fmt: skip
    positive = np.array([*patterns, *patterns[:24]], np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)])


def _converted() -> Iterator[tuple[str, MapOf]]:
    """Float types, on values that they might change."""
    for dtype in FLOATS:
        nbytes = dtype.bits // 8
        m = MapOf("tensor", dtype, (128 // nbytes, 4), (128,), (128 // nbytes, 4))
        yield f"special values as {dtype.name}", m


def cases() -> Iterator[Case]:
    """Every case."""
    special = _special_values().view(np.uint8)
    for name, m in _converted():
        yield _load(name, m, (0, 0), data=special)
        yield _store(name, m, (0, 0), data=special)
    for name, m, coords, offset in _places():
        yield _load(name, m, coords, offset)
        # The first corner of a store must not be negative.
        negative = any(c < 0 for c in coords)
        yield _store(name, m, coords, offset, "TmaFault" if negative else "")
    for name, m, coords, offset, refusal in _forbidden():
        yield _load(name, m, coords, offset, refusal)
        yield _store(name, m, coords, offset, refusal)
    yield _load("zero stride", MapOf("tensor", 0, (64, 4), (0,), (64, 4)), (0, 0))
    for dtype in FLOATS:
        for swizzle in (0, 3):
            m = _flat(dtype, 128, 4, swizzle=swizzle, oob_nan=True)
            chunk = 128 // dtype.bits
            yield _load(f"NaN fill {dtype.name} swizzle {swizzle}", m, (-chunk, 6))
    for name, m, coords, offset in _short_rows():
        yield _load(name, m, coords, offset, "NotModelled")
        yield _store(name, m, coords, offset, "NotModelled")
    for name, m, coords, offset in _strided():
        yield _load(name, m, coords, offset, "NotModelled")
        yield _store(name, m, coords, offset, "NotModelled")


def emulate(case: Case) -> Outputs:
    """The same box by `fp4ref.hardware.tma`."""
    call = case.call
    machine, addresses = new_machine(call)
    what = call.params[0]
    assert isinstance(what, MapOf)
    m = tensor_map(what, addresses["tensor"] + what.offset)
    numbers = [int(p) for p in call.params if isinstance(p, np.int32 | np.uint32)]
    coords, offset = numbers[1 : 1 + m.rank], numbers[6]

    def load(warp: Warp) -> Body:
        mbar, image = warp.cta.smem_base, warp.cta.smem_base + IMAGE
        nbytes, image_nbytes = numbers[7:]
        smem.st(warp, image, np.full(image_nbytes, POISON, np.uint8))
        smem.fence_proxy_async(warp)
        mbarrier.init(warp, mbar, 1)
        mbarrier.fence_mbarrier_init(warp)
        mbarrier.arrive_expect_tx(warp, mbar, nbytes)
        tma.load(warp, m, coords, image + offset, mbar)
        yield from mbarrier.try_wait(warp, mbar, 0)
        gmem = warp.machine.gmem
        shown = smem.ld(warp, image, image_nbytes)
        gmem.write(_all(addresses["image"], image_nbytes), shown[None])
        done = np.array([1, 0], np.uint32).view(np.uint8)
        status = np.concatenate([done, smem.ld(warp, mbar, 8)])
        gmem.write(_all(addresses["status"], 16), status[None])

    def store(warp: Warp) -> Body:
        image = warp.cta.smem_base + IMAGE
        smem.st(warp, image, call.buffers["image"])
        smem.fence_proxy_async(warp)
        tma.store(warp, m, coords, image + offset)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    def kernel(cta: Cta) -> Sequence[Role]:
        return [load if call.entry == "tma_load" else store]

    machine.launch(kernel, call.grid, smem_nbytes=call.smem_nbytes)
    return results(machine, addresses, case)


def _all(address: int, nbytes: int) -> Range:
    return Range("gmem", address, nbytes)


PROBE = Probe("tma", tuple(cases()), emulate)
