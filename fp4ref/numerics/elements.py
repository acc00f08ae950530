"""elements: the table of number formats, and of the blocks that share a scale.

What a format is, which type TMA copies it as and which code it has in an instruction
descriptor is written here and nowhere else: a new format is one entry. Hardware is
named by plain words and integers, because the machine is above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_choice, require_instance
from fp4ref.errors import InputError
from fp4ref.numerics.element import Element
from fp4ref.numerics.formats import (
    F32,
    U8,
    decode_bf16,
    decode_e2m1,
    decode_f16,
    decode_f32,
    decode_ue4m3,
    decode_ue8m0,
    encode_bf16,
    encode_e2m1,
    encode_f16,
    encode_f32,
    encode_ue4m3,
    encode_ue8m0,
)

_TABLE: Final[dict[str, Element]] = {
    each.name: each
    for each in (
        Element(
            name="f32",
            bits=32,
            exponent_bits=8,
            mantissa_bits=23,
            top="Inf and NaN",
            dtype="float32",
            tma="FLOAT32",
            idesc={"tf32": 2},
            taken_mantissa_bits=10,
            encoder=encode_f32,
            decoder=decode_f32,
        ),
        Element(
            name="f16",
            bits=16,
            exponent_bits=5,
            mantissa_bits=10,
            top="Inf and NaN",
            dtype="float16",
            tma="FLOAT16",
            idesc={"f16": 0},
            encoder=encode_f16,
            decoder=decode_f16,
        ),
        Element(
            name="bf16",
            bits=16,
            exponent_bits=8,
            mantissa_bits=7,
            top="Inf and NaN",
            dtype="bfloat16",
            tma="BFLOAT16",
            idesc={"f16": 1},
            encoder=encode_bf16,
            decoder=decode_bf16,
        ),
        Element(
            name="e4m3",
            bits=8,
            exponent_bits=4,
            mantissa_bits=3,
            top="one NaN",
            dtype="float8_e4m3fn",
            tma="UINT8",
            idesc={"f8f6f4": 0},
            encoder=encode_ue4m3,  # which keeps the sign; the decoder of UE4M3 does not
        ),
        Element(
            name="e5m2",
            bits=8,
            exponent_bits=5,
            mantissa_bits=2,
            top="Inf and NaN",
            dtype="float8_e5m2",
            tma="UINT8",
            idesc={"f8f6f4": 1},
        ),
        Element(
            name="e2m3",
            bits=6,
            exponent_bits=2,
            mantissa_bits=3,
            top="numbers",
            dtype="float6_e2m3fn",
            tma="U6_ALIGN16B",
            idesc={"f8f6f4": 3},
        ),
        Element(
            name="e3m2",
            bits=6,
            exponent_bits=3,
            mantissa_bits=2,
            top="numbers",
            dtype="float6_e3m2fn",
            tma="U6_ALIGN16B",
            idesc={"f8f6f4": 4},
        ),
        Element(
            name="e2m1",
            bits=4,
            exponent_bits=2,
            mantissa_bits=1,
            top="numbers",
            dtype="float4_e2m1fn",
            tma="U4_ALIGN8B",
            idesc={"f8f6f4": 5, "mxf4nvf4": 1},
            encoder=encode_e2m1,
            decoder=decode_e2m1,
        ),
        Element(
            name="ue4m3",
            bits=8,
            exponent_bits=4,
            mantissa_bits=3,
            top="one NaN",
            signed=False,
            dtype="float8_e4m3fn",
            scale_code=0,
            vanishing=2.0**-10,
            encoder=encode_ue4m3,
            decoder=decode_ue4m3,
        ),
        Element(
            name="ue8m0",
            bits=8,
            exponent_bits=8,
            mantissa_bits=0,
            top="one NaN",
            signed=False,
            subnormals=False,
            dtype="float8_e8m0fnu",
            scale_code=1,
            vanishing=2.0**-129 / 6,
            encoder=encode_ue8m0,
            decoder=decode_ue8m0,
        ),
    )
}

ELEMENTS: Final[Mapping[str, Element]] = MappingProxyType(_TABLE)
"""The formats by name."""


class ScaleFormat(Enum):
    """The format of a block-scale byte; the byte itself does not tell.

    0x38 is 1.0 in UE4M3 and 2^-71 in UE8M0; 0x7F is NaN in UE4M3 and 1.0 in UE8M0.
    """

    UE4M3 = "ue4m3"
    UE8M0 = "ue8m0"

    @property
    def element(self) -> Element:
        """The entry of the table."""
        return ELEMENTS[self.value]

    @property
    def nan_code(self) -> int:
        """The code that is NaN (for UE4M3 also with bit 7 set)."""
        nan = self.element.nan_code
        assert nan is not None  # a scale says that its block is NaN
        return nan

    def encode(self, x: npt.ArrayLike) -> U8:
        """Round float32 to scale codes: UE4M3 to nearest, UE8M0 up.

        Raises
        ------
        InputError
            `x` is not float32.
        """
        return self.element.encode(x).astype(np.uint8, copy=False)

    def decode(self, codes: npt.ArrayLike) -> F32:
        """Return the float32 values of scale codes.

        Raises
        ------
        InputError
            `codes` is not uint8.
        """
        return self.element.decode(codes)


def require_scale_format(scale_format: Any, name: str) -> ScaleFormat:
    """Return `scale_format` if it is a `ScaleFormat`.

    Raises
    ------
    InputError
        It is anything else.
    """
    if not isinstance(scale_format, ScaleFormat):
        raise InputError(
            f"{name}: scale_format {scale_format!r}; a uint8 scale does not say what "
            "it means. Pass ScaleFormat.UE4M3 or ScaleFormat.UE8M0"
        )
    return scale_format


class ElementFormat(Enum):
    """Formats of A and B of the MMAs of 32 bytes along K, by the names of PTX."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    E4M3 = "e4m3"
    E5M2 = "e5m2"
    E2M3 = "e2m3"
    E3M2 = "e3m2"
    E2M1 = "e2m1"

    @classmethod
    def _missing_(cls, value: object) -> ElementFormat | None:
        """Make a member of an operand format that has no name above."""
        found = _TABLE.get(value) if isinstance(value, str) else None
        if found is None or not found.idesc:
            return None
        member = object.__new__(cls)
        member._name_, member._value_ = found.name.upper(), found.name
        # As enum.Flag does, so that there is one member of each value.
        cls._value2member_map_[value] = member
        return member

    @property
    def element(self) -> Element:
        """The entry of the table."""
        return ELEMENTS[self.value]

    @property
    def bits(self) -> int:
        """Width of a code."""
        return self.element.bits

    @property
    def k_step(self) -> int:
        """K of one instruction."""
        return self.element.k_step


