"""inputs: 102,400 operands of each kind, the same with every NumPy.

They depend on the kinds of a form's operands alone, so forms that take the same kinds
see the same inputs. Element i of every array belongs to thread i. First come all
combinations of a few corner values, then those of more, then mixed domains.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from probes.forms import floats

COUNT = 102_400
BLOCK = 1024
HEAD = 1024
"""Elements that hold all combinations of the first corners; recorded in full."""
CORNERS = 48_000
"""Elements that hold combinations of corners, at most."""

U64 = NDArray[np.uint64]
Words = NDArray[np.unsignedinteger]

BITS = {
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "bytes": 16,
    "b16": 16,
    "b32": 32,
    "b64": 64,
    "nz16": 16,
    "nz32": 32,
    "nz64": 64,
    "by": 32,
    "field": 32,
    "beyond": 32,
    "few16": 16,
    "few32": 32,
    "few64": 64,
    "bit": 32,
    "warp": 32,
    "control": 32,
    "x128": 128,
}

_INTEGERS = (
    (0, 1, -1, 2, -2, 3, 1 << 63, (1 << 63) - 1, 1 << 31, (1 << 31) - 1)
    + (1 << 15, (1 << 15) - 1, 1 << 7, (1 << 7) - 1, 1 << 32, (1 << 32) - 1)
    + ((1 << 16) - 1, 1 << 16, 255, 256, -(1 << 31), -(1 << 31) - 1, -(1 << 15))
    + (-(1 << 15) - 1, -(1 << 7), -(1 << 7) - 1, 5, 7, 10, 31, 32, 33, 63, 64, 65)
    + ((1 << 63) + 1, (1 << 31) + 1, (1 << 15) + 1, (1 << 53) + 1, (1 << 53) - 1)
    + ((1 << 24) + 1, (1 << 24) + 3, (1 << 24) - 1, 0x8000008000000000)
    + (0x8000008000000001, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA)
    + (0x00FF00FF00FF00FF, 0xFFFFFFFF00000001, 0x0123456789ABCDEF)
)
_DISTANCES = (0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 16, 15, 17, 8, 255, 2, 7, 30, 62)
_BEYOND = (256, 257, 288, 320, 0x8000, 0xFFFF, 0x10000, 1 << 31, (1 << 31) + 1)
_HUGE = (*_BEYOND, (1 << 32) - 1, (1 << 32) - 32, 0x7FFFFFFF)
_CONTROLS = (0x1F, 0, 0x1C1F, 0x181F, 0x101F, 0x1F1F, 0x1800, 0x1C03, 0x000F, 0x0C1F)


def random(name: str, count: int = COUNT) -> U64:
    """Return 64-bit words that depend on `name` alone: splitmix64."""
    start = np.uint64(zlib.crc32(name.encode()))
    with np.errstate(over="ignore"):
        place = start << np.uint64(32) | np.arange(1, count + 1, dtype=np.uint64)
        return mix(place * np.uint64(0x9E3779B97F4A7C15))


def mix(z: U64) -> U64:
    """Return the last step of splitmix64, a one-to-one scattering of 64-bit words."""
    with np.errstate(over="ignore"):
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def dtype_of(kind: str) -> np.dtype[np.unsignedinteger]:
    """Return the unsigned type of a kind's elements; of ``x128``, of its halves."""
    return np.dtype(f"<u{min(BITS[kind], 64) // 8}")


def corners(kind: str) -> U64 | None:
    """Return the corner values of a kind, the most telling first; None without."""
    if kind in ("f32", "f16", "bf16"):
        return floats.corners(kind)
    if kind in ("by", "field", "beyond"):
        values = {
            "by": (*_DISTANCES, *_HUGE),
            "field": _DISTANCES,
            "beyond": (*_HUGE, *_DISTANCES[:8]),
        }[kind]
        return np.array(values, np.uint64)
    if kind[0] in "bn" and kind != "bytes" and kind != "bit":
        values = tuple(v % (1 << BITS[kind]) for v in _INTEGERS)
        distinct = dict.fromkeys(v for v in values if v or kind[0] != "n")
        return np.array(list(distinct), np.uint64)
    return None


