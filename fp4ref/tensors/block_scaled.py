"""block_scaled: a matrix of E2M1 codes with one scale per block of K.

    value(m, k) = E2M1(codes[m, k]) * scale(scales[m, k // vec]) / global_scale

    format    vec   scale format              MMA
    nvfp4     16    UE4M3, or UE8M0           kind::mxf4nvf4, block16
    mxfp4     32    UE8M0                     kind::mxf4, block32

The last dimension is K, along which the GEMM sums; the MMA takes packed E2M1 K-major
only. The global scale has no place in the MMA: it is divided out of the result, as
``alpha = 1 / (G_A * G_B)``. Source: PTX ISA, tcgen05.mma block scaling.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import (
    require_array,
    require_choice,
    require_instance,
    require_number,
)
from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import SwizzledScales, padded_shape, sf_nbytes, swizzle_scales
from fp4ref.numerics.formats import ScaleFormat, pack_e2m1, require_codes, unpack_e2m1
from fp4ref.numerics.quantize import (
    amax_global_scale,
    dequantize_blocks,
    quantize_blocks,
)

#: Format -> elements per scale, and the scale formats that go with it, default first.
FORMATS: Final[Mapping[str, tuple[int, tuple[ScaleFormat, ...]]]] = MappingProxyType(
    {
        "nvfp4": (16, (ScaleFormat.UE4M3, ScaleFormat.UE8M0)),
        "mxfp4": (32, (ScaleFormat.UE8M0,)),
    }
)
RECIPES: Final = ("cutlass",)
MOST_AUTO_SCALE: Final = float(np.finfo(np.float32).max) * 2.0**-9
"""Over the smallest UE4M3 scale, 2^-9, it is float32's largest number."""

FloatT = TypeVar("FloatT", np.float32, np.float64)

_LARGEST_SCALE: Final = {ScaleFormat.UE4M3: 448.0, ScaleFormat.UE8M0: 2.0**127}
#: The largest amax / 6 of a block that decodes to zero. UE4M3: the scale rounds to 0;
#: UE8M0: the codes of a quarter of the smallest scale do.
_VANISHING: Final = {ScaleFormat.UE4M3: 2.0**-10, ScaleFormat.UE8M0: 2.0**-129 / 6}
_SCALE_DTYPES: Final = {
    "float8_e4m3fn": ScaleFormat.UE4M3,
    "float8_e8m0fnu": ScaleFormat.UE8M0,
}


class SaturationWarning(UserWarning):
    """The largest values of a block were clipped, because its scale cannot grow."""


class UnderflowWarning(UserWarning):
    """Blocks decode to zero or to too little: a scale or its inverse has no room."""


class NonFiniteWarning(UserWarning):
    """The input holds NaN or Inf, which E2M1 cannot."""


