"""checkpoint: the weights of a safetensors checkpoint, and what is wrong with them.

A layer is known by the names of its tensors, which say the convention too; bytes do
not, and nothing is guessed:

    weight            floats (N, K)
    weight            uint8 (N, K / 2) with weight_scale, E4M3 (N, K / 16), and
                      weight_scale_2, the global scale to multiply by: ModelOpt
    weight_packed     the same bytes with weight_scale and weight_global_scale, the
                      number to divide by: compressed-tensors

Both store element 0 of a pair in the low nibble and the scales row-major. Sources:
Model Optimizer nvfp4_tensor.py, compressed-tensors compressors/nvfp4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.safetensors_file import Stored, read_sharded
from fp4ref.tensors.block_scaled import BlockScaled

Kind = Literal["float", "modelopt", "compressed_tensors", "other"]
FLOATS: Final = ("F32", "F16", "BF16")

_FUSED: Final = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
"""Layers that serving libraries join, with one global scale for all of them."""

_LARGEST_WEIGHT: Final = 2688.0
"""A larger weight says that the global scale is the wrong way round."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A weight of a checkpoint.

    Attributes
    ----------
    shape
        (N, K) in elements; of another tensor its own shape.
    why_not
        Why it cannot be quantised or multiplied; empty if it can.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    why_not: str = ""


@dataclass(frozen=True, eq=False)
class Weight:
    """One weight.

    Attributes
    ----------
    values
        float32, float16 or bfloat16 (N, K) as stored; of NVFP4 the decoded float32.
    quantised
        The codes and scales, where it is stored so.
    warnings
        What looks wrong, in sentences.
    """

    layer: Layer
    values: NDArray[Any]
    quantised: BlockScaled | None
    warnings: tuple[str, ...]


