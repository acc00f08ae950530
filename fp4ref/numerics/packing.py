"""packing: codes of any width in bytes without gaps, as global memory has them.

The first element is in the lowest bits of the first byte. Source: PTX, packed formats
``.b4x16`` and ``.b6x16``; CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array
from fp4ref.errors import InputError
from fp4ref.numerics.element import Codes
from fp4ref.numerics.formats import U8, pack_e2m1, require_codes, unpack_e2m1


def pack_codes(codes: npt.NDArray[Any], bits: int) -> U8:
    """Pack codes of `bits` bits, (..., K), into bytes, (..., K * bits / 8).

    Raises
    ------
    InputError
        A row does not end on a byte, or `codes` are not unsigned.
    """
    array = np.ascontiguousarray(require_array(codes, "pack_codes codes"))
    if array.dtype.kind != "u" or array.ndim == 0 or array.shape[-1] * bits % 8:
        raise InputError(
            f"pack_codes codes: {array.dtype} {array.shape}; need unsigned codes whose "
            f"rows of {bits}-bit elements end on a byte. Pad K with code 0"
        )
    if bits == 4:
        return pack_e2m1(array)
    if bits >= 8:
        return array.view(np.uint8)
    spread = np.unpackbits(array[..., np.newaxis], axis=-1, bitorder="little")
    rows = spread[..., :bits].reshape(*array.shape[:-1], -1)
    return np.packbits(rows, axis=-1, bitorder="little")


def unpack_codes(packed: npt.ArrayLike, bits: int) -> Codes:
    """Split bytes, (..., K * bits / 8), into codes, (..., K).

    Raises
    ------
    InputError
        `packed` is not uint8, or its rows are no whole number of codes.
    """
    array = np.ascontiguousarray(require_codes(packed, "unpack_codes packed"))
    if bits == 4:
        return unpack_e2m1(array)
    if array.ndim == 0 or array.shape[-1] * 8 % bits:
        raise InputError(
            f"unpack_codes packed: shape {array.shape}; the rows are no whole number "
            f"of {bits}-bit codes"
        )
    if bits >= 8:
        return array.view(np.dtype(f"u{bits // 8}"))
    spread = np.unpackbits(array, axis=-1, bitorder="little")
    grouped = spread.reshape(*array.shape[:-1], -1, bits)
    return np.packbits(grouped, axis=-1, bitorder="little")[..., 0]
