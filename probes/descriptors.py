"""descriptors: shared-memory matrix descriptors, as wgmma of Hopper reads them.

Its descriptor is the sister of tcgen05's: the same start address, leading and stride
offsets and base offset, and another code for the swizzle. The kernel tells of every
element of B where in shared memory it was read, and the machine says it by
`SmemDescriptor`. That tcgen05 reads the same bytes is an inference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, Pointer
from fp4ref.hardware.shared_memory import BASE
from fp4ref.hardware.smem import BASE_OFFSET_BIT, SmemDescriptor
from fp4ref.layout import SwizzleMode
from probes.probe import Case, Outputs, Probe, blank, pattern, words

N = 128
K_NBYTES = 32
IMAGE_NBYTES = 65536
FAR = 0x20000
"""A window that takes the upper bits of the start address."""

_HOPPER_CODES = {
    SwizzleMode.NONE: 0,
    SwizzleMode.B128: 1,
    SwizzleMode.B64: 2,
    SwizzleMode.B32: 3,
}


class Tile(NamedTuple):
    """A descriptor of an image that starts `window` bytes from the first; in bytes."""

    start: int
    leading: int
    stride: int
    base_offset: int = 0
    window: int = 0


@dataclass(frozen=True)
class Kind:
    """An entry of the kernel: bytes of an element, and whether B is MN-major."""

    entry: str
    nbytes: int
    mn_major: bool = False

    @property
    def k(self) -> int:
        """Elements along K of one MMA."""
        return K_NBYTES // self.nbytes


KINDS = (
    Kind("f16_k_major", 2),
    Kind("e4m3_k_major", 1),
    Kind("tf32_k_major", 4),
    Kind("f16_mn_major", 2, mn_major=True),
)


def machine_word(mode: SwizzleMode, tile: Tile) -> int:
    """Return the descriptor as sm_100 writes it."""
    first = BASE + tile.window + tile.start
    return SmemDescriptor(
        first, tile.leading, tile.stride, mode, tile.base_offset
    ).encode()


def hopper_word(mode: SwizzleMode, tile: Tile) -> int:
    """Return the descriptor as sm_90 writes it: no constant, two bits of swizzle."""
    fields = machine_word(mode, tile) & ((1 << 46) - 1 | 7 << BASE_OFFSET_BIT)
    return fields | _HOPPER_CODES[mode] << 62


def places(kind: Kind, mode: SwizzleMode, tile: Tile) -> NDArray[np.uint16]:
    """Return where the machine reads each element, (K, N), counted in elements."""
    desc = SmemDescriptor.decode(machine_word(mode, tile))
    if kind.mn_major:
        bytes_of = desc.mn_major_offsets(kind.k, N * kind.nbytes)
    else:
        bytes_of = desc.offsets(N, K_NBYTES)
    elements = bytes_of[:, :: kind.nbytes]
    if not kind.mn_major:
        elements = elements.T
    return ((elements - BASE - tile.window) // kind.nbytes).astype(np.uint16)


def _groups(kind: Kind, mode: SwizzleMode) -> Iterator[tuple[str, list[Tile]]]:
    """Yield descriptors by what they vary, K-major tiles."""
    span, group = mode.span, 8 * mode.span
    chunks = 16 if mode is SwizzleMode.NONE else span
    leading = 2048 if mode is SwizzleMode.NONE else 16
    yield (
        "steps along K",
        [
            Tile(at, leading, group, window=window)
            for at in range(0, chunks - 16, 32)
            for window in (0, FAR)
        ]
        or [Tile(0, leading, group), Tile(0, leading, group, window=FAR)],
    )
    rows = [Tile(span * row, leading, group) for row in (1, 2, 3, 5, 7, 8, 9, 13)]
    yield "rows of the pattern", rows
    strides = [group * i for i in (2, 3, 1)] + [1024, 2048, 3072]
    yield "strides", [Tile(0, leading, stride) for stride in strides]
    leads = (0, 16, 32, 128, 256, 1024, 4096, 16368)
    yield "leading", [Tile(0, each, group) for each in leads]
    raw = pattern(KINDS.index(kind) * 7 + mode, 18).reshape(6, 3)
    yield (
        "anywhere",
        [
            Tile(
                int(at) % 40 * 512 + int(at >> 40) % (span // K_NBYTES or 1) * 32,
                int(lead) % 512 * 16,
                (int(step) % 24 + 1) * 128,
            )
            for at, lead, step in raw >> np.uint64(7)
        ],
    )


def _mn_groups(mode: SwizzleMode) -> Iterator[tuple[str, list[Tile]]]:
    """Yield descriptors by what they vary, MN-major tiles: 256 bytes of each k."""
    group = 8 * mode.span
    spans = 256 // mode.span
    packed = (group, group * spans)
    if mode is SwizzleMode.NONE:
        packed = packed[::-1]
    lead, step = packed
    yield (
        "steps along K",
        [
            Tile(at * group, lead, step, window=window)
            for at in (0, 1, 2, 4)
            for window in (0, FAR)
        ],
    )
    swapped = [Tile(0, step, lead), Tile(group, step, lead)]
    yield "offsets the other way round", swapped
    strides = (1024, 2048, 3072, 4096)
    yield "strides", [Tile(0, lead, each) for each in strides]
    yield "leading", [Tile(0, each, step) for each in (1024, 1152, 2048, 3072)]
    raw = pattern(91 + mode, 18).reshape(6, 3) >> np.uint64(7)
    yield (
        "anywhere",
        [
            Tile(
                int(at) % 16 * 1024,
                (int(lead) % 23 + 1) * 128,
                (int(step) % 23 + 1) * 128,
            )
            for at, lead, step in raw
        ],
    )


def _case(kind: Kind, mode: SwizzleMode, what: str, tiles: Sequence[Tile]) -> Case:
    """Return one launch: a CTA for each descriptor."""
    desc = np.array([hopper_word(mode, tile) for tile in tiles], np.uint64)
    call = Call(
        kind.entry,
        {
            "descriptors": desc.view(np.uint8),
            "windows": words([tile.window for tile in tiles]),
            "places": blank(2 * len(tiles) * kind.k * N),
        },
        (Pointer("descriptors"), Pointer("windows"), Pointer("places")),
        grid=(len(tiles), 1, 1),
        block=(128, 1, 1),
        smem_nbytes=FAR + IMAGE_NBYTES,
    )
    name = f"{kind.entry}, {mode.name}, {what}"
    return Case(name, call, ("places",), on_ptx="wgmma is not Blackwell's")


def _with_base_offset() -> Iterator[tuple[Kind, SwizzleMode, str, list[Tile]]]:
    """Yield tiles at a row of the pattern, with and without it as their base offset."""
    for mode in (SwizzleMode.B128, SwizzleMode.B64, SwizzleMode.B32):
        tiles = [
            Tile(128 * row, 16, 8 * mode.span, offset)
            for offset in range(1, 8)
            for row in (0, offset)
        ]
        yield KINDS[0], mode, "base offset", tiles


def tiles_of_cases() -> dict[str, tuple[Kind, SwizzleMode, list[Tile]]]:
    """Return the descriptors of every case by its name."""
    found = {}
    for kind in KINDS:
        for mode in _HOPPER_CODES:
            groups = _mn_groups(mode) if kind.mn_major else _groups(kind, mode)
            for what, tiles in groups:
                found[f"{kind.entry}, {mode.name}, {what}"] = (kind, mode, tiles)
    for kind, mode, what, tiles in _with_base_offset():
        found[f"{kind.entry}, {mode.name}, {what}"] = (kind, mode, tiles)
    return found


TILES = tiles_of_cases()


def cases() -> Iterator[Case]:
    """Four kinds of operand, four swizzles, and what of a descriptor varies."""
    for name, (kind, mode, tiles) in TILES.items():
        yield _case(kind, mode, name.rpartition(", ")[2], tiles)


def emulate(case: Case) -> Outputs:
    """The same by the machine's addressing."""
    kind, mode, tiles = TILES[case.name]
    found = [places(kind, mode, tile) for tile in tiles]
    return {"places": np.ascontiguousarray(found).view(np.uint8).ravel()}


PROBE = Probe("descriptors", tuple(cases()), emulate)
