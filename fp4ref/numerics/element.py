"""element: a number format as data, and the one way to read its codes.

`elements` has the table of all of them. How a conversion of PTX makes a code is in
`formats`, and the entries point there; a format without one goes by its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.formats import (
    F32,
    I64,
    NAN_BITS,
    nearest_codes,
    require_codes,
    require_float32,
    tie_to_even_bounds,
)

Codes = npt.NDArray[np.unsignedinteger]
Top = Literal["Inf and NaN", "one NaN", "numbers"]
"""What the largest exponent field holds; the one NaN has a mantissa of ones."""


class Parts(NamedTuple):
    """Codes in integers: magnitude = significand * 2^(exponent - mantissa_bits).

    Where `nan` or `inf` is set, the two numbers are those of the bare fields.
    """

    negative: npt.NDArray[np.bool_]
    significand: I64
    exponent: I64
    inf: npt.NDArray[np.bool_]
    nan: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Element:
    """A number format.

    Parameters
    ----------
    bits
        Width of a code. Sign, exponent and mantissa from the top bit down; bits above
        these fields are ignored.
    subnormals
        Whether exponent field 0 holds zero and subnormals; with UE8M0 it is 2^-127.
    dtype
        Name of the type in NumPy or ml_dtypes.
    tma
        Name of its ``CUtensorMapDataType``; None for scales, whose atoms of 512 bytes
        are copied as words.
    idesc
        Code of an operand's type in an instruction descriptor, by MMA kind.
    scale_code
        Code of the scale type in an instruction descriptor; None for data.
    taken_mantissa_bits
        Mantissa bits that an MMA takes of an operand, if not all: ``kind::tf32`` reads
        float32 and ignores the 13 lowest bits.
    vanishing
        Of a scale format: the largest amax / 6 of a block that decodes to zero. A UE4M3
        scale rounds to 0; with UE8M0 the codes of a quarter of the smallest scale do.
    encoder, decoder
        The conversions of PTX. Without them `encode` and `decode` go by the fields,
        which takes a table of all codes: for 8 bits and less.
    """

    name: str
    bits: int
    exponent_bits: int
    mantissa_bits: int
    top: Top
    signed: bool = True
    subnormals: bool = True
    dtype: str | None = None
    tma: str | None = None
    idesc: Mapping[str, int] = field(default_factory=dict)
    scale_code: int | None = None
    taken_mantissa_bits: int | None = None
    vanishing: float = 0.0
    encoder: Callable[[npt.ArrayLike], Codes] | None = None
    decoder: Callable[[npt.ArrayLike], F32] | None = None

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned integer that holds a code."""
        return np.dtype(f"u{max(self.bits, 8) // 8}")

    @property
    def host_dtype(self) -> np.dtype[Any]:
        """NumPy's own type of the values, or that of the codes where it has none."""
        own = getattr(np, self.dtype or "", None)
        return self.code_dtype if own is None else np.dtype(own)

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent field."""
        return (1 << self.exponent_bits - 1) - 1

    @property
    def sign(self) -> int:
        """The sign bit of a code; 0 without one."""
        return self.signed << self.bits - 1

    @property
    def nan_code(self) -> int | None:
        """The NaN that conversions write; None where every code is a number."""
        if self.top == "numbers":
            return None
        return (1 << self.exponent_bits + self.mantissa_bits) - 1

    @property
    def k_step(self) -> int:
        """K of one MMA without scales: 32 bytes, of which no element takes less."""
        return 32 * 8 // max(self.bits, 8)

    @cached_property
    def largest(self) -> float:
        """Largest finite value."""
        if self.top == "Inf and NaN":
            code = ((1 << self.exponent_bits) - 1 << self.mantissa_bits) - 1
        else:
            code = (1 << self.exponent_bits + self.mantissa_bits) - 1
            code -= self.top == "one NaN"
        return float(self.values(np.array(code)))

    def split(self, codes: npt.NDArray[np.integer]) -> Parts:
        """Return what the fields of codes say."""
        code = codes.astype(np.int64)
        fraction = code & (1 << self.mantissa_bits) - 1
        exponent_field = code >> self.mantissa_bits & (1 << self.exponent_bits) - 1
        lowest = int(self.subnormals)
        significand = np.where(
            exponent_field >= lowest, fraction | 1 << self.mantissa_bits, fraction
        )
        special = exponent_field == (1 << self.exponent_bits) - 1
        inf = nan = np.zeros(code.shape, np.bool_)
        if self.top == "Inf and NaN":
            inf, nan = special & (fraction == 0), special & (fraction != 0)
        elif self.top == "one NaN":
            nan = special & (fraction == (1 << self.mantissa_bits) - 1)
        return Parts(
            negative=code & self.sign != 0,
            significand=significand,
            exponent=np.maximum(exponent_field, lowest) - self.bias,
            inf=inf,
            nan=nan,
        )

    def values(self, codes: npt.NDArray[np.integer]) -> F32:
        """Return the values of codes by their fields."""
        parts = self.split(codes)
        finite = np.where(parts.inf | parts.nan, 0, parts.exponent)
        magnitude = np.ldexp(
            parts.significand.astype(np.float64), finite - self.mantissa_bits
        )
        magnitude = np.where(parts.inf, np.inf, magnitude).astype(np.float32)
        nan = np.array(NAN_BITS, np.uint32).view(np.float32)
        return np.where(parts.nan, nan, np.where(parts.negative, -magnitude, magnitude))

    def decode(self, codes: npt.ArrayLike) -> F32:
        """Return the float32 values of codes, which is exact.

        Raises
        ------
        InputError
            `codes` is not of `code_dtype`, or a code has more than `bits`.
        """
        if self.decoder is not None:
            return self.decoder(codes)
        highest = (1 << self.bits) - 1
        return self._values[require_codes(codes, f"decode {self.name} codes", highest)]

    @cached_property
    def _values(self) -> F32:
        return self.values(np.arange(1 << self.bits))

    def encode(self, x: npt.ArrayLike) -> Codes:
        """Round float32 to codes: a scale without a mantissa up, the rest to nearest.

        Formats of 8 bits and less saturate, wider ones overflow to Inf.

        Raises
        ------
        InputError
            `x` is not float32.
        """
        if self.encoder is not None:
            return self.encoder(x)
        array = require_float32(x, f"encode {self.name} x")
        return nearest_codes(array, self._bounds, self.bits)

    @cached_property
    def _bounds(self) -> npt.NDArray[np.uint32]:
        positive = self._values[: 1 << self.bits - 1]
        return tie_to_even_bounds(positive[np.isfinite(positive)])
