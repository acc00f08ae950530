"""original_recipes: the libraries' own quantisers on the CPU, where they are installed.

Each takes float32 or narrower values (M, K) and the global scale and returns codes (M,
K) and scale bytes (M, K / block). ``pip install torch torchao compressed-tensors
nvidia-modelopt``; MX needs torchao after 0.18. TransformerEngine's wheel needs CUDA, so
the file of its reference runs alone: FP4REF_TRANSFORMER_ENGINE names its sources.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
REFERENCE = "transformer_engine/pytorch/custom_recipes/reference_nvfp4.py"


class Scale(NamedTuple):
    """The global scale both ways, and the magnitude that it follows from."""

    encode: float
    decode: float
    largest: float
    two_levels: bool


def tensor(x: NDArray[Any]) -> Any:
    """A tensor of the same type; bfloat16 goes through float32, which is exact."""
    import torch

    wide = torch.from_numpy(np.ascontiguousarray(x.astype(np.float32)))
    return wide.to(getattr(torch, x.dtype.name))


def unpacked(packed: Any) -> U8:
    data = packed.view(__import__("torch").uint8).numpy()
    return np.stack([data & 15, data >> 4], axis=-1).reshape(len(data), -1)


def byte(scales: Any) -> U8:
    return scales.contiguous().view(__import__("torch").uint8).numpy()


def torchao(x: NDArray[Any], scale: Scale) -> tuple[U8, U8]:
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

    given = torch.tensor(scale.decode) if scale.two_levels else None
    scales, codes = nvfp4_quantize(tensor(x), 16, given)
    return unpacked(codes), byte(scales)


def mx(x: NDArray[Any], scale: Scale, *, mode: str) -> tuple[U8, U8]:
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx

    how = ScaleCalculationMode(mode)
    scales, codes = to_mx(tensor(x), torch.float4_e2m1fn_x2, 32, how)
    return unpacked(codes), byte(scales)


def modelopt(x: NDArray[Any], scale: Scale) -> tuple[U8, U8]:
    import torch
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor

    q, scales, _ = NVFP4QTensor.quantize(
        tensor(x), 16, weights_scaling_factor_2=torch.tensor(scale.decode)
    )
    return unpacked(q._quantized_data), byte(scales)


def modelopt_static(x: NDArray[Any], scale: Scale) -> tuple[U8, U8]:
    """Blocks' largest values are a quantizer's, as a calibration leaves them."""
    import torch
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import (
        NVFP4QTensor,
        _cast_per_block_scale_to_fp8,
    )

    blocks = tensor(x).float().abs().reshape(len(x), -1, 16).amax(-1)
    per_block = blocks / 6.0
    per_block[per_block == 0] = 1.0
    # As in get_weights_scaling_factor_from_quantizer, without a quantizer around it.
    scales = _cast_per_block_scale_to_fp8(
        per_block, torch.tensor(scale.decode * np.float32(2688)) / 6.0
    )
    q, scales, _ = NVFP4QTensor.quantize(
        tensor(x), 16, scales, torch.tensor(scale.decode)
    )
    return unpacked(q._quantized_data), byte(scales)


def compressed_tensors(x: NDArray[Any], scale: Scale) -> tuple[U8, U8]:
    import torch
    from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8
    from compressed_tensors.quantization import quant_scheme
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.utils.helpers import calculate_qparams

    options = quant_scheme.NVFP4["weights"]
    values = tensor(x)
    blocks = values.reshape(len(x), -1, 16)
    whole = torch.tensor([scale.encode])
    low, high = blocks.amin(-1), blocks.amax(-1)
    scales, _ = calculate_qparams(low, high, options, whole)
    codes = quantize(values, scales, None, options, global_scale=whole)
    packed = pack_fp4_to_uint8(codes)
    return unpacked(packed), byte(scales.to(torch.float8_e4m3fn))


def transformer_engine(
    x: NDArray[Any], scale: Scale, *, measure: str = "", most: int = 448, rows: int = 1
) -> tuple[U8, U8]:
    import torch

    missing = -len(x) % rows  # its quantizer pads rows with zeros
    padded = np.concatenate([x, np.zeros((missing, x.shape[1]), x.dtype)])
    codes, scales = reference().NVFP4QuantizerRef._quantize_blockwise_reference(
        tensor(padded),
        torch.tensor([scale.largest]),
        16,
        rows,
        pow_2_scales=False,
        nvfp4_use_4over6=bool(measure),
        nvfp4_e4m3_max=most,
        nvfp4_4over6_err_mode=measure or "MAE",
        eps=0.0,
    )
    return unpacked(codes)[: len(x)], byte(scales)[: len(x)]


def reference() -> Any:
    """The file by itself; what it imports of its package has no part in this."""
    name = "reference_nvfp4_alone"
    if name not in sys.modules:
        inner = "transformer_engine.pytorch.custom_recipes"
        quantized = types.ModuleType("transformer_engine.pytorch.quantized_tensor")
        quantized.QuantizedTensorStorage = quantized.Quantizer = object  # type: ignore[attr-defined]
        recipes = types.ModuleType(inner)
        recipes.gemm, recipes.reference_utils = Mock(), Mock()  # type: ignore[attr-defined]
        sys.modules |= {inner: recipes, quantized.__name__: quantized}
        path = Path(os.environ["FP4REF_TRANSFORMER_ENGINE"]) / REFERENCE
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class Original(NamedTuple):
    """A recipe's original: what must be installed, and what runs it."""

    package: str
    quantise: Callable[[NDArray[Any], Scale], tuple[U8, U8]]

    def why_not(self) -> str:
        """Return why it cannot run here; empty if it can."""
        if importlib.util.find_spec("torch") is None:
            return "torch is not installed: pip install torch"
        if self.package == "transformer_engine":
            folder = os.environ.get("FP4REF_TRANSFORMER_ENGINE", "")
            if not folder or not (Path(folder) / REFERENCE).exists():
                return "FP4REF_TRANSFORMER_ENGINE names no folder with its sources"
            return ""
        if importlib.util.find_spec(self.package.replace("nvidia-", "")) is None:
            named = self.package.replace("_", "-")
            return f"{self.package} is not installed: pip install {named}"
        if "mode" in getattr(self.quantise, "keywords", {}):
            from torchao.prototype.mx_formats import mx_tensor

            if not hasattr(mx_tensor, "_e8m0_scale_to_reciprocal_fp32"):
                return (
                    "torchao 0.18 divides by the scale; put newer sources on the path"
                )
        return ""


ORIGINALS = {
    "torchao": Original("torchao", torchao),
    "modelopt": Original("nvidia-modelopt", modelopt),
    "modelopt_static": Original("nvidia-modelopt", modelopt_static),
    "compressed_tensors": Original("compressed_tensors", compressed_tensors),
    "transformer_engine": Original("transformer_engine", transformer_engine),
    "transformer_engine_2d": Original(
        "transformer_engine", partial(transformer_engine, rows=16)
    ),
}
ORIGINALS |= {
    f"mx_{mode}": Original("torchao", partial(mx, mode=mode))
    for mode in ("floor", "even", "ceil", "rceil")
}
ORIGINALS |= {
    f"four_over_six_{measure}_{most}_tie_six": Original(
        "transformer_engine",
        partial(transformer_engine, measure=measure.upper(), most=most),
    )
    for measure in ("mae", "mse")
    for most in (448, 256)
}
