"""block_scaled: a matrix of narrow codes with one scale per block of K.

    value(m, k) = element(codes[m, k]) * scale(scales[m, k // vec]) / global_scale

    format        vec   elements   scale format      MMA
    nvfp4         16    E2M1       UE4M3, or UE8M0   kind::mxf4nvf4, block16
    mxfp4         32    E2M1       UE8M0             kind::mxf4, block32
    mxfp8_e4m3    32    E4M3       UE8M0             kind::mxf8f6f4, block32
    mxfp8_e5m2    32    E5M2       UE8M0             kind::mxf8f6f4, block32
    mxfp6_e2m3    32    E2M3       UE8M0             kind::mxf8f6f4, block32
    mxfp6_e3m2    32    E3M2       UE8M0             kind::mxf8f6f4, block32

The last dimension is K, along which the GEMM sums; the MMA takes packed E2M1 K-major
only. MXFP4 goes with the MXFP8 and MXFP6 formats too, in kind::mxf8f6f4. The global
scale has no place in the MMA: it is divided out of the result, as
``alpha = 1 / (G_A * G_B)``. Source: PTX ISA, tcgen05.mma block scaling.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import require_choice, require_instance
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import LaidOutScales, SwizzledScales, swizzle_scales
from fp4ref.numerics.elements import BLOCKS, ScaleFormat, element
from fp4ref.numerics.formats import require_codes
from fp4ref.numerics.packing import pack_codes, unpack_codes
from fp4ref.numerics.quantize import dequantize_blocks
from fp4ref.tensors.block_format import (
    check_shapes,
    choose_scale_format,
    positive_float32,
    read_scales,
    require_format,
)
from fp4ref.tensors.losses import warn_of_nan_scales, warn_of_overflow

FloatT = TypeVar("FloatT", np.float32, np.float64)


class GlobalScaleWarning(UserWarning):
    """A global scale looks like the inverse of what its convention says."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class BlockScaled:
    """Codes, block scales and global scale of one matrix, or of a batch of them.

    Parameters
    ----------
    codes : uint8 (..., M, K)
        One code per byte, in its low bits. `from_packed` takes them without gaps.
    scales : uint8 (..., M, K / vec)
        Row-major codes of `scale_format`; bit 7 of UE4M3 is ignored, as in the MMA. Or
        `SwizzledScales` or `LaidOutScales`, or the ml_dtypes types float8_e4m3fn and
        float8_e8m0fnu, which say themselves what they are.
    format
        ``"nvfp4"``, ``"mxfp4"``, ``"mxfp8_e4m3"``, ... None is refused: bytes do not
        say what they are.
    scale_format
        The default of the format where it is not given.
    global_scale
        The *encode* scale G, about ``448 * 6 / amax``: values were multiplied by it
        and are divided by it on the way back. TransformerEngine, FlashInfer and vLLM
        mean this number; ModelOpt and torchao store its inverse ``amax / 2688``, which
        `from_packed` converts. Rounded to float32. None is one level of scales, G = 1.

    Raises
    ------
    InputError
        Wrong type, shape, format or global scale.
    LayoutError
        The scales are in the 128x4 layout but are passed as plain bytes.

    Notes
    -----
    The arrays are read-only copies.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.uint8]
    format: str
    scale_format: ScaleFormat
    global_scale: float | None

    def __init__(
        self,
        codes: ArrayLike,
        scales: ArrayLike | SwizzledScales | LaidOutScales,
        format: str | None = "nvfp4",
        scale_format: ScaleFormat | str | None = None,
        global_scale: float | None = None,
    ) -> None:
        known = isinstance(format, str) and format in BLOCKS
        highest = (1 << element(format or "").bits) - 1 if known else 0xF
        code_array = require_codes(codes, "codes", highest)
        scale_array, declared = read_scales(scales)
        format = require_format(format)
        scale_format = choose_scale_format(format, scale_format, declared)
        check_shapes(code_array, scale_array, format)
        if global_scale is not None:
            global_scale = positive_float32(global_scale, "global_scale")
        for name, value in {
            "codes": _read_only(code_array),
            "scales": _read_only(scale_array),
            "format": format,
            "scale_format": scale_format,
            "global_scale": global_scale,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_packed(
        cls,
        packed: ArrayLike,
        scales: ArrayLike | SwizzledScales | LaidOutScales,
        *,
        format: str | None,
        scale_format: ScaleFormat | str | None = None,
        global_scale: float | None = None,
        global_scale_convention: Literal["encode", "decode"] | None = None,
        nibble_order: Literal["low_first", "high_first", "split"] = "low_first",
    ) -> BlockScaled:
        """Take a matrix as checkpoints and other libraries store it.

        Parameters
        ----------
        packed : uint8 (..., M, K * bits / 8)
            For 4-bit elements two a byte, for 6-bit ones four in three bytes.
        global_scale_convention
            Required with `global_scale`. ``"encode"`` is G; ``"decode"`` is 1/G, the
            number that ModelOpt and torchao multiply by.
        nibble_order
            Which half of a byte holds the element of even k. ``"low_first"`` is that
            of PTX and of nearly every library. The scales are the same either way, so
            only the values show a wrong choice. ``"split"`` is GGML's: byte j of a
            block holds element j, and element j + 16 (MXFP4) or j + 8 (NVFP4) in its
            high half.

        Raises
        ------
        InputError
            As for the class, or the convention or nibble order is not one of the two.

        Warns
        -----
        NonFiniteWarning
            A scale is NaN.
        GlobalScaleWarning
            The global scale looks like the inverse.
        """
        data = require_codes(packed, "packed")
        block = BLOCKS[require_format(format)]
        bits = element(block.element).bits
        if (
            data.ndim < 2
            or 0 in data.shape
            or 8 * data.shape[-1] % (bits * block.vec_size)
        ):
            row = {4: "K / 2), two codes a byte", 6: "3 * K / 4), four codes in three"}
            raise InputError(
                f"packed of shape {data.shape}; {format} takes (..., M, "
                f"{row.get(bits, 'K), one code a byte')}, with K a multiple of "
                f"{block.vec_size}. Pad K with code 0 and scale 0"
            )
        require_choice(
            nibble_order,
            "nibble_order",
            ("low_first", "high_first", "split"),
            "'split' is GGML's: nibbles half a block apart",
            gap="packing",
        )
        if nibble_order == "high_first" and bits == 4:
            data = (data << np.uint8(4)) | (data >> np.uint8(4))
        if nibble_order == "split" and bits == 4:
            data = _joined(data, block.vec_size)
        matrix = cls(unpack_codes(data, bits), scales, format, scale_format)
        warn_of_nan_scales(matrix.scales, matrix.scale_format)
        if global_scale is None:
            return matrix
        encode = _encode_scale(matrix, global_scale, global_scale_convention)
        return cls(
            matrix.codes, matrix.scales, matrix.format, matrix.scale_format, encode
        )

    def __repr__(self) -> str:
        return (
            f"BlockScaled(shape={self.shape}, format={self.format!r}, "
            f"scale_format={self.scale_format.name}, global_scale={self.global_scale})"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape (..., M, K), in elements."""
        return self.codes.shape

    @property
    def vec_size(self) -> int:
        """Elements per scale."""
        return BLOCKS[self.format].vec_size

    def packed(self) -> NDArray[np.uint8]:
        """Give uint8 (..., M, K * bits / 8), the first element in the low bits."""
        return pack_codes(self.codes, element(self.format).bits)

    def swizzled_scales(self) -> SwizzledScales:
        """Give the scales in the 128x4 layout, zero-padded, matrix by matrix."""
        rows, cols = self.scales.shape[-2:]
        return SwizzledScales(swizzle_scales(self.scales), rows, cols)

    @overload
    def dequantize(self) -> NDArray[np.float32]: ...
    @overload
    def dequantize(self, dtype: type[FloatT]) -> NDArray[FloatT]: ...
    def dequantize(self, dtype: type[Any] = np.float32) -> NDArray[Any]:
        """Give the values ``code * scale / global_scale``, shape (..., M, K).

        Without a global scale float64 is exact. The quotient is taken in float64 and
        then rounded to `dtype`.

        A NaN scale makes its block NaN.

        Raises
        ------
        InputError
            `dtype` is neither float32 nor float64.

        Warns
        -----
        NonFiniteWarning
            A value is beyond float32 and became Inf.
        """
        if dtype not in (np.float32, np.float64):
            raise InputError(f"dtype {dtype!r}; need numpy.float32 or numpy.float64")
        values = dequantize_blocks(
            self.codes,
            self.scales,
            scale_format=self.scale_format,
            dtype="float64",
            element_format=self.format,
        )
        exact = values / (self.global_scale or 1.0)
        if dtype is np.float64:
            return exact
        with np.errstate(over="ignore", under="ignore"):  # 6 * 2^127 is Inf in float32
            rounded: NDArray[Any] = exact.astype(dtype)
        warn_of_overflow(exact, rounded)
        return rounded

    def transpose(self) -> NoReturn:
        """Refuse: codes pair up and share scales along K.

        Raises
        ------
        LayoutError
            Always.
        """
        raise LayoutError(
            "a block-scaled matrix cannot be transposed: nibbles pair up and blocks "
            "share a scale along K, and kind::mxf4nvf4 is K-major only. Transpose the "
            "values and quantize them again"
        )

    @property
    def T(self) -> NoReturn:
        """Refuse, as `transpose` does."""
        self.transpose()


