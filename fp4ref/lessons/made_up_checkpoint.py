"""made_up_checkpoint: a small sharded checkpoint, and the mistakes that others shipped.

Two blocks of a model with made-up numbers. `make` writes two shards and their index:

    layers.0.self_attn.qkv_proj    BF16, three layers joined in one
    layers.0.self_attn.o_proj      BF16, with outlier channels
    layers.0.mlp.gate_proj, up     NVFP4 as ModelOpt stores it, served as one
    layers.0.mlp.down_proj         BF16
    layers.1.mlp.gate_proj, up     NVFP4 as compressed-tensors stores it
    layers.1.mlp.down_proj         F16

and two tensors that cannot be used. `MISTAKES` changes one thing each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref.files.safetensors_file import DTYPES
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.global_scales import automatic
from fp4ref.tensors.quantize import WholeScale, quantize
from fp4ref.tensors.recipes import RECIPES

K: Final = 256
OUTLIERS: Final = (201, 17)
"""Channels of `o_proj` that stand out, the worst first."""
O_PROJ: Final = "model.layers.0.self_attn.o_proj.weight"
QKV: Final = "model.layers.0.self_attn.qkv_proj.weight"
PARTS: Final = (128, 64, 64)
"""Rows of q, k and v in `QKV`."""
_GATE, _UP = "mlp.gate_proj", "mlp.up_proj"
_CODES: Final = {np.dtype(kind): name for name, kind in DTYPES.items()}

Tensors = dict[str, NDArray[Any]]


def write(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a safetensors file: length and JSON of a header, then the bytes."""
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def make(folder: Path) -> Path:
    """Write the checkpoint into a folder that is there; return the folder."""
    shards = (_first_block(), _second_block())
    where: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write(folder / name, tensors)
        where |= dict.fromkeys(tensors, name)
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def weights(rows: int, seed: int, size: float = 0.02) -> NDArray[np.float32]:
    """Return made-up weights (rows, K): normal, with heavier tails than that."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((rows, K)) * np.exp(0.3 * rng.standard_normal((rows, 1)))
    return (made * size).astype(np.float32)


def qkv_weights() -> NDArray[Any]:
    """Return the weight `QKV`, bfloat16: q, k and v, of which v is the smallest."""
    joined = [
        weights(rows, seed, size)
        for rows, seed, size in zip(PARTS, (1, 2, 3), (0.05, 0.02, 0.002), strict=True)
    ]
    return np.concatenate(joined).astype(ml_dtypes.bfloat16)


def _first_block() -> Tensors:
    base = "model.layers.0"
    o = weights(128, 4)
    for channel, times in zip(OUTLIERS, (30, 15), strict=True):
        o[:, channel] *= times
    return {
        QKV: qkv_weights(),
        O_PROJ: o.astype(ml_dtypes.bfloat16),
        **_modelopt(f"{base}.{_GATE}", *_served_as_one(5, "modelopt")[:1]),
        **_modelopt(f"{base}.{_UP}", *_served_as_one(5, "modelopt")[1:]),
        f"{base}.mlp.down_proj.weight": weights(64, 7).astype(ml_dtypes.bfloat16),
        f"{base}.input_layernorm.weight": np.ones(K, ml_dtypes.bfloat16),
    }


def _second_block() -> Tensors:
    base = "model.layers.1"
    gate, up = _served_as_one(8, "compressed_tensors")
    return {
        **_compressed(f"{base}.{_GATE}", gate),
        **_compressed(f"{base}.{_UP}", up),
        f"{base}.mlp.down_proj.weight": weights(64, 10).astype(np.float16),
        "model.rotary.inv_freq": np.ones((4, 24), np.float32),
    }


def _served_as_one(seed: int, recipe: str) -> list[BlockScaled]:
    """Quantise two layers with one global scale, of the larger of the two."""
    pair = [weights(64, seed), weights(64, seed + 1)]
    largest = float(max(np.abs(w).max() for w in pair))
    encode, decode = automatic(np.asarray(largest, np.float32), RECIPES[recipe])
    scale = WholeScale(float(encode), float(decode), largest)
    return [quantize(w, recipe=recipe, global_scale=scale) for w in pair]


def _modelopt(base: str, q: BlockScaled) -> Tensors:
    return {
        f"{base}.weight": q.packed(),
        f"{base}.weight_scale": q.scales.view(ml_dtypes.float8_e4m3fn),
        f"{base}.weight_scale_2": np.array(1 / _scale(q), np.float32),
    }


def _compressed(base: str, q: BlockScaled) -> Tensors:
    return {
        f"{base}.weight_packed": q.packed(),
        f"{base}.weight_scale": q.scales.view(ml_dtypes.float8_e4m3fn),
        f"{base}.weight_global_scale": np.array([_scale(q)], np.float32),
    }


def _scale(q: BlockScaled) -> np.float32:
    assert q.global_scale is not None
    return np.float32(q.global_scale)


# -- mistakes --------------------------------------------------------------------------

WRONG: Final = f"model.layers.0.{_GATE}.weight"
"""The layer that each mistake is in."""
_BASE: Final = f"model.layers.0.{_GATE}"


def _divisor(tensors: Tensors) -> None:
    tensors[f"{_BASE}.weight_scale_2"] = 1 / tensors[f"{_BASE}.weight_scale_2"]


def _unequal(tensors: Tensors) -> None:
    alone = quantize(weights(64, 5, 0.3), recipe="modelopt", global_scale="auto")
    tensors |= _modelopt(_BASE, alone)


def _half(tensors: Tensors) -> None:
    tensors[f"{_BASE}.weight_scale"] = tensors[f"{_BASE}.weight_scale"][:, ::2]


def _twice(tensors: Tensors) -> None:
    codes = tensors.pop(f"{_BASE}.weight").astype(ml_dtypes.bfloat16)
    for part in ("weight_scale", "weight_scale_2"):
        del tensors[f"{_BASE}.{part}"]
    tensors[f"{_BASE}.weight"] = codes


def _left(tensors: Tensors) -> None:
    for part in ("weight_scale", "weight_scale_2"):
        del tensors[f"{_BASE}.{part}"]
    tensors[f"{_BASE}.weight"] = weights(64, 5)
    other = _served_as_one(8, "modelopt")[0]
    tensors |= _modelopt(f"model.layers.1.{_GATE}", other)


def _absent(tensors: Tensors) -> None:
    del tensors[f"{_BASE}.weight_scale_2"]


MISTAKES: Final[Mapping[str, Callable[[Tensors], None]]] = MappingProxyType(
    {
        "a divisor where the name says multiplier": _divisor,
        "layers that are served as one, scaled apart": _unequal,
        "half of the scales": _half,
        "quantised twice": _twice,
        "left in float32": _left,
        "no global scale": _absent,
    }
)


def make_wrong(folder: Path, mistake: str) -> Path:
    """Write one block with a mistake of `MISTAKES`; return the file."""
    tensors = _first_block()
    MISTAKES[mistake](tensors)
    path = folder / f"{mistake.replace(' ', '_')}.safetensors"
    write(path, tensors)
    return path
