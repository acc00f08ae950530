"""scale_factors: the 128x4 atom, where scale (row, col) of a matrix lies.

The MMA wants the scales of 128 rows and 4 blocks of K (K = 64 with 16 elements each)
as 512 contiguous bytes. Rows r, r+32, r+64 and r+96 are neighbours:

    byte    0..3      4..7       8..11      12..15     16..19
            row 0     row 32     row 64     row 96     row 1   ...
            col 0..3

Atoms follow each other along K first. Rows are padded to 128 and columns to 4; the pad
is zero. SFA and SFB use the same layout, with N for M. Other names of it: 128x4,
32x4x4, ``SWIZZLE_32_4_4``, ``to_blocked``, ``Sm1xxBlockScaledConfig::SfAtom``.
Source: CUTLASS ``sm100_blockscaled_layout.hpp``; cuBLAS, 1D Block Scaling Factors
Layout, whose tile base counts ``sf_outer`` in blocks of 128 rows, not in rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_array
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout.algebra import Layout, make_layout
from fp4ref.layout.int_tuple import whole

ATOM_ROWS = 128
ATOM_COLS = 4
ATOM_NBYTES = ATOM_ROWS * ATOM_COLS

#: (row, col) of one atom -> byte.
scale_atom = Layout(((32, 4), 4), ((16, 4), 1))


def padded_shape(rows: int, cols: int) -> tuple[int, int]:
    """Round rows up to 128 and columns up to 4.

    Pad each matrix before joining several: the 96 rows of a gate and the 96 of an up
    projection take 128 each. Joined first and padded after, row 96 of the first atom
    would belong to the second matrix.
    """
    rows, cols = whole(rows, "rows", 1), whole(cols, "cols", 1)
    return -(-rows // ATOM_ROWS) * ATOM_ROWS, -(-cols // ATOM_COLS) * ATOM_COLS


def sf_nbytes(rows: int, cols: int) -> int:
    """Count the bytes of the swizzled scales, padding included.

    Row-major scales, the linear layout, have no padding: ``rows * cols`` bytes.
    """
    padded_rows, padded_cols = padded_shape(rows, cols)
    return padded_rows * padded_cols


def scale_layout(rows: int, cols: int) -> Layout:
    """Give the layout (row, col) -> byte of the whole padded matrix."""
    padded_rows, padded_cols = padded_shape(rows, cols)
    row_blocks, col_blocks = padded_rows // ATOM_ROWS, padded_cols // ATOM_COLS
    return Layout(
        (((32, 4), row_blocks), (ATOM_COLS, col_blocks)),
        (((16, 4), ATOM_NBYTES * col_blocks), (1, ATOM_NBYTES)),
    )


def element_scale_layout(rows: int, k: int, sf_vec_size: int = 16) -> Layout:
    """Give the layout (row, k) -> byte of the scale of element (row, k).

    All elements of a block share a byte: stride 0. This is CUTLASS's
    ``tile_atom_to_shape_SFA``. Its size is the padded matrix.
    """
    k = whole(k, "k", 1)
    sf_vec_size = whole(sf_vec_size, "sf_vec_size", 1)
    rows_mode, cols_mode = scale_layout(rows, -(-k // sf_vec_size)).modes
    atom_cols, col_blocks = cols_mode.modes
    return make_layout(
        rows_mode,
        make_layout(make_layout(Layout(sf_vec_size, 0), atom_cols), col_blocks),
    )


def sf_offset(row: int, col: int, num_cols: int) -> int:
    """Give the byte of scale (row, col).

    Parameters
    ----------
    num_cols
        Columns of the whole matrix before padding, K / SF_VEC_SIZE.

    Raises
    ------
    LayoutError
        The position is negative or its column is outside the padded matrix.
    """
    num_cols = whole(num_cols, "num_cols", 1)
    row, col = whole(row, "row"), whole(col, "col")
    padded_cols = padded_shape(1, num_cols)[1]
    if row < 0 or not 0 <= col < padded_cols:
        raise LayoutError(
            f"row {row}, col {col}: rows start at 0, columns are 0..{padded_cols - 1} "
            f"for {num_cols} columns padded to a multiple of {ATOM_COLS}"
        )
    return scale_layout(row + 1, num_cols)((row, col))


@dataclass(frozen=True, eq=False)
class SwizzledScales:
    """Scales in the 128x4 layout, which know that they are.

    Parameters
    ----------
    data : uint8 (..., sf_nbytes(rows, cols))
        One flat buffer per matrix. Kept as a read-only copy.
    rows, cols
        Shape of one matrix before padding.

    Raises
    ------
    InputError
        `data` is not uint8.
    LayoutError
        `data` has another size.
    """

    data: NDArray[np.uint8]
    rows: int
    cols: int

    def __post_init__(self) -> None:
        data = np.array(_require_scales(self.data, "data", 1), order="C")
        for name in ("rows", "cols"):
            count = whole(getattr(self, name), name, 1)
            object.__setattr__(self, name, count)
        if data.shape[-1] != (nbytes := sf_nbytes(self.rows, self.cols)):
            raise LayoutError(
                f"data of shape {data.shape}; rows {self.rows} and cols {self.cols} of "
                f"scales take {nbytes} bytes with padding. Keep the buffer flat; it "
                "cannot be reshaped to the unpadded matrix"
            )
        data.flags.writeable = False
        object.__setattr__(self, "data", data)

    @property
    def nbytes(self) -> int:
        """Bytes of all matrices, padding included."""
        return self.data.nbytes

    def unswizzle(self) -> NDArray[np.uint8]:
        """Give the scales back as uint8 (..., rows, cols), without the padding."""
        return unswizzle_scales(self.data, self.rows, self.cols)

    def swizzle(self) -> NoReturn:
        """Refuse: a second swizzle would scramble the scales.

        Raises
        ------
        LayoutError
            Always.
        """
        raise LayoutError(
            "these scales are already in the 128x4 layout; a second swizzle would "
            "scramble them. Use .data as it is, or .unswizzle() first"
        )


def swizzle_scales(scales: NDArray[np.uint8] | SwizzledScales) -> NDArray[np.uint8]:
    """Lay row-major scales out in 128x4 atoms.

    Parameters
    ----------
    scales : uint8 (..., rows, cols)
        Leading dimensions are a batch; each matrix is padded and laid out by itself.

    Returns
    -------
    uint8 (..., sf_nbytes(rows, cols))
        Every padding byte is 0x00.

    Raises
    ------
    InputError
        `scales` is not uint8 or is not a matrix.
    LayoutError
        `scales` is already swizzled.
    """
    if isinstance(scales, SwizzledScales):
        scales.swizzle()
    matrix = _require_scales(scales, "scales", 2)
    *batch, rows, cols = matrix.shape
    flat = np.zeros((*batch, sf_nbytes(rows, cols)), dtype=np.uint8)
    flat[..., scale_layout(rows, cols).offsets()[:rows, :cols]] = matrix
    return flat


def unswizzle_scales(
    flat: NDArray[np.uint8], rows: int, cols: int
) -> NDArray[np.uint8]:
    """Read row-major scales out of 128x4 atoms; what the padding holds is ignored.

    Parameters
    ----------
    flat : uint8 (..., sf_nbytes(rows, cols))

    Returns
    -------
    uint8 (..., rows, cols)

    Raises
    ------
    InputError
        `flat` is not uint8.
    LayoutError
        `flat` is not as long as the padded matrix.
    """
    flat = _require_scales(flat, "flat", 1)
    if flat.shape[-1] != (nbytes := sf_nbytes(rows, cols)):
        raise LayoutError(
            f"flat: {flat.shape[-1]} bytes; rows {rows} and cols {cols} of "
            f"scales take {nbytes}: rows padded to {ATOM_ROWS}, columns to {ATOM_COLS}"
        )
    return flat[..., scale_layout(rows, cols).offsets()[:rows, :cols]]


def _require_scales(scales: object, name: str, ndim: int) -> NDArray[np.uint8]:
    array = require_array(scales, name)
    if array.dtype != np.uint8:
        raise InputError(
            f"{name}: dtype {array.dtype}; need the uint8 codes (for an ml_dtypes "
            "array: .view(numpy.uint8))"
        )
    if array.ndim < ndim:
        raise InputError(
            f"{name}: shape {array.shape}; need at least {ndim} dimensions"
        )
    return array