def require_element_format(element: Any, name: str) -> None:
    """Refuse anything but an `ElementFormat`.

    Raises
    ------
    InputError
        It is anything else.
    """
    require_instance(element, name, ElementFormat, "See ElementFormat")


@dataclass(frozen=True, kw_only=True)
class BlockFormat:
    """Elements that share a scale.

    Parameters
    ----------
    vec_size
        Elements per scale.
    element
        Name of the elements' format.
    scale_formats
        Formats that the MMA takes for the scale, default first.
    """

    name: str
    vec_size: int
    element: str
    scale_formats: tuple[ScaleFormat, ...]


BLOCKS: Final[Mapping[str, BlockFormat]] = MappingProxyType(
    {
        each.name: each
        for each in (
            BlockFormat(
                name="nvfp4",
                vec_size=16,
                element="e2m1",
                scale_formats=(ScaleFormat.UE4M3, ScaleFormat.UE8M0),
            ),
            BlockFormat(
                name="mxfp4",
                vec_size=32,
                element="e2m1",
                scale_formats=(ScaleFormat.UE8M0,),
            ),
            *(
                BlockFormat(
                    name=f"mxfp{ELEMENTS[each].bits}_{each}",
                    vec_size=32,
                    element=each,
                    scale_formats=(ScaleFormat.UE8M0,),
                )
                for each in ("e4m3", "e5m2", "e2m3", "e3m2")
            ),
        )
    }
)
"""The block formats by name."""


def element(name: str) -> Element:
    """Return a format by its name; of a block format, that of its elements.

    Raises
    ------
    InputError
        There is no such format.
    """
    if name in BLOCKS:
        name = BLOCKS[name].element
    return ELEMENTS[require_choice(name, "format", tuple(ELEMENTS))]


def legal_scale_formats(vec_size: int) -> tuple[ScaleFormat, ...]:
    """Return the scale formats that an MMA takes with so many elements per scale."""
    blocks = (each for each in BLOCKS.values() if each.vec_size == vec_size)
    return tuple(dict.fromkeys(f for each in blocks for f in each.scale_formats))
