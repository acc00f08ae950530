"""flips: one bit of a stage changes between two operations of the unit; what D is then.

One tile of 128 x 128, two k-tiles. For a k-tile the unit does four copies of SFA, four
of SFB, four MMAs, and a commit; the places of a stage are formulas here: rows of 128
bytes with 16-byte chunks exchanged, and atoms of 512 bytes. So a flip is used if the
copy or MMA that reads it comes after, and D is that of the changed operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref import BlockScaled, GemmConfig, ScaleFormat, plan
from fp4ref.numerics import matmul_block_scaled
from probes.probe import pattern

M = N = 128
K = 512
COUNT = 200
U8 = NDArray[np.uint8]
OPERATIONS = 13
COPIES = 4
SMEM_BASE = 0x400
CONFIG = GemmConfig()


class Flip(NamedTuple):
    """A bit of a byte of a buffer of k-tile `tile`, before operation `before` of it."""

    tile: int
    before: int
    buffer: str
    offset: int
    bit: int

    @property
    def word(self) -> tuple[int, int, int]:
        """What the unit is told: its operation, the word's address, the bit."""
        smem, nbytes = plan(CONFIG).smem, _nbytes(self.buffer)
        first = getattr(smem, self.buffer) + self.tile * nbytes
        address = SMEM_BASE + first + self.offset // 4 * 4
        return (
            self.tile * OPERATIONS + self.before,
            address,
            1 << 8 * (self.offset % 4) + self.bit,
        )


def _nbytes(buffer: str) -> int:
    """Bytes of a stage's buffer."""
    return 2048 if buffer.startswith("sf") else 128 * 128


def flips() -> Iterator[Flip]:
    """Yield the same flips every time: each buffer, anywhere, at any moment."""
    buffers = ("a", "b", "sfa", "sfb")
    for i, raw in enumerate(pattern(16, COUNT).tolist()):
        buffer = buffers[i % 4]
        yield Flip(
            tile=raw & 1,
            before=(raw >> 1 & 0xFFFF) % (OPERATIONS - 1),
            buffer=buffer,
            offset=(raw >> 20 & 0xFFFFF) % _nbytes(buffer),
            bit=raw >> 45 & 7,
        )


@cache
def operands() -> tuple[BlockScaled, BlockScaled]:
    """Return A and B: any codes, scales around 1 of both signs of exponent."""
    made = []
    for seed in (1, 2):
        codes = pattern(seed, M * K // 8).view(np.uint8) & 15
        scales = 0x30 + pattern(seed + 8, M * K // 128).view(np.uint8) % 16
        made.append(BlockScaled(codes.reshape(M, K), scales.reshape(M, K // 16)))
    return made[0], made[1]


def expected(flip: Flip | None) -> NDArray[np.float32]:
    """Return D after a flip, (M, N)."""
    d = _right().copy()
    if flip is None:
        return d
    a, b = operands()
    arrays = {"a": a.codes, "b": b.codes, "sfa": a.scales, "sfb": b.scales}
    array = arrays[flip.buffer].copy()
    row = _change(array, flip)
    arrays[flip.buffer] = array
    rows = slice(row, row + 1)
    if flip.buffer.endswith("a"):
        arrays |= {"a": arrays["a"][rows], "sfa": arrays["sfa"][rows]}
        d[rows] = _product(**arrays)
    else:
        arrays |= {"b": arrays["b"][rows], "sfb": arrays["sfb"][rows]}
        d[:, rows] = _product(**arrays)
    return d


@cache
def _right() -> NDArray[np.float32]:
    a, b = operands()
    return _product(a.codes, b.codes, a.scales, b.scales)


def _product(a: U8, b: U8, sfa: U8, sfb: U8) -> NDArray[np.float32]:
    return matmul_block_scaled(
        a, b, sfa, sfb, scale_format=ScaleFormat.UE4M3, vec_size=16
    )


def _change(array: U8, flip: Flip) -> int:
    """Change the byte's element, if it is read after the flip; return its row."""
    if flip.buffer.startswith("sf"):
        atom, inside = divmod(flip.offset, 512)
        first = COPIES if flip.buffer == "sfb" else 0
        row = inside // 16 + 32 * (inside % 16 // 4)
        if flip.before <= first + atom:
            array[row, 16 * flip.tile + 4 * atom + inside % 4] ^= 1 << flip.bit
        return row
    row, within = divmod(flip.offset, 128)
    byte = (within // 16 ^ row % 8) * 16 + within % 16
    if flip.before <= 2 * COPIES + byte // 32:
        k = 256 * flip.tile + 2 * byte + flip.bit // 4
        array[row, k] ^= 1 << flip.bit % 4
    return row