def require_block_scaled(value: object, name: str) -> BlockScaled:
    """Return `value` if it is a `BlockScaled`.

    Raises
    ------
    InputError
        It is something else.
    """
    remedy = "Make one with fp4ref.quantize"
    return require_instance(value, name, BlockScaled, remedy)


def _joined(data: NDArray[np.uint8], vec_size: int) -> NDArray[np.uint8]:
    """Bring nibbles that lie half a block apart side by side."""
    blocks = data.reshape(*data.shape[:-1], -1, vec_size // 2)
    codes = np.concatenate([blocks & np.uint8(0xF), blocks >> np.uint8(4)], axis=-1)
    return pack_codes(codes.reshape(*data.shape[:-1], -1), 4)


def _encode_scale(
    matrix: BlockScaled, global_scale: float, convention: str | None
) -> float:
    """Return G, and warn where it looks inverted."""
    require_choice(
        convention,
        "global_scale_convention",
        ("encode", "decode"),
        "'encode' is 448*6/amax (FlashInfer, vLLM, TransformerEngine), 'decode' its "
        "inverse (ModelOpt, torchao). The number itself does not tell",
    )
    given = positive_float32(global_scale, "global_scale")
    encode = (
        given
        if convention == "encode"
        else positive_float32(1.0 / given, "1 / global_scale")
    )
    fills_the_range = int(matrix.scales.max()) == 0x7E
    if encode < 1 and fills_the_range and matrix.scale_format is ScaleFormat.UE4M3:
        warnings.warn(
            f"global_scale {given:g} as {convention!r} makes the largest value "
            f"{2688 / encode:g}. If that is too large, the scale is the inverse",
            GlobalScaleWarning,
            stacklevel=3,
        )
    return encode


def _read_only(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy
