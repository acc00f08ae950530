"""checkpoints: small safetensors files, written byte by byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from fp4ref import BlockScaled, quantize

NAMES = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "uint8": "U8",
    "int64": "I64",
}


def parts(tensors: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The header's entries, and the bytes after it."""
    header: dict[str, Any] = {}
    data = b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": NAMES[np.asarray(array).dtype.name],
            "shape": list(np.shape(array)),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    return header, data


def joined(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write(path: Path, tensors: Mapping[str, Any]) -> Path:
    path.write_bytes(joined(*parts(tensors)))
    return path


def weights(n: int = 32, k: int = 64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, k)) * 0.02).astype(np.float32)


def modelopt(base: str, q: BlockScaled) -> dict[str, Any]:
    """What Model Optimizer stores of a layer."""
    assert q.global_scale is not None
    return {
        f"{base}.weight": q.packed(),
        f"{base}.weight_scale": q.scales.view(ml_dtypes.float8_e4m3fn),
        f"{base}.weight_scale_2": np.float32(1) / np.float32(q.global_scale),
        f"{base}.input_scale": np.float32(0.01),
    }


def compressed(base: str, q: BlockScaled) -> dict[str, Any]:
    """What compressed-tensors stores of a layer."""
    assert q.global_scale is not None
    return {
        f"{base}.weight_packed": q.packed(),
        f"{base}.weight_scale": q.scales.view(ml_dtypes.float8_e4m3fn),
        f"{base}.weight_global_scale": np.array([q.global_scale], np.float32),
        f"{base}.input_global_scale": np.array([300], np.float32),
    }


def quantised(seed: int = 0, recipe: str = "modelopt") -> BlockScaled:
    return quantize(weights(seed=seed), recipe=recipe, global_scale="auto")
