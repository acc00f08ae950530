"""formats: the bit formats of NVFP4 and MXFP4, and the PTX conversions between them.

E2M1 holds the data, UE4M3 or UE8M0 the block scales. A format is a table of the
values of its codes; encoding looks an input up between the midpoints of that table,
so ties, saturation and subnormals need no code of their own. Everything is exact,
works on arrays of any shape, and sends every NaN to the one NaN the instruction
writes.

=======  ====  ========  ==========  ============================================
format   bits  exponent  codes       special
=======  ====  ========  ==========  ============================================
E2M1     4     bias 1    0..15       bit 3 is the sign; no Inf, no NaN; max 6
UE4M3    8     bias 7    0x00..0x7F  E4M3 with the sign unused; 0x7F NaN; max 448
UE8M0    8     bias 127  0x00..0xFF  a power of two; 0xFF NaN; 0x00 is 2^-127
=======  ====  ========  ==========  ============================================
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_choice
from fp4ref.errors import InputError

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
Unsigned = TypeVar("Unsigned", bound=np.unsignedinteger)

NAN_BITS: Final = 0x7FFFFFFF  # the NaN that PTX floating-point instructions write
_INF_BITS: Final = 0x7F800000
_SIGN_BIT: Final = 0x80000000

_E2M1_MAGNITUDES: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def _e4m3_magnitudes() -> F32:
    """Return the values of codes 0x00..0x7E."""
    codes = np.arange(0x7F, dtype=np.float32)
    exponent, mantissa = np.divmod(codes, np.float32(8))
    subnormal = mantissa / 8 * np.float32(2.0**-6)
    normal = (1 + mantissa / 8) * np.exp2(exponent - 7)
    return np.where(exponent == 0, subnormal, normal).astype(np.float32)


def tie_to_even_bounds(magnitudes: F32) -> U32:
    """Return the largest float32 bit pattern that still rounds to each code.

    Non-negative floats order as their bit patterns do, so a pattern compare is a
    value compare. A tie belongs to the even code.
    """
    midpoints = (magnitudes[:-1] + magnitudes[1:]) / 2  # exact: 1 more bit at most
    bounds: U32 = midpoints.view(np.uint32)
    return bounds - np.arange(len(bounds), dtype=np.uint32) % 2


_E4M3_MAGNITUDES: Final = _e4m3_magnitudes()
_E2M1_BOUNDS: Final = tie_to_even_bounds(_E2M1_MAGNITUDES)
_E4M3_BOUNDS: Final = tie_to_even_bounds(_E4M3_MAGNITUDES)

_NAN: Final = np.array([NAN_BITS], np.uint32).view(np.float32)
_E2M1_VALUES: Final = np.concatenate([_E2M1_MAGNITUDES, -_E2M1_MAGNITUDES])
_UE4M3_VALUES: Final = np.tile(np.concatenate([_E4M3_MAGNITUDES, _NAN]), 2)
# 2^-127 is subnormal in float32: exponent field 0, top mantissa bit set.
_UE8M0_VALUES: Final = (
    np.concatenate([[0x00400000], np.arange(1, 0xFF) << 23, [NAN_BITS]])
    .astype(np.uint32)
    .view(np.float32)
)


def require_float32(x: npt.ArrayLike, name: str) -> F32:
    """Return `x` as a float32 array, or refuse any other type.

    Raises
    ------
    InputError
        `x` is not float32. Rounding it here would round twice.
    """
    array = require_array(x, name)
    if array.dtype != np.float32:
        raise InputError(
            f"{name}: dtype {array.dtype}; need float32, because rounding to float32 "
            "first would round twice. Convert with .astype(numpy.float32) if that is "
            "what you want"
        )
    return array


def require_codes(codes: npt.ArrayLike, name: str, highest: int = 0xFF) -> U8:
    """Return `codes` as a uint8 array, one code per element.

    Raises
    ------
    InputError
        The type is not uint8, or a code is above `highest`.
    """
    array: U8 = require_bits(codes, name, np.uint8)
    if highest < 0xFF and array.size and (found := int(array.max())) > highest:
        raise InputError(
            f"{name}: code 0x{found:02X}; need one code per element, at most "
            f"0x{highest:02X}. Split packed bytes with unpack_e2m1"
        )
    return array


def require_bits(
    codes: npt.ArrayLike, name: str, dtype: type[Unsigned]
) -> npt.NDArray[Unsigned]:
    """Return codes of one unsigned type, or refuse any other type."""
    array = require_array(codes, name)
    if array.dtype != dtype:
        raise InputError(
            f"{name}: dtype {array.dtype}; codes are {dtype.__name__}. Pass the raw "
            f"bits, not values (for an ml_dtypes array: .view(numpy.{dtype.__name__}))"
        )
    return array


def nearest_codes(x: F32, bounds: U32, bits: int) -> U8:
    """Round to the nearest code, ties to even, and saturate.

    This is ``cvt.rn.satfinite`` to any format of `bits` bits, whose highest is the
    sign. NaN of either sign gives the ones below it: a NaN or the largest number.

    Parameters
    ----------
    bounds
        See `tie_to_even_bounds`.
    """
    pattern = x.view(np.uint32)
    magnitude = pattern & ~np.uint32(_SIGN_BIT)
    code = np.searchsorted(bounds, magnitude).astype(np.uint8)
    top = 1 << bits - 1
    sign = (pattern >> (32 - bits)).astype(np.uint8) & np.uint8(top)
    return np.where(magnitude > _INF_BITS, np.uint8(top - 1), sign | code)


def decode_e2m1(codes: npt.ArrayLike) -> F32:
    """Return the values of E2M1 codes; 0x8 is -0.

    Raises
    ------
    InputError
        `codes` is not uint8, or a code is above 15.
    """
    return _E2M1_VALUES[require_codes(codes, "decode_e2m1 codes", highest=0xF)]


def encode_e2m1(x: npt.ArrayLike) -> U8:
    """Round to E2M1, nearest even, saturating to 6.

    PTX: ``cvt.rn.satfinite.e2m1x2.f32``. NaN of either sign gives 0x7 (+6), -0
    gives 0x8.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    return nearest_codes(require_float32(x, "encode_e2m1 x"), _E2M1_BOUNDS, 4)


