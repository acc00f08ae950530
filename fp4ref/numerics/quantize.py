"""quantize: block-scaled quantisation by CUTLASS's rule, and the way back.

One scale per block of `vec_size` elements, all in float32, as the output stage of a
block-scaled GEMM computes it (CUTLASS ``LinCombBlockScaleFactor``, file
``epilogue/fusion/sm100_visitor_store_tma_warpspecialized.hpp``)::

    amax  = max.NaN(0, |z_0|, |z_1|, ...)
    scale = encode(amax * (norm * (1/6)))            UE4M3: rn, UE8M0: round up
    s     = min.NaN(norm * (1 / decode(scale)), FLT_MAX)
    code  = encode_e2m1(z_i * s)

A block decodes to ``code * scale / norm``. Elements of other formats have their own
largest value for the 6 of E2M1.

CUTLASS takes ``rcp.approx.ftz.f32`` for both reciprocals. On 6, on the largest value of
each element format, whose significands are 1.75 and 1.875, and on each of the eight
UE4M3 significands that instruction returns the correctly rounded quotient
(measured on sm_90; its error depends on the significand only), so true division
gives the same bits. The reciprocal of a UE8M0 scale is a power of two and exact: the
one with code ``254 - scale``.

What falls out of the rule:

* A zero block has scale 0x00 and codes 0x0 or 0x8 (the sign of the zero stays).
* A block whose scale rounds to 0 has scale 0x00; its non-zero elements saturate to
  0x7 or 0xF, and it decodes to 0.
* One NaN makes the scale NaN and all codes 0x7.
* One Inf makes the scale the largest finite one; the Inf becomes 0x7 or 0xF.
"""

from __future__ import annotations

from typing import Final, Literal, overload

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_choice, require_number
from fp4ref.errors import InputError
from fp4ref.numerics.element import Element
from fp4ref.numerics.elements import (
    BLOCKS,
    ELEMENTS,
    ScaleFormat,
    element,
    require_scale_format,
)
from fp4ref.numerics.formats import (
    F32,
    F64,
    U8,
    decode_e2m1,
    require_codes,
    require_float32,
    tie_to_even_bounds,
)
from fp4ref.numerics.subnormals import require_subnormals

_E2M1_MAX: Final = np.float32(element("e2m1").largest)
_UE4M3_MAX: Final = np.float32(element("ue4m3").largest)
_LARGE: Final = 1 << 18
"""Elements from which a compiled pass pays."""

_FLT_MAX: Final = np.finfo(np.float32).max


