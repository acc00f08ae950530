"""unscaled: a matrix of codes without scales, and what A and B of a product may be.

An array of NumPy's or ml_dtypes' own type says what its codes are: ``float16``,
``bfloat16``, ``float8_e4m3fn``, ``float8_e5m2``, and the 6- and 4-bit types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.numerics.elements import ELEMENTS, ScaleFormat
from fp4ref.numerics.kinds import OPERAND_FORMATS
from fp4ref.numerics.packing import pack_codes
from fp4ref.tensors.block_scaled import BlockScaled, require_block_scaled

_BY_DTYPE = {ELEMENTS[name].dtype: name for name in OPERAND_FORMATS if name in ELEMENTS}


@dataclass(frozen=True, eq=False)
class Unscaled:
    """Codes of one matrix, or of a batch of them.

    Parameters
    ----------
    codes : uint8 or uint16 (..., M, K)
        One code per element, in its low bits.
    format
        Name of the elements: ``"e4m3"``, ``"bf16"``, ...
    """

    codes: NDArray[Any]
    format: str

    scale_format: ScaleFormat | None = None
    global_scale: float | None = None

    @classmethod
    def of(cls, array: NDArray[Any]) -> Unscaled:
        """Take an array whose type names a format of A and B.

        Raises
        ------
        InputError
            Its type is none of them, or it is no matrix.
        """
        format = _BY_DTYPE.get(array.dtype.name)
        if format is None:
            known = ", ".join(str(name) for name in _BY_DTYPE)
            raise InputError(f"{array.dtype} is no operand format; there are {known}")
        element = ELEMENTS[format]
        native = array.dtype.newbyteorder("=")  # the bytes of a ">f2" are swapped
        codes = array.astype(native, order="C").view(element.code_dtype)
        codes &= codes.dtype.type((1 << element.bits) - 1)
        codes.flags.writeable = False
        return cls(codes, format)

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape (..., M, K), in elements."""
        return self.codes.shape

    def packed(self) -> NDArray[np.uint8]:
        """Give uint8 (..., M, K * bits / 8), as the matrix lies in global memory."""
        return pack_codes(self.codes, ELEMENTS[self.format].bits)

    def dequantize(self, dtype: type[Any] = np.float32) -> NDArray[Any]:
        """Give the values, which are exact in float32."""
        return ELEMENTS[self.format].values(self.codes).astype(dtype)


Operand = BlockScaled | Unscaled
OperandLike = BlockScaled | Unscaled | NDArray[Any]
"""What a function that multiplies takes for A and B."""


def require_operand(value: object, name: str) -> Operand:
    """Return `value` as an operand: arrays of an operand format are taken as they are.

    Raises
    ------
    InputError
        It is something else.
    """
    if isinstance(value, Unscaled):
        return value
    if isinstance(value, np.ndarray) and value.dtype.name in _BY_DTYPE:
        return Unscaled.of(value)
    return require_block_scaled(value, name)