class GlobalScaleWarning(UserWarning):
    """A global scale looks like the inverse of what its convention says."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class BlockScaled:
    """Codes, block scales and global scale of one matrix, or of a batch of them.

    Parameters
    ----------
    codes : uint8 (..., M, K)
        One E2M1 code per byte. `from_packed` takes two per byte.
    scales : uint8 (..., M, K / vec)
        Row-major codes of `scale_format`; bit 7 of UE4M3 is ignored, as in the MMA. Or
        `SwizzledScales`, or the ml_dtypes types float8_e4m3fn and float8_e8m0fnu, which
        say themselves what they are.
    format
        ``"nvfp4"`` or ``"mxfp4"``. None is refused: bytes do not say what they are.
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
        scales: ArrayLike | SwizzledScales,
        format: str | None = "nvfp4",
        scale_format: ScaleFormat | str | None = None,
        global_scale: float | None = None,
    ) -> None:
        code_array = require_codes(codes, "codes", highest=0xF)
        scale_array, declared = _read_scales(scales)
        format = _require_format(format)
        scale_format = _choose_scale_format(format, scale_format, declared)
        _check_shapes(code_array, scale_array, format)
        if global_scale is not None:
            global_scale = _positive_float32(global_scale, "global_scale")
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
        scales: ArrayLike | SwizzledScales,
        *,
        format: str | None,
        scale_format: ScaleFormat | str | None = None,
        global_scale: float | None = None,
        global_scale_convention: Literal["encode", "decode"] | None = None,
        nibble_order: Literal["low_first", "high_first"] = "low_first",
    ) -> BlockScaled:
        """Take a matrix as checkpoints and other libraries store it.

        Parameters
        ----------
        packed : uint8 (..., M, K / 2)
        global_scale_convention
            Required with `global_scale`. ``"encode"`` is G; ``"decode"`` is 1/G, the
            number that ModelOpt and torchao multiply by.
        nibble_order
            Which half of a byte holds the element of even k. ``"low_first"`` is that
            of PTX and of nearly every library. The scales are the same either way, so
            only the values show a wrong choice.

        Raises
        ------
        InputError
            As for the class, or the convention or nibble order is not one of the two.
        """
        data = require_codes(packed, "packed")
        vec_size = FORMATS[_require_format(format)][0]
        if data.ndim < 2 or 0 in data.shape or 2 * data.shape[-1] % vec_size:
            raise InputError(
                f"packed of shape {data.shape}; {format} takes (..., M, K / 2), two "
                f"codes a byte, with K a multiple of {vec_size}. Pad K with code 0 and "
                "scale 0"
            )
        require_choice(
            nibble_order,
            "nibble_order",
            ("low_first", "high_first"),
            "The third order in use, 'split' (GGML: nibbles half a block apart), is "
            "not read here; unpack it to codes first",
            gap="packing",
        )
        if nibble_order == "high_first":
            data = (data << np.uint8(4)) | (data >> np.uint8(4))
        matrix = cls(unpack_e2m1(data), scales, format, scale_format)
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
        return FORMATS[self.format][0]

    def packed(self) -> NDArray[np.uint8]:
        """Give uint8 (..., M, K / 2), the element of even k in the low nibble."""
        return pack_e2m1(self.codes)

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

        Raises
        ------
        InputError
            `dtype` is neither float32 nor float64.
        """
        if dtype not in (np.float32, np.float64):
            raise InputError(f"dtype {dtype!r}; need numpy.float32 or numpy.float64")
        values = dequantize_blocks(
            self.codes, self.scales, scale_format=self.scale_format, dtype="float64"
        )
        with np.errstate(over="ignore", under="ignore"):  # 6 * 2^127 is Inf in float32
            return (values / (self.global_scale or 1.0)).astype(dtype)

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


def quantize(
    x: ArrayLike,
    format: str = "nvfp4",
    recipe: str = "cutlass",
    global_scale: float | Literal["auto"] | None = None,
    scale_format: ScaleFormat | str | None = None,
) -> BlockScaled:
    """Quantise a matrix, one scale per block of K.

    Parameters
    ----------
    x : (..., M, K)
        float32, or float16 or bfloat16, which convert exactly. float64 is refused:
        rounding it first would round twice. K is a multiple of the block, 16 or 32.
    recipe
        ``"cutlass"``, the only one: see `fp4ref.numerics.quantize`. A NaN makes its
        whole block NaN, an Inf saturates.
    global_scale
        None is one level of scales. ``"auto"`` is ``448 * 6 / amax``, 1.0 for an
        all-zero tensor; for UE4M3 only. It stays below 2^119, beyond which blocks would
        come back too small. A number is used as it is.

    Raises
    ------
    InputError
        Wrong type, shape, format, recipe or global scale.

    Warns
    -----
    SaturationWarning
        ``amax * global_scale`` of a block is above 6 times the largest scale (2688
        with UE4M3).
    UnderflowWarning
        The scales of most blocks that are not zero round to zero, or blocks come back
        too small because ``global_scale / scale`` is beyond float32.
    NonFiniteWarning
        `x` holds NaN or Inf.
    """
    require_choice(recipe, "recipe", RECIPES, gap="recipe")
    format = _require_format(format)
    chosen = _choose_scale_format(format, scale_format)
    vec_size, _ = FORMATS[format]
    values = _as_float32(x)
    if values.ndim < 2 or 0 in values.shape or values.shape[-1] % vec_size:
        raise InputError(
            f"x of shape {values.shape}; {format} takes (..., M, K) with K a multiple "
            f"of {vec_size}, the block that shares a scale. Pad K with zeros"
        )
    auto = isinstance(global_scale, str)
    if isinstance(global_scale, str):
        if global_scale != "auto" or chosen is not ScaleFormat.UE4M3:
            raise InputError(
                f"global_scale: {global_scale!r} with {chosen.name} scales; pass a "
                "number, None, or for UE4M3 scales 'auto'"
            )
        global_scale = min(float(amax_global_scale(values)), MOST_AUTO_SCALE)
    elif global_scale is not None:
        global_scale = _positive_float32(global_scale, "global_scale")
    norm = 1.0 if global_scale is None else global_scale
    _warn_of_losses(values, vec_size, norm, chosen, auto)
    codes, scales = quantize_blocks(
        values, norm=norm, scale_format=chosen, vec_size=vec_size
    )
    _warn_of_shrinking(scales, norm, chosen)
    return BlockScaled(codes, scales, format, chosen, global_scale)


def require_block_scaled(value: object, name: str) -> BlockScaled:
    """Return `value` if it is a `BlockScaled`.

    Raises
    ------
    InputError
        It is something else.
    """
    remedy = "Make one with fp4ref.quantize"
    return require_instance(value, name, BlockScaled, remedy)


def _as_float32(x: ArrayLike) -> NDArray[np.float32]:
    array = require_array(x, "x")
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        raise InputError(
            f"x: dtype {array.dtype}; need float32, float16 or bfloat16. Rounding "
            "anything else to float32 is for you to decide: .astype(numpy.float32)"
        )
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float32)


def _warn_of_losses(
    values: NDArray[np.float32],
    vec_size: int,
    norm: float,
    scale_format: ScaleFormat,
    auto: bool,
) -> None:
    """Warn of NaN, Inf and saturated blocks; `quantize` is two frames up."""
    magnitudes = np.abs(values.reshape(-1, vec_size))
    finite = np.isfinite(magnitudes)
    if not finite.all():
        nans = int(np.isnan(magnitudes).sum())
        warnings.warn(
            f"x holds {nans} NaN and {int((~finite).sum()) - nans} Inf; E2M1 has "
            "neither. A NaN makes its block NaN, an Inf becomes the largest value",
            NonFiniteWarning,
            stacklevel=3,
        )
    largest = _LARGEST_SCALE[scale_format]
    amax = magnitudes.max(axis=-1, where=finite, initial=0).astype(np.float64)
    # G = 2688 / amax is itself rounded, so amax * G may be an ulp above 2688.
    saturated = int((amax * norm > 6 * largest * (1 + 2.0**-20)).sum())
    if saturated:
        warnings.warn(
            f"{saturated} of {len(amax)} blocks saturate: their largest value times "
            f"the global scale exceeds 6 * {largest:g}, and is clipped to it. Pass "
            "global_scale='auto', or a smaller number",
            SaturationWarning,
            stacklevel=3,
        )
    live = int((amax > 0).sum())
    lost = int(((amax > 0) & (amax * norm <= 6 * _VANISHING[scale_format])).sum())
    if 2 * lost > live:
        remedy = (
            "Pass global_scale='auto'; if the number was amax / 2688, pass its inverse"
        )
        if auto:
            remedy = (
                "Multiply the matrix by a power of two: it is at float32's lower end"
                if norm >= MOST_AUTO_SCALE
                else f"The largest value, {amax.max():g}, leaves them no room; is it "
                "right?"
            )
        warnings.warn(
            f"{lost} of {live} blocks decode to zero: their largest value times the "
            f"global scale {norm:g} is so small that the block scale rounds to zero. "
            + remedy,
            UnderflowWarning,
            stacklevel=3,
        )


def _warn_of_shrinking(
    scales: NDArray[np.uint8], norm: float, scale_format: ScaleFormat
) -> None:
    """Warn where the factor of a block is cut to FLT_MAX; `quantize` is one frame up.

    A scale of 0 is `_warn_of_losses`'s.
    """
    factors = scale_format.decode(scales).astype(np.float64)
    largest = float(np.finfo(np.float32).max)
    shrunk = int(((factors > 0) & (norm > factors * largest)).sum())
    if shrunk:
        warnings.warn(
            f"{shrunk} of {scales.size} blocks come back too small: the global scale "
            f"{norm:g} over their block scale is beyond float32. Pass "
            "global_scale='auto', or a smaller number",
            UnderflowWarning,
            stacklevel=3,
        )


def _read_scales(
    scales: ArrayLike | SwizzledScales,
) -> tuple[NDArray[np.uint8], ScaleFormat | None]:
    """Return the scale codes, and their format where the array's type says it."""
    if isinstance(scales, SwizzledScales):
        return scales.unswizzle(), None
    array = require_array(scales, "scales")
    declared = _SCALE_DTYPES.get(array.dtype.name)
    if declared is None:
        return require_codes(array, "scales"), None
    array = array.view(np.uint8)
    if declared is ScaleFormat.UE4M3 and (array & 0x80).any():
        raise InputError(
            "scales: a float8_e4m3fn value has its sign set; scales do not"
        )
    return array, declared


