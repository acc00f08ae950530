"""scale_layouts: block scales that know in which order they lie.

    row_major   rows x cols bytes, no padding. ModelOpt and compressed-tensors store it
    128x4       atoms of 512 bytes: what the MMA reads; see `scale_factors`
    8x4         atoms of 32 bytes, 8 rows and 4 columns, each row-major; along K first.
                FlashInfer and TensorRT-LLM use it where M is small

The sizes can agree (8 rows and 4 columns take 32 bytes in two of them, 128 rows and 4
columns 512 in all), so a size never tells. `convert` is the only way from one to the
other. Source of 8x4: FlashInfer, quantization_utils.cuh, get_sf_out_offset_8x4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_array, require_choice
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout.int_tuple import whole
from fp4ref.layout.scale_factors import scale_layout

ScaleLayout = Literal["row_major", "128x4", "8x4"]
ATOMS: Final[dict[str, tuple[int, int]]] = {
    "row_major": (1, 1),
    "128x4": (128, 4),
    "8x4": (8, 4),
}
"""Rows and columns that a layout pads to."""
MOST_NBYTES: Final = 1 << 32
"""Of a matrix whose offsets are written out, 8 bytes for each."""


def layout_nbytes(rows: int, cols: int, layout: ScaleLayout) -> int:
    """Count the bytes of one matrix of scales, padding included."""
    atom_rows, atom_cols = ATOMS[_require_layout(layout)]
    rows, cols = whole(rows, "rows", 0), whole(cols, "cols", 1)
    return -(-rows // atom_rows) * atom_rows * -(-cols // atom_cols) * atom_cols


def scale_offsets(rows: int, cols: int, layout: ScaleLayout) -> NDArray[np.int64]:
    """Give the byte of each scale (rows, cols).

    Raises
    ------
    InputError
        There is no such layout, or the matrix is larger than any memory.
    """
    if (nbytes := layout_nbytes(rows, cols, layout)) > MOST_NBYTES:
        raise InputError(
            f"rows={rows} and cols={cols}: {nbytes} bytes of scales; need at most "
            f"{MOST_NBYTES:,}, the offsets of which fit in memory"
        )
    if layout == "128x4":
        offsets = scale_layout(rows, cols).offsets()[:rows, :cols]
        return offsets.astype(np.int64)
    row, col = np.indices((rows, cols), np.int64)
    if layout == "row_major":
        return row * cols + col
    atoms_along_k = -(-cols // 4)
    return (row // 8 * atoms_along_k + col // 4) * 32 + row % 8 * 4 + col % 4


@dataclass(frozen=True, eq=False)
class LaidOutScales:
    """Scales of one matrix, or of a batch of them, in a named layout.

    Parameters
    ----------
    data : uint8 (..., layout_nbytes(rows, cols, layout))
        One flat buffer per matrix. Kept as a read-only copy.
    rows, cols
        Shape of one matrix before padding.

    Raises
    ------
    InputError
        `data` is not uint8, or there is no such layout.
    LayoutError
        `data` has another size.
    """

    data: NDArray[np.uint8]
    rows: int
    cols: int
    layout: ScaleLayout

    def __post_init__(self) -> None:
        data = np.array(require_array(self.data, "data"), order="C")
        if data.dtype != np.uint8:
            raise InputError(f"data: dtype {data.dtype}; need the uint8 codes")
        rows, cols = whole(self.rows, "rows", 1), whole(self.cols, "cols", 1)
        nbytes = layout_nbytes(rows, cols, self.layout)
        if data.ndim == 0 or data.shape[-1] != nbytes:
            raise LayoutError(
                f"data of shape {data.shape}; rows={rows} and cols={cols} in "
                f"layout {self.layout} take {nbytes} bytes. Name the layout they "
                "are in, and keep the buffer flat"
            )
        data.flags.writeable = False
        for name, value in {"data": data, "rows": rows, "cols": cols}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        scales: NDArray[np.uint8] | LaidOutScales,
        layout: ScaleLayout = "row_major",
    ) -> LaidOutScales:
        """Lay a matrix of scales (..., rows, cols) out; every padding byte is 0x00.

        Raises
        ------
        InputError
            It is no matrix of uint8, or there is no such layout.
        LayoutError
            The scales are laid out already.
        """
        if isinstance(scales, LaidOutScales):
            raise LayoutError(
                f"these scales are in the layout {scales.layout} already; use .convert"
            )
        matrix = require_array(scales, "scales")
        if matrix.dtype != np.uint8 or matrix.ndim < 2:
            raise InputError(
                f"scales: {matrix.dtype} {matrix.shape}; need a uint8 matrix of codes"
            )
        *batch, rows, cols = matrix.shape
        flat = np.zeros((*batch, layout_nbytes(rows, cols, layout)), np.uint8)
        flat[..., scale_offsets(rows, cols, layout)] = matrix
        return cls(flat, rows, cols, layout)

    def matrix(self) -> NDArray[np.uint8]:
        """Give the scales as uint8 (..., rows, cols), without the padding."""
        return self.data[..., scale_offsets(self.rows, self.cols, self.layout)]

    def convert(self, layout: ScaleLayout) -> LaidOutScales:
        """Give the same scales in another layout.

        Raises
        ------
        InputError
            There is no such layout.
        """
        return LaidOutScales.of(self.matrix(), layout)


@dataclass(frozen=True, eq=False)
class RaggedScales:
    """Scales of the groups of a grouped GEMM, one buffer.

    Each group is padded by itself: padding after joining would move the next group's
    rows into the atoms of the one before. An empty group takes no bytes.

    Parameters
    ----------
    data : uint8 (offsets[-1],)
    counts
        Rows of each group.
    offsets
        Where each group starts, and at last where the buffer ends; bytes.
    """

    data: NDArray[np.uint8]
    counts: tuple[int, ...]
    offsets: tuple[int, ...]
    cols: int
    layout: ScaleLayout

    @classmethod
    def of(
        cls,
        scales: NDArray[np.uint8],
        counts: tuple[int, ...],
        layout: ScaleLayout = "128x4",
    ) -> RaggedScales:
        """Lay out the scales (sum(counts), cols) of groups of so many rows.

        Raises
        ------
        InputError
            The counts do not add up to the rows, or one is negative.
        """
        matrix = require_array(scales, "scales")
        rows = tuple(whole(count, "counts", 0) for count in counts)
        if matrix.dtype != np.uint8 or matrix.ndim != 2 or sum(rows) != len(matrix):
            raise InputError(
                f"scales: {matrix.dtype} {matrix.shape} for groups of {rows} rows, "
                f"{sum(rows)} in all; need one uint8 row for each"
            )
        cols = matrix.shape[1]
        sizes = [layout_nbytes(count, cols, layout) for count in rows]
        offsets = (0, *(int(end) for end in np.cumsum(sizes)))
        starts = np.cumsum([0, *rows])
        parts = [
            LaidOutScales.of(matrix[start : start + count], layout).data
            for start, count in zip(starts, rows, strict=False)
            if count
        ]
        data = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
        data.flags.writeable = False
        return cls(data, rows, offsets, cols, layout)

    def group(self, number: int) -> NDArray[np.uint8]:
        """Give the scales (counts[number], cols) of one group.

        Raises
        ------
        InputError
            There is no such group.
        """
        number = whole(number, "group", 0)
        if number >= len(self.counts):
            raise InputError(f"group {number}; there are {len(self.counts)}")
        rows = self.counts[number]
        if rows == 0:
            return np.zeros((0, self.cols), np.uint8)
        part = self.data[self.offsets[number] : self.offsets[number + 1]]
        return LaidOutScales(part, rows, self.cols, self.layout).matrix()


def _require_layout(layout: str) -> str:
    return require_choice(
        layout,
        "layout",
        tuple(ATOMS),
        "The bytes do not tell; ask who wrote them",
        gap="scale-layout",
    )