def quantize_blocks(
    z: npt.ArrayLike,
    *,
    norm: float,
    scale_format: ScaleFormat,
    vec_size: int = 16,
    element_format: str = "e2m1",
) -> tuple[U8, U8]:
    """Quantise every run of `vec_size` elements of the last dimension.

    Parameters
    ----------
    z : (..., K), float32
    norm
        The factor that maps `z` to the scaled range, rounded to float32. CUTLASS:
        ``norm_constant``. `amax_global_scale` gives the one that uses all of UE4M3.
    vec_size
        16 or 32.
    element_format
        Of the codes: one of 8 bits or less.

    Returns
    -------
    codes : (..., K)
        One per byte.
    scales : (..., K / vec_size)
        In `scale_format`.

    Raises
    ------
    InputError
        `z` is not float32, K is not a multiple of `vec_size`, or `norm` is not a
        positive finite number.
    """
    require_subnormals()
    require_scale_format(scale_format, "quantize_blocks")
    array = require_float32(z, "quantize_blocks z")
    vec_size = require_choice(
        vec_size,
        "quantize_blocks vec_size",
        (16, 32),
        "Scale vectors of NVFP4 are 16 long, of MXFP4 32",
        gap="block-format",
    )
    if array.ndim == 0 or array.shape[-1] % vec_size:
        raise InputError(
            f"quantize_blocks z: shape {array.shape}; the last dimension must be a "
            f"multiple of vec_size {vec_size}. Pad it with zeros"
        )
    factor = _float32_norm(norm)
    to = _element_of_codes(element_format, "quantize_blocks")
    blocks = array.reshape(*array.shape[:-1], array.shape[-1] // vec_size, vec_size)
    with np.errstate(all="ignore"):
        if to.name == "e2m1" and _is_large(array):
            return _compiled(blocks, factor, scale_format, to)
        amax = np.abs(blocks).max(axis=-1)  # np.max propagates NaN, as max.NaN does
        # 0x3E2AAAAB for E2M1, as rcp.approx.ftz(6)
        target = amax * (factor * (np.float32(1.0) / np.float32(to.largest)))
        scales = scale_format.encode(target)
        reciprocal = np.float32(1.0) / scale_format.decode(scales)
        s = np.minimum(factor * reciprocal, _FLT_MAX)  # 1/0 becomes FLT_MAX
        codes = to.encode(blocks * s[..., np.newaxis]).astype(np.uint8, copy=False)
    return codes.reshape(array.shape), scales


def _is_large(array: F32) -> bool:
    """Whether a compiled pass pays, and there is a compiler."""
    if array.size < _LARGE:
        return False
    from fp4ref.numerics import compiled

    return compiled.AVAILABLE


def _compiled(
    blocks: F32, factor: np.float32, scale_format: ScaleFormat, to: Element
) -> tuple[U8, U8]:
    """Do as `quantize_blocks`, in two passes over each block."""
    from fp4ref.numerics import compiled, quantize_jit

    flat = np.ascontiguousarray(blocks).reshape(-1, blocks.shape[-1])
    reciprocals = np.float32(1.0) / scale_format.decode(np.arange(256, dtype=np.uint8))
    codes, scales = np.empty(flat.shape, np.uint8), np.empty(len(flat), np.uint8)
    compiled.in_pieces(
        quantize_jit.quantize_e2m1,
        len(flat),
        compiled.PASS // flat.shape[1],
        flat,
        factor * (np.float32(1.0) / np.float32(to.largest)),
        scale_format is ScaleFormat.UE8M0,
        np.minimum(factor * reciprocals, _FLT_MAX),
        tie_to_even_bounds(decode_e2m1(np.arange(8, dtype=np.uint8))).view(np.int32),
        codes,
        scales,
    )
    shape = blocks.shape[:-1]
    return codes.reshape(*shape[:-1], -1), scales.reshape(shape)


def block_magnitudes(z: F32, vec_size: int) -> tuple[F32, int, int]:
    """Return the largest finite magnitude of each block, and how many NaN and Inf.

    Parameters
    ----------
    z : (..., K)
        K is a multiple of `vec_size`.

    Returns
    -------
    (blocks,) float32
        0 for a block without a finite number.
    int, int
    """
    blocks = np.ascontiguousarray(z).reshape(-1, vec_size)
    if _is_large(z):
        from fp4ref.numerics import compiled, quantize_jit

        largest = np.empty(len(blocks), np.float32)
        least = compiled.PASS // vec_size
        special = compiled.in_pieces(
            quantize_jit.block_magnitudes, len(blocks), least, blocks, largest
        )
        nans, infs = np.sum(special, axis=0).tolist()
        return largest, nans, infs
    magnitudes = np.abs(blocks)
    finite = np.isfinite(magnitudes)
    nans = int(np.isnan(magnitudes).sum())
    largest = magnitudes.max(axis=-1, where=finite, initial=0)
    return largest, nans, int((~finite).sum()) - nans


def _element_of_codes(name: str, function: str) -> Element:
    """Return the format of the codes by its name, or by that of a block format."""
    scales = {each.value for each in ScaleFormat}
    of_8_bits = (n for n, e in ELEMENTS.items() if e.bits <= 8 and n not in scales)
    legal = (*of_8_bits, *BLOCKS)
    return element(require_choice(name, f"{function} element_format", legal))


def _float32_norm(norm: float) -> np.float32:
    """Return `norm` as float32 if it is positive and finite there."""
    number = require_number(norm, "quantize_blocks norm")
    with np.errstate(all="ignore"):
        factor = np.float32(number)
    if not (0 < factor < np.inf):
        raise InputError(
            f"quantize_blocks norm: {norm!r}; need a positive number that is finite "
            "in float32. Use 1.0 for no global scale, or amax_global_scale(z)"
        )
    return factor


def largest_magnitude(x: F32) -> np.float32:
    """Return the largest magnitude, Inf among them; NaNs do not count."""
    if _is_large(x) and x.shape[-1] % 16 == 0:
        largest, _, infs = block_magnitudes(x, 16)
        return np.float32(np.inf) if infs else np.float32(largest.max())
    return np.float32(np.fmax.reduce(np.abs(x).ravel(), initial=np.float32(0)))


def amax_global_scale(x: npt.ArrayLike) -> np.float32:
    """Return ``448 * 6 / amax(|x|)``, the factor that maps `x` onto all of UE4M3.

    This is the factor to multiply by (the *encode* scale of TransformerEngine and
    FlashInfer); checkpoints that store ``amax / 2688`` hold its inverse. An all-zero,
    empty or infinite tensor gets 1.0, a quotient above FLT_MAX gets FLT_MAX. NaNs do
    not count: they poison their own block, not the tensor.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    amax = largest_magnitude(require_float32(x, "amax_global_scale x"))
    if amax == 0 or np.isinf(amax):
        return np.float32(1.0)
    with np.errstate(over="ignore"):
        return np.float32(min(_UE4M3_MAX * _E2M1_MAX / amax, _FLT_MAX))


@overload
def dequantize_blocks(
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    dtype: Literal["float32"] = "float32",
    element_format: str = "e2m1",
) -> F32: ...
@overload
def dequantize_blocks(
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    dtype: Literal["float64"],
    element_format: str = "e2m1",
) -> F64: ...
def dequantize_blocks(
    codes: npt.ArrayLike,
    scales: npt.ArrayLike,
    *,
    scale_format: ScaleFormat,
    dtype: Literal["float32", "float64"] = "float32",
    element_format: str = "e2m1",
) -> F32 | F64:
    """Return ``code * scale``; the global scale is not divided out.

    Exact, except that in float32 a UE8M0 scale near either end of its range makes
    Inf or a rounded subnormal. Use float64 there.

    Parameters
    ----------
    codes : (..., K)
        Of `element_format`, one per byte.
    scales : (..., K / vec_size)
        The vector size is the quotient of the two last dimensions.

    Raises
    ------
    InputError
        The shapes do not fit together, or a code has more bits than its format.
    """
    require_subnormals()
    require_scale_format(scale_format, "dequantize_blocks")
    dtype = require_choice(
        dtype,
        "dequantize_blocks dtype",
        ("float32", "float64"),
        "Convert the result for anything narrower",
    )
    of = _element_of_codes(element_format, "dequantize_blocks")
    highest = (1 << of.bits) - 1
    data = require_codes(codes, "dequantize_blocks codes", highest=highest)
    scale_codes = require_codes(scales, "dequantize_blocks scales")
    if (
        0 in (data.ndim, scale_codes.ndim)
        or data.shape[:-1] != scale_codes.shape[:-1]
        or scale_codes.shape[-1] == 0
        or data.shape[-1] % scale_codes.shape[-1]
    ):
        raise InputError(
            f"dequantize_blocks: codes {data.shape} and scales {scale_codes.shape}; "
            "need the same leading dimensions and a whole number of elements per "
            "scale. Pass scales as a (rows, K / vec_size) matrix, not in tiled layout"
        )
    values = of.values(data).astype(dtype)
    factors = scale_format.decode(scale_codes).astype(dtype)
    vec_size = data.shape[-1] // scale_codes.shape[-1]
    with np.errstate(all="ignore"):
        products: F32 | F64 = values * np.repeat(factors, vec_size, axis=-1)
    return products
