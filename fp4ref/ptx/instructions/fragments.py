"""fragments: which elements of a matrix the lanes of a warp hold for an MMA.

Lane t belongs to row ``t // 4`` of eight, and to place ``t % 4`` along the other way.
A register holds 1, 2 or 4 elements that lie along K. Source: PTX, matrix fragments of
mma.m16n8k16 and its siblings; those of wmma, which PTX leaves open, from an H200.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.operands import Get, Put, items_of, reader, writer
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, Operand, PtxError

STORED: dict[str, np.dtype[Any]] = {
    **{name: np.dtype("<u2") for name in ("f16", "bf16")},
    **{"tf32": np.dtype("<u4"), "s8": np.dtype("i1"), "u8": np.dtype("u1")},
    **{"f32": np.dtype("<f4"), "f64": np.dtype("<f8"), "s32": np.dtype("<i4")},
}
"""How an element of each PTX type is held; f16 and the like as their patterns."""

_OWN = ("f32", "f64")
"""Types whose elements have a register of their type each; others share b32."""


def per_register(kind: str) -> int:
    """Return how many elements of a type one register holds."""
    return max(1, 4 // STORED[kind].itemsize)


Places = NDArray[np.intp]
_LANE = np.arange(LANES)[:, None]
_ROW, _PLACE = _LANE // 4, _LANE % 4


class Held(NamedTuple):
    """Indices into a matrix, (lanes, elements); some may be there twice."""

    row: Places
    column: Places

    @property
    def transposed(self) -> Held:
        """The same elements of the transposed matrix."""
        return Held(self.column, self.row)

    def copied(self, times: int) -> Held:
        """Return every element as often, one copy of all after the other."""
        return Held(*(np.tile(each, times) for each in self))


def tall(rows: int, k: int, per: int) -> Held:
    """Return what a lane holds of the operand in tiles of 16 rows, which is (rows, K).

    Parameters
    ----------
    per
        Elements of a register.
    """
    i = np.arange(rows // 8 * k // 4)
    row = _ROW + 8 * (i // per % 2) + 16 * (i // (k // 2))
    column = per * _PLACE + i % per + 4 * per * (i // (2 * per) % (k // (4 * per)))
    return Held(row, column + 0 * row)


def wide(rows: int, k: int, per: int) -> Held:
    """Return what a lane holds of the operand in tiles of 8 rows; as `tall`."""
    i = np.arange(rows // 8 * k // 4)
    row = _ROW + 8 * (i // (k // 4))
    column = per * _PLACE + i % per + 4 * per * (i // per % (k // (4 * per)))
    return Held(row, column + 0 * row)


def result(rows: int, columns: int) -> Held:
    """Return what a lane holds of C and D in tiles of 16 x 8."""
    i = np.arange(rows // 8 * columns // 4)
    tile = i // 4
    row = _ROW + 8 * (i // 2 % 2) + 16 * (tile // (columns // 8))
    column = 2 * _PLACE + i % 2 + 8 * (tile % (columns // 8))
    return Held(row, column + 0 * row)


class FragmentReader:
    """Reads a matrix out of the registers of a warp.

    Parameters
    ----------
    operand
        Index of the vector of registers.
    held
        Which elements of the matrix a lane has there.
    kind
        PTX type of an element.
    shape
        Of the matrix.

    Raises
    ------
    PtxError
        Another number of registers than the matrix fills.
    """

    def __init__(
        self,
        context: LaunchContext,
        each: Instruction,
        operand: int,
        held: Held,
        kind: str,
        shape: tuple[int, int],
    ) -> None:
        items = _registers(each, operand, held, kind)
        register = kind if kind in _OWN else "b32"
        self.reads: list[Get] = [reader(context, o, register, each) for o in items]
        self.held, self.kind, self.shape = held, kind, shape

    def __call__(self, state: WarpState) -> NDArray[np.generic]:
        """Return the matrix, as `STORED` has its type."""
        words = np.stack([read(state) for read in self.reads], axis=1)
        values = np.ascontiguousarray(words).view(STORED[self.kind])
        found = np.zeros(self.shape, STORED[self.kind])
        found[self.held] = values
        return found


class FragmentWriter:
    """Writes a matrix into the registers of a warp; parameters as of a reader."""

    def __init__(
        self,
        context: LaunchContext,
        each: Instruction,
        operand: int,
        held: Held,
        kind: str,
    ) -> None:
        items = _registers(each, operand, held, kind)
        register = kind if kind in _OWN else "b32"
        self.puts: list[Put] = [writer(context, o, register, each) for o in items]
        self.held, self.kind = held, kind

    def __call__(self, state: WarpState, matrix: NDArray[np.generic]) -> None:
        """Give every lane its elements."""
        mine = np.ascontiguousarray(matrix[self.held])
        words = mine if self.kind in _OWN else mine.view(np.uint32)
        for i, put in enumerate(self.puts):
            put(state, np.ascontiguousarray(words[:, i]))


def _registers(
    each: Instruction, operand: int, held: Held, kind: str
) -> tuple[Operand | None, ...]:
    items = items_of(each.operands[operand])
    wanted = held.row.shape[1] // per_register(kind)
    if len(items) != wanted:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} takes a vector of {wanted} registers "
            f"as operand {operand}, not of {len(items)}"
        )
    return items
