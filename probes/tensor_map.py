"""tensor_map: what cuTensorMapEncodeTiled accepts, and the words it writes.

No kernel: the driver's encode call is asked on the host, with an address at which
nothing is allocated; it does not look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import MapOf
from fp4ref.errors import InputError
from probes.probe import pattern, tensor_map

ADDRESS = 0x7F00_0000_0000
RANKS = 6
RANDOM = 6000
I64 = NDArray[np.int64]


def _plain(dtype: int = 1, rank: int = 2, **more: object) -> MapOf:
    """Return legal arguments to change in one place."""
    bits = (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6)[dtype]
    padded = dtype >= 14
    dims = (256, 64, 16, 8, 4)[:rank]
    box = (128 if padded else 64 * 8 // bits * (2 if bits == 4 else 1), 8, 4, 2, 2)
    strides = [256 * bits // 8]
    for extent in dims[1:-1]:
        strides.append(strides[-1] * extent)
    what = MapOf("tensor", dtype, dims, tuple(strides[: rank - 1]), box[:rank])
    return replace(what, **more)  # type: ignore[arg-type]


def _at(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def table() -> Iterator[MapOf]:
    """Arguments near every rule, one change at a time, then random ones."""
    for dtype in range(16):
        for rank in range(1, 6):
            yield _plain(dtype, rank)
            for swizzle in range(1, 7):
                yield _plain(dtype, rank, swizzle=swizzle)
        for oob in (True, False):
            yield _plain(dtype, oob_nan=oob)
        for interleave in (1, 2, 3):
            for swizzle in (0, 1, 2, 3):
                yield _plain(dtype, 3, interleave=interleave, swizzle=swizzle)
        for offset in (1, 4, 8, 16, 32):
            yield _plain(dtype, offset=offset)
        for dim in (1, 2, 3, 64, 127, 128, 129, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 0):
            yield _plain(dtype, dims=(dim, 64))
            yield _plain(dtype, dims=(256, dim))
        for box in (0, 1, 2, 4, 8, 12, 16, 32, 64, 96, 128, 192, 255, 256, 257, 512):
            for swizzle in range(4):
                yield _plain(dtype, box=(box, 8), swizzle=swizzle)
            yield _plain(dtype, box=(_plain(dtype).box[0], box))
        for stride in (0, 8, 16, 24, 32, 48, 64, 2**36, 2**40 - 32, 2**40 - 16, 2**40):
            yield _plain(dtype, strides=(stride,))
    plain = _plain(1, 5)
    for place in range(5):
        for value in (0, 1, 2, 3, 7, 8, 9):
            yield replace(plain, element_strides=_at((1,) * 5, place, value))
        for value in (1, 2, 65, 2**32):
            yield replace(plain, dims=_at(plain.dims, place, value))
        for value in (1, 3, 255, 256, 257):
            yield replace(plain, box=_at(plain.box, place, value))
    for place in range(4):
        for value in (0, 16, 2**35, 2**36, 2**39, 2**40 - 16):
            yield replace(plain, strides=_at(plain.strides, place, value))
    for l2 in range(6):
        yield _plain(l2_promotion=l2)
        yield _plain(7, 3, l2_promotion=l2, swizzle=3)
    for total in (1, 2, 4, 255, 256, 257, 511, 512):
        yield _plain(dims=(256, total))
        yield _plain(0, dims=(256, total))
    for a, b, c in ((128, 226, 8), (128, 227, 8), (128, 228, 8), (128, 229, 8),
                    (128, 256, 7), (16, 242, 60), (16, 97, 150), (16, 121, 121),
                    (16, 120, 121), (128, 250, 8), (240, 256, 4), (16, 128, 114),
                    (16, 128, 113), (128, 255, 8)):  # fmt: skip
        yield MapOf("tensor", 0, (512, 512, 256), (512, 512 * 512), (a, b, c))
        yield MapOf("tensor", 1, (512, 512, 256), (1024, 512 * 1024), (a // 2, b, c))
        plain3 = MapOf("tensor", 0, (512, 512, 256), (512, 512 * 512), (a, b, c))
        yield replace(plain3, element_strides=(1, 2, 1))
        yield replace(plain3, element_strides=(1, 1, 3))
    yield MapOf("tensor", 1, (), (), ())
    yield MapOf("tensor", 1, (64,) * 6, (128,) * 5, (8,) * 6)
    yield MapOf("tensor", 16, (64, 64), (128,), (8, 8))
    for shape in ((1024, 512, 1), (256, 16, 4, 1), (256, 16, 6, 1), (768, 512, 1)):
        pitches = (shape[0] * 2, *(0 for _ in shape[2:]))
        extents = (32, *(min(n, 128) for n in shape[1:]))
        yield MapOf("tensor", 1, shape, pitches, extents, swizzle=2)
    yield from _random(RANDOM)


def _random(count: int) -> Iterator[MapOf]:
    words = (pattern(4242, 64 * count) >> np.uint64(11)).tolist()
    numbers: Iterator[int] = iter(words)

    def one(*choices: int) -> int:
        return choices[next(numbers) % len(choices)]

    def seldom(usual: int, *others: int) -> int:
        return one(*others) if next(numbers) % 24 == 0 else usual

    for _ in range(count):
        dtype = next(numbers) % 16
        rank = 1 + next(numbers) % 5
        bits = (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6)[dtype]
        row = one(16, 16, 32, 48, 64, 64, 128)
        first = seldom(row * 8 // bits, 1, 3, 40, 256)
        interleave = seldom(0, 1, 1, 2, 2, 3)
        dims = [seldom(one(2, 64, 128, 130, 1024, 65536), 1, 0, 2**32)]
        dims += [one(1, 2, 3, 9, 64, 100, 257, 5000) for _ in range(rank - 1)]
        strides = []
        pitch = -(-dims[0] * bits // 8 // 32) * 32 + 32
        for extent in dims[1:]:
            strides.append(seldom(min(pitch, 2**40 - 32), 0, 8, 16, 2**40, 64))
            pitch = -(-pitch * extent // 32) * 32
        box = [first, *(seldom(one(1, 2, 8, 100), 0, 256, 257) for _ in dims[1:])]
        yield MapOf(
            "tensor",
            dtype,
            tuple(dims),
            tuple(strides),
            tuple(box),
            tuple(seldom(1, 1, 2, 3, 8, 9, 0) for _ in dims),
            interleave,
            one(0, 0, 1, 2, 3, 3) if next(numbers) % 30 else one(4, 5, 6),
            seldom(one(0, 1, 2, 3), 4),
            next(numbers) % 10 == 0,
            16 * (next(numbers) % 64) + seldom(0, 4, 8),
        )


def table_digest() -> str:
    """SHA-256 over the rows of the table."""
    return sha256(repr([astuple(m) for m in table()]).encode()).hexdigest()


def words(m: MapOf) -> bytes | None:
    """Return the emulator's 128 bytes, or None where it refuses the arguments."""
    try:
        return tensor_map(m, ADDRESS + m.offset).to_bytes()
    except (InputError, ValueError):
        return None
