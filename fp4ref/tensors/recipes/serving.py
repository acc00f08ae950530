"""serving: fp4_quantize of TensorRT-LLM, FlashInfer and vLLM, one formula in three.

    sf  = S * (amax * rcp(6));  scale = e4m3(sf)
    out = rcp(scale * rcp(S))                        rcp is rcp.approx.ftz.f32

They differ in what counts as zero, where `out` is 0 in place of Inf: TensorRT-LLM asks
whether `sf` is, FlashInfer whether amax is, vLLM whether the scale is. So a block whose
scale rounds to 0 has codes of 6, and in FlashInfer its exact zeros, 0 * Inf, become 6
too; it decodes to 0 all the same. With UE8M0 scales each has a rule of its own, and in
FlashInfer and vLLM S takes no part.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fp4ref.numerics.elements import ScaleFormat
from fp4ref.numerics.formats import F32, encode_ue4m3, encode_ue8m0
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.tensors.recipes.recipe import SIXTH, Blocks, Made, Recipe

_ZERO: Final = np.float32(0)
_ONE: Final = np.float32(1)


def _power_of_two(exponent: F32) -> F32:
    return np.ldexp(_ONE, exponent.astype(np.int32))


def _factor(b: Blocks, scale: F32) -> F32:
    reciprocal = rcp_approx_ftz(np.atleast_1d(b.encode))
    return rcp_approx_ftz(scale * reciprocal)


def trtllm(b: Blocks) -> Made:
    """Zero where the scale before rounding is; UE8M0 rounds it up."""
    wanted = b.encode * (b.amax * SIXTH)
    scales = b.scale_format.encode(wanted)
    factor = _factor(b, b.scale_format.decode(scales))
    return Made(b.times(np.where(wanted != 0, factor, _ZERO)), scales, wanted)


def flashinfer(b: Blocks) -> Made:
    """Zero where amax is; UE8M0 ignores S, and its code 0 has factor 1."""
    if b.scale_format is ScaleFormat.UE8M0:
        wanted = b.amax * SIXTH
        scales = encode_ue8m0(wanted)
        power = _power_of_two(np.float32(127) - scales)
        factor = np.where(scales == 0, _ONE, power)
        return Made(b.times(np.where(wanted != 0, factor, _ZERO)), scales, wanted)
    wanted = b.encode * (b.amax * SIXTH)
    scales = encode_ue4m3(wanted)
    factor = _factor(b, b.scale_format.decode(scales))
    return Made(b.times(np.where(b.amax != 0, factor, _ZERO)), scales, wanted)


def flashinfer_exact(b: Blocks) -> Made:
    """TransformerEngine's order, without its bound of FLT_MAX."""
    wanted = b.amax * (b.encode * SIXTH)
    scales = encode_ue4m3(wanted)
    factor = _ONE / (b.scale_format.decode(scales) * (_ONE / b.encode))
    return Made(b.times(np.where(b.amax != 0, factor, _ZERO)), scales, wanted)


def vllm(b: Blocks) -> Made:
    """Zero where the scale is; UE8M0 rounds amax up from 1.75 of a power of two."""
    if b.scale_format is ScaleFormat.UE8M0:
        bits = np.ascontiguousarray(b.amax).view(np.uint32)
        exponent = (bits + np.uint32(1 << 21)) >> np.uint32(23) & np.uint32(0xFF)
        scales = np.minimum(np.maximum(exponent, 2) - 2, 254).astype(np.uint8)
        # The kernel puts the code into the exponent field: code 0 is 0 there, not
        # 2^-127, and the block is cleared.
        scale = (scales.astype(np.uint32) << np.uint32(23)).view(np.float32)
        codes = b.times(np.where(scale != 0, _ONE / scale, _ZERO))
        return Made(codes, scales, b.amax * np.float32(0.25))
    wanted = b.encode * (b.amax * SIXTH)
    scales = encode_ue4m3(wanted)
    scale = b.scale_format.decode(scales)
    return Made(b.times(np.where(scale != 0, _factor(b, scale), _ZERO)), scales, wanted)


_BOTH: Final = (ScaleFormat.UE4M3, ScaleFormat.UE8M0)
_HALVES: Final = ("float16", "bfloat16")
_NOT_BESIDE: Final = "no; rcp.approx is a table measured on an H200"
_FORMULA: Final = "scale = S * (amax * 1/6); code = x * rcp(scale * rcp(S))"

RECIPES = (
    Recipe(
        name="trtllm",
        summary=f"{_FORMULA}; 0 if the scale is 0 before rounding",
        source="TensorRT-LLM cpp/tensorrt_llm/kernels/quantization.cuh",
        version="0193dbd4",
        beside=_NOT_BESIDE,
        rule=trtllm,
        nan="drop",
        formats=("nvfp4", "mxfp4"),
        scale_formats=_BOTH,
        dtypes=_HALVES,
    ),
    Recipe(
        name="flashinfer",
        summary=f"{_FORMULA}; 0 if amax is 0",
        source="FlashInfer csrc/nv_internal/tensorrt_llm/kernels/"
        "quantization_utils.cuh",
        version="fb28d7242 (2026-08)",
        beside=_NOT_BESIDE,
        rule=flashinfer,
        nan="drop",
        formats=("nvfp4", "mxfp4"),
        scale_formats=_BOTH,
        dtypes=_HALVES,
    ),
    Recipe(
        name="flashinfer_exact",
        summary="scale = amax * (S * 1/6); code = x / (scale * (1/S)) by a reciprocal",
        source="the same, TE_EXACT_NVFP4",
        version="014327abd (2026-09)",
        beside="no; its formula, written again with scalars",
        rule=flashinfer_exact,
        nan="drop",
        dtypes=_HALVES,
    ),
    Recipe(
        name="vllm",
        summary=f"{_FORMULA}; 0 if the scale is 0",
        source="vLLM csrc/libtorch_stable/quantization/fp4/nvfp4_utils.cuh",
        version="20b4ad8e",
        beside=_NOT_BESIDE,
        rule=vllm,
        nan="drop",
        formats=("nvfp4", "mxfp4"),
        scale_formats=_BOTH,
        dtypes=_HALVES,
    ),
)