def grid(tables: list[U64], limit: int) -> list[U64]:
    """Return all combinations of first values of the tables, at most `limit`."""
    sizes = [1] * len(tables)
    growing = True
    while growing:
        growing = False
        for i in sorted(range(len(tables)), key=lambda i: sizes[i]):
            more = [size + (i == j) for j, size in enumerate(sizes)]
            if more[i] <= tables[i].size and np.prod(more, dtype=np.int64) <= limit:
                sizes, growing = more, True
                break
    place = np.indices(sizes).reshape(len(sizes), -1)
    return [table[at] for table, at in zip(tables, place, strict=True)]


@lru_cache(maxsize=64)
def make(kinds: tuple[str, ...]) -> tuple[Words, ...]:
    """Return one array of `COUNT` elements for each operand."""
    name = " ".join(kinds)
    arrays = _floats(kinds, name) if "f32" in kinds else None
    if arrays is None:
        arrays = [_domain(kind, f"{name}/{i}") for i, kind in enumerate(kinds)]
        _relate(arrays, kinds, name)
    tables = [corners(kind) for kind in kinds]
    places = [i for i, table in enumerate(tables) if table is not None]
    start = 0
    for limit in (HEAD, CORNERS) if places else ():
        combined = grid([t for t in tables if t is not None], limit)
        for i, values in zip(places, combined, strict=True):
            arrays[i][start : start + values.size] = values
        start = HEAD
    return tuple(a.astype(dtype_of(k)) for a, k in zip(arrays, kinds, strict=True))


def _floats(kinds: tuple[str, ...], name: str) -> list[U64]:
    words = [random(f"{name}/{i}") for i in range(len(kinds))]
    count = sum(kind == "f32" for kind in kinds)
    domain = (random(f"{name}/domain") >> np.uint64(61)).astype(np.int64)
    found = floats.domains(words[:count], domain)
    rest = [_domain(k, f"{name}/{i}") for i, k in enumerate(kinds) if k != "f32"]
    return [*found, *rest]


def _domain(kind: str, name: str) -> U64:
    """Return random operands of a kind."""
    words = random(name)
    low = words & np.uint64((1 << min(BITS[kind], 64)) - 1)
    choice = words >> np.uint64(62)
    if kind in ("f16", "bf16", "bytes"):
        # Every pattern of 16 bits, in an order that differs by operand.
        step = np.uint64(1 if name.endswith("/0") else 40503)
        return np.arange(COUNT, dtype=np.uint64) * step & np.uint64(0xFFFF)
    if kind in ("by", "field", "beyond"):
        near = low % np.uint64(80)
        far = low & np.uint64(0xFF) if kind == "field" else low
        if kind == "beyond":
            far = far | np.uint64(0x100)
        return np.where(choice == 0, far, near)
    if kind in ("few16", "few32", "few64"):
        return (words & np.uint64(3)) * np.uint64(0x40000001)
    if kind == "warp":
        return np.repeat(random(name, COUNT // 32), 32) & np.uint64(0xFFFFFFFF)
    if kind == "control":
        words = np.repeat(random(name, COUNT // 32), 32)
        usual = np.array(_CONTROLS, np.uint64)[words % np.uint64(len(_CONTROLS))]
        any_two = words >> np.uint64(16) & np.uint64(0x1F1F)
        return np.where(words >> np.uint64(63) == 0, usual, any_two)
    if kind == "x128":
        return random(name, 2 * COUNT)
    if kind == "bit":
        return low
    # A quarter of the integers is small, by a random number of bits.
    shift = words >> np.uint64(40) & np.uint64(BITS[kind] - 1)
    low = np.where(choice == 1, low >> shift, low)
    return np.where(low == 0, np.uint64(3), low) if kind[0] == "n" else low


def _relate(arrays: list[U64], kinds: tuple[str, ...], name: str) -> None:
    """Let an eighth of the second integers equal the first, or nearly."""
    if len(kinds) < 2 or kinds[0] != kinds[1] or kinds[0] not in ("b16", "b32", "b64"):
        return
    words = random(f"{name}/near")
    with np.errstate(over="ignore"):
        near = arrays[0] + (words & np.uint64(3)) - np.uint64(1)
    near &= np.uint64((1 << BITS[kinds[0]]) - 1)
    arrays[1] = np.where(words >> np.uint64(61) == 7, near, arrays[1])