def _require_format(format: str | None) -> str:
    if format is None:
        raise InputError(
            "no format given; a scale byte does not tell it: 0x38 is 1.0 as UE4M3 and "
            f"2^-71 as UE8M0. Pass format={' or '.join(map(repr, FORMATS))}"
        )
    return require_choice(format, "format", tuple(FORMATS), gap="block-format")


def _choose_scale_format(
    format: str, wanted: ScaleFormat | str | None, declared: ScaleFormat | None = None
) -> ScaleFormat:
    """Settle the scale format from the format, the argument and the array's type."""
    vec_size, legal = FORMATS[format]
    if wanted is not None:
        names = [name for f in ScaleFormat for name in (f, f.value)]
        wanted = require_choice(wanted, "scale_format", names)
    chosen = wanted if wanted is not None else declared or legal[0]
    for scale_format in legal:
        if chosen in (scale_format, scale_format.value):
            if declared not in (None, scale_format):
                raise InputError(
                    f"scale_format {scale_format.value!r}, but the scales are an array "
                    "of another type. Drop scale_format, or pass .view(numpy.uint8)"
                )
            return scale_format
    raise InputError(
        f"{format} with scale format {chosen!r}; with blocks of {vec_size} the MMA "
        f"takes {' or '.join(repr(f.value) for f in legal)}"
    )