class Checkpoint:
    """A checkpoint on disk: its header is read, its tensors are not.

    Parameters
    ----------
    path
        A .safetensors file, an index of shards, or a folder with either.

    Raises
    ------
    UnreadableFile
        It is missing, damaged or something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.tensors: Mapping[str, Stored] = read_sharded(path)
        self.layers: dict[str, Layer] = {
            name: layer
            for name in self.tensors
            if (layer := self._layer(name)) is not None
        }

    def _layer(self, name: str) -> Layer | None:
        """Say what a tensor is; None for a part of a layer that another names."""
        stored = self.tensors[name]
        base, _, part = name.rpartition(".")
        if part.startswith(("weight_scale", "weight_global", "input_")):
            return None
        packed = stored.dtype == "U8" and len(stored.shape) == 2
        if part == "weight_packed" and packed:
            return self._packed(base, stored, "compressed_tensors")
        if part == "weight" and packed:
            return self._packed(base, stored, "modelopt")
        if stored.dtype not in FLOATS:
            why = f"{stored.dtype} is no float that quantising takes"
        elif len(stored.shape) != 2:
            why = f"shape {stored.shape}; a weight is a matrix (N, K)"
        elif 0 in stored.shape or stored.shape[1] % 16:
            why = f"K = {stored.shape[1]} is no multiple of 16"
        else:
            return Layer(name, "float", stored.shape, stored.dtype)
        return Layer(name, "other", stored.shape, stored.dtype, why)

    def _packed(self, base: str, stored: Stored, kind: Kind) -> Layer:
        """Check that what belongs to packed codes is there and fits."""
        n, half = stored.shape
        global_name = "weight_scale_2" if kind == "modelopt" else "weight_global_scale"
        other_name = "weight_global_scale" if kind == "modelopt" else "weight_scale_2"
        scales = self.tensors.get(f"{base}.weight_scale")
        whole = self.tensors.get(f"{base}.{global_name}")
        why = ""
        if scales is None:
            why = "weight_scale is absent: codes without block scales have no values"
        elif scales.dtype != "F8_E4M3":
            why = f"weight_scale is {scales.dtype}; NVFP4 has F8_E4M3"
        elif half % 8 or scales.shape != (n, half // 8):
            why = _misfit(scales.shape, n, 2 * half)
        elif f"{base}.{other_name}" in self.tensors:
            why = (
                f"{other_name} belongs to the other convention, which has its global "
                "scale the other way round"
            )
        elif whole is None:
            why = f"{global_name} is absent: the size of the weights is unknown"
        elif whole.dtype != "F32" or any(extent != 1 for extent in whole.shape):
            why = f"{global_name} is {whole.dtype} {whole.shape}; need one F32 number"
        return Layer(stored.name, kind, (n, 2 * half), "NVFP4", why)

    def global_scale(self, name: str) -> float | None:
        """Return the global scale that a layer stores; None if it has none."""
        base = name.rpartition(".")[0]
        for each in ("weight_scale_2", "weight_global_scale"):
            stored = self.tensors.get(f"{base}.{each}")
            if stored is not None and stored.dtype == "F32":
                return (
                    float(stored.read().ravel()[0]) if 0 not in stored.shape else None
                )
        return None

    def load(self, name: str) -> Weight:
        """Read one weight.

        Raises
        ------
        InputError
            There is no such tensor, or it cannot be used; the message says why.
        """
        layer = self.layers.get(name)
        if layer is None:
            some = ", ".join(list(self.layers)[:5])
            raise InputError(
                f"{self.path} has no weight {name!r:.80}; it has {some}"
                f"{', ...' if len(self.layers) > 5 else ''}"
            )
        if layer.why_not:
            raise InputError(f"{self.path}: {name}: {layer.why_not}")
        if layer.kind == "float":
            values = self.tensors[name].read()
            return Weight(
                layer, values, None, (*_odd_values(values), *self._left(name))
            )
        q, said = self._quantised(layer)
        return Weight(layer, q.dequantize(), q, (*said, *self._fused(name)))

    def _quantised(self, layer: Layer) -> tuple[BlockScaled, list[str]]:
        base = layer.name.rpartition(".")[0]
        scale = self.global_scale(layer.name)
        where = f"{self.path}: {layer.name}"
        if scale is None or not 0 < scale < np.inf:
            raise InputError(f"{where}: global scale {scale}; need a positive number")
        scales = self.tensors[f"{base}.weight_scale"].read().view(np.uint8)
        if (scales == 0x7F).any() or (scales > 0x7F).any():
            at = np.argwhere(scales >= 0x7F)[0]
            raise InputError(
                f"{where}: weight_scale[{at[0]}, {at[1]}] is 0x{scales[tuple(at)]:02X}"
                ", NaN or negative: a scale that overflowed when it was written"
            )
        convention: Literal["encode", "decode"]
        convention = "decode" if layer.kind == "modelopt" else "encode"
        q = BlockScaled.from_packed(
            self.tensors[layer.name].read(),
            scales,
            format="nvfp4",
            global_scale=scale,
            global_scale_convention=convention,
        )
        largest = float(np.abs(q.dequantize(np.float64)).max())
        said = []
        if largest > _LARGEST_WEIGHT:
            verb = "multiplied by" if convention == "decode" else "divided by"
            said.append(
                f"{layer.name}: the largest weight is {largest:.4g} when {verb} the "
                f"global scale {scale:g}. It looks like the inverse: a "
                f"{'divisor' if convention == 'decode' else 'multiplier'} under the "
                "other convention's name"
            )
        return q, said

    def _fused(self, name: str) -> list[str]:
        """Say where layers that are served as one have unequal global scales."""
        base, _, part = name.rpartition(".")
        parent, _, leaf = base.rpartition(".")
        for group in _FUSED:
            if leaf not in group:
                continue
            scales = {
                each: self.global_scale(f"{parent}.{each}.{part}")
                for each in group
                if f"{parent}.{each}.{part}" in self.layers
            }
            if len(set(scales.values())) > 1:
                listed = ", ".join(f"{k} {v:.6g}" for k, v in scales.items() if v)
                return [
                    f"{parent}: layers that are served as one have unequal global "
                    f"scales ({listed}); a library that takes one of them for all "
                    "misreads the rest"
                ]
        return []

    def _left(self, name: str) -> list[str]:
        """Say where a float layer's namesakes in other blocks are quantised."""
        base = re.escape(name.rpartition(".")[0])
        pattern = re.sub(r"\\\.\d+\\\.", r"\\.\\d+\\.", base)
        alike = [
            other.name
            for other in self.layers.values()
            if other.kind in ("modelopt", "compressed_tensors")
            and re.fullmatch(pattern, other.name.rpartition(".")[0])
        ]
        if not alike:
            return []
        others = "a layer" if len(alike) == 1 else f"{len(alike)} layers"
        more = "" if len(alike) == 1 else ", ..."
        are = "is" if len(alike) == 1 else "are"
        return [
            f"{name} is {self.tensors[name].dtype}, and {others} of its kind "
            f"({alike[0]}{more}) {are} NVFP4: it was left out of quantisation"
        ]


def _misfit(found: tuple[int, ...], n: int, k: int) -> str:
    """Say why block scales of a shape do not fit NVFP4 codes (n, k)."""
    need = f"NVFP4 needs ({n}, {k // 16})"
    if found == (n, k // 32):
        return (
            f"weight_scale is {found}, half of the scales; {need}. It is MXFP4's block "
            "of 32, or K was counted in packed bytes"
        )
    padded = (-(-n // 128) * 128, -(-(k // 16) // 4) * 4)
    if found == padded or found == (padded[0] * padded[1],):
        return f"weight_scale is {found}, the padded 128x4 layout; {need}, row-major"
    return f"weight_scale is {found}; {need}, one for 16 elements"


def _odd_values(values: NDArray[Any]) -> list[str]:
    """Say whether floats are NaN or Inf, or look like codes."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        n, k = np.unravel_index(int(wrong.argmax()), values.shape)
        return [
            f"{int(wrong.sum())} NaN or Inf, the first, {values[n, k]}, at [{n}, {k}]"
        ]
    sample = values[:256].astype(np.float32)
    whole = (sample == np.floor(sample)).all() and sample.min(initial=0) >= 0
    if whole and 2 < sample.max(initial=0) <= 255:
        return [
            "all values are whole numbers from 0 to 255: these are codes or packed "
            "bytes that became floats, and quantising them again loses the weights"
        ]
    return []