def decode_ue4m3(codes: npt.ArrayLike) -> F32:
    """Return the values of UE4M3 scale codes; 0x7F is NaN.

    The MMA ignores bit 7, so 0x80..0xFF decode as 0x00..0x7F.

    Raises
    ------
    InputError
        `codes` is not uint8.
    """
    return _UE4M3_VALUES[require_codes(codes, "decode_ue4m3 codes")]


def encode_ue4m3(x: npt.ArrayLike) -> U8:
    """Round to E4M3, nearest even, saturating to 448.

    PTX: ``cvt.rn.satfinite.e4m3x2.f32``. Like the instruction it sets bit 7 for
    negative inputs and for -0; a scale computed from an absolute maximum never has
    it. NaN of either sign gives 0x7F.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    return nearest_codes(require_float32(x, "encode_ue4m3 x"), _E4M3_BOUNDS, 8)


def decode_ue8m0(codes: npt.ArrayLike) -> F32:
    """Return the values of UE8M0 scale codes; 0x00 is 2^-127, 0xFF is NaN.

    Raises
    ------
    InputError
        `codes` is not uint8.
    """
    return _UE8M0_VALUES[require_codes(codes, "decode_ue8m0 codes")]


def encode_ue8m0(x: npt.ArrayLike, rounding: Literal["rp", "rz"] = "rp") -> U8:
    """Round ``|x|`` to a power of two. PTX: ``cvt.{rp,rz}.satfinite.ue8m0x2.f32``.

    Inf and everything above 2^127 give 0xFE, everything up to 2^-127 gives 0x00
    (zero too), NaN gives 0xFF.

    Parameters
    ----------
    x
        float32.
    rounding
        ``"rp"`` takes the next power of two up, ``"rz"`` the next one down.

    Raises
    ------
    InputError
        `x` is not float32, or `rounding` is neither of the two.
    """
    rounding = require_choice(rounding, "encode_ue8m0 rounding", ("rp", "rz"))
    bits = require_float32(x, "encode_ue8m0 x").view(np.uint32)
    magnitude = bits & ~np.uint32(_SIGN_BIT)
    exponent = magnitude >> 23
    if rounding == "rp":
        # A float32 subnormal up to 2^-127 still fits code 0, a larger one needs 2^-126.
        exact_at = np.where(exponent == 0, np.uint32(0x00400000), np.uint32(0))
        exponent = exponent + ((magnitude & 0x007FFFFF) > exact_at)
    code = np.minimum(exponent, 0xFE).astype(np.uint8)
    return np.where(magnitude > _INF_BITS, np.uint8(0xFF), code)


def pack_e2m1(codes: npt.ArrayLike) -> U8:
    """Pack two codes into a byte, element 2i in the low nibble.

    Parameters
    ----------
    codes : (..., K)
        One E2M1 code per byte.

    Returns
    -------
    (..., K / 2)

    Raises
    ------
    InputError
        K is odd, or a code is above 15.
    """
    array = require_codes(codes, "pack_e2m1 codes", highest=0xF)
    if array.ndim == 0 or array.shape[-1] % 2:
        raise InputError(
            f"pack_e2m1 codes: shape {array.shape}; the last dimension must be even, "
            "because a byte holds two codes. Pad it with code 0"
        )
    return array[..., 0::2] | (array[..., 1::2] << np.uint8(4))


_BYTES: Final = np.arange(256, dtype=np.uint8)
_CODES_OF_BYTE: Final = np.stack([_BYTES & 0xF, _BYTES >> 4], axis=-1).view(np.uint16)[
    :, 0
]
"""Two codes, the low nibble first, as one number."""


def unpack_e2m1(packed: npt.ArrayLike) -> U8:
    """Split bytes into codes, low nibble first.

    Parameters
    ----------
    packed : (..., K / 2)

    Returns
    -------
    (..., K)

    Raises
    ------
    InputError
        `packed` is not uint8 or has no dimension.
    """
    array = require_codes(packed, "unpack_e2m1 packed")
    if array.ndim == 0:
        raise InputError(
            "unpack_e2m1 packed: a scalar; need an array with a last dimension to "
            "double. Reshape it to (1,)"
        )
    return _CODES_OF_BYTE[array].view(np.uint8)


def encode_bf16(x: npt.ArrayLike) -> U16:
    """Round to bfloat16 bits, nearest even. PTX: ``cvt.rn.bf16.f32``.

    Overflow gives Inf; NaN of either sign gives 0x7FFF.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    bits = require_float32(x, "encode_bf16 x").view(np.uint32)
    is_nan = (bits & ~np.uint32(_SIGN_BIT)) > _INF_BITS
    finite = np.where(is_nan, np.uint32(0), bits)  # keeps the add below from wrapping
    tie_to_even = np.uint32(0x7FFF) + ((finite >> 16) & 1)
    rounded = ((finite + tie_to_even) >> 16).astype(np.uint16)
    return np.where(is_nan, np.uint16(0x7FFF), rounded)


def encode_f16(x: npt.ArrayLike) -> U16:
    """Round to float16 bits, nearest even, subnormals kept. PTX: ``cvt.rn.f16.f32``.

    Overflow gives Inf; NaN of either sign gives 0x7FFF.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "encode_f16 x")
    with np.errstate(all="ignore"):
        rounded = array.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FFF), rounded)


def decode_bf16(codes: npt.ArrayLike) -> F32:
    """Return the values of bfloat16 bits; a NaN keeps its bits. PTX: ``cvt.f32.bf16``.

    Raises
    ------
    InputError
        `codes` is not uint16.
    """
    bits: U16 = require_bits(codes, "decode_bf16 codes", np.uint16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def decode_f16(codes: npt.ArrayLike) -> F32:
    """Return the values of float16 bits; a NaN becomes the one NaN of PTX.

    PTX: ``cvt.f32.f16``.

    Raises
    ------
    InputError
        `codes` is not uint16.
    """
    bits: U16 = require_bits(codes, "decode_f16 codes", np.uint16)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = bits.view(np.float16).astype(np.float32)
    return np.where(np.isnan(values), _NAN, values)


def encode_f32(x: npt.ArrayLike) -> U32:
    """Return the bits of float32, unchanged.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    return require_float32(x, "encode_f32 x").view(np.uint32)


def decode_f32(codes: npt.ArrayLike) -> F32:
    """Return the values of float32 bits, unchanged.

    Raises
    ------
    InputError
        `codes` is not uint32.
    """
    bits: U32 = require_bits(codes, "decode_f32 codes", np.uint32)
    return bits.view(np.float32)