def _check_shapes(
    codes: NDArray[np.uint8], scales: NDArray[np.uint8], format: str
) -> None:
    vec_size = FORMATS[format][0]
    if codes.ndim < 2 or 0 in codes.shape or codes.shape[-1] % vec_size:
        raise InputError(
            f"codes of shape {codes.shape}; {format} takes (..., M, K), one code per "
            f"byte, with K a multiple of {vec_size}. Pad K with code 0 and scale 0"
        )
    *batch, rows, k = codes.shape
    cols = k // vec_size
    if scales.shape == (*batch, rows, cols):
        return
    if scales.shape in {
        (*batch, sf_nbytes(rows, cols)),
        (*batch, *padded_shape(rows, cols)),
    }:
        raise LayoutError(
            f"scales of shape {scales.shape} look like the 128x4 layout of ({rows}, "
            f"{cols}) scales. Wrap them: SwizzledScales(flat, rows={rows}, cols={cols})"
        )
    fitting = [
        name
        for name, (size, _) in FORMATS.items()
        if scales.shape == (*batch, rows, k // size)
    ]
    raise InputError(
        f"scales of shape {scales.shape}; codes {codes.shape} in {format} need "
        f"{(*batch, rows, cols)}, one scale per {vec_size} elements. "
        + (f"The shape is that of format={fitting[0]!r}" if fitting else "Check K")
    )


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
    given = _positive_float32(global_scale, "global_scale")
    encode = (
        given
        if convention == "encode"
        else _positive_float32(1.0 / given, "1 / global_scale")
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


def _positive_float32(value: Any, name: str) -> float:
    """Round to float32; refuse what is not a positive finite number there."""
    try:
        with np.errstate(over="ignore", under="ignore"):
            rounded = float(np.float32(require_number(value, name)))
    except InputError:
        rounded = float("nan")
    if not 0 < rounded < float("inf"):
        raise InputError(
            f"{name}: {value!r:.60}; need a positive number that is finite in float32, "
            "or None for one level of scales"
        )
    return rounded


def _read_only(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy
