"""dump: the arrays of a dump, from an .npz or a folder of .npy files, by their names.

a, b                codes, one a byte, or a_packed, b_packed with two
sfa, sfb            scales (M, K / 16), or flat in a layout that the caller names
d, sfd, c, bias     see `fp4ref.triage`
global_a, global_b  one number each, in a convention that the caller names
alpha               one number
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.files.array_file import read_arrays, read_headers, read_npy
from fp4ref.layout import LaidOutScales
from fp4ref.layout.scale_layouts import ScaleLayout
from fp4ref.tensors.block_scaled import BlockScaled

NAMES: Final = (
    *("a", "a_packed", "sfa", "b", "b_packed", "sfb", "d", "sfd", "c", "bias"),
    *("alpha", "global_a", "global_b"),
)
"""What a dump may hold; anything else in it is left alone."""
_REMEDY: Final = "save arrays with numpy.savez(file, a=a, sfa=sfa, b=b, sfb=sfb, d=d)"
Arrays = dict[str, NDArray[Any]]
Convention = Literal["encode", "decode"]


@dataclass(frozen=True, eq=False)
class Dump:
    """What a dump holds.

    Attributes
    ----------
    beside
        sfd, c, bias and alpha, those that are there.
    """

    a: BlockScaled
    b: BlockScaled
    d: NDArray[Any]
    beside: dict[str, Any]


def read_dump(
    path: Path,
    format: str = "nvfp4",
    layout: ScaleLayout = "row_major",
    convention: Convention | None = None,
) -> Dump:
    """Read a dump.

    Parameters
    ----------
    format
        Of A and B.
    layout
        Of scales that are flat; a matrix of them is row-major.
    convention
        Of the global scales: ``"encode"`` divides, ``"decode"`` multiplies.

    Raises
    ------
    InputError
        A file or an array is missing, or is something else; says which.
    """
    arrays = _arrays(path)
    a, b = (_operand(arrays, x, path, format, layout, convention) for x in "ab")
    if "d" not in arrays:
        raise InputError(f"{path} has no d, the dumped result; {_REMEDY}")
    beside: dict[str, Any] = {
        name: arrays[name] for name in ("sfd", "c", "bias") if name in arrays
    }
    if "alpha" in arrays:
        beside["alpha"] = _number(arrays, "alpha", path)
    return Dump(a, b, arrays["d"], beside)


def _arrays(path: Path) -> Arrays:
    if path.is_dir():
        files = {name: path / f"{name}.npy" for name in NAMES}
        found = {n: read_npy(file) for n, file in files.items() if file.exists()}
        if not found:
            raise InputError(
                f"{path} has no a.npy, sfa.npy, b.npy, sfb.npy and d.npy; save each "
                "with numpy.save"
            )
    else:
        names = read_headers(path, "no .npz file", _REMEDY).keys() & set(NAMES)
        found = read_arrays(path, names, "no .npz file", _REMEDY)
    return {name: _of_bits(array) for name, array in found.items()}


def _of_bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return what NumPy saved as raw bytes, as of bfloat16 or FP8, as unsigned bits."""
    if array.dtype.kind == "V" and array.dtype.itemsize in (1, 2):
        return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return array


def _operand(
    arrays: Arrays,
    name: str,
    path: Path,
    format: str,
    layout: ScaleLayout,
    convention: Convention | None,
) -> BlockScaled:
    packed, scales = f"{name}_packed", f"sf{name}"
    given = [each for each in (name, packed) if each in arrays]
    if len(given) != 1 or scales not in arrays:
        there = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(
            f"{path}: need {name} or {packed}, and {scales}; it has {there}. {_REMEDY}"
        )
    try:
        codes = arrays[given[0]]
        of_scales: Any = arrays[scales]
        if of_scales.ndim == 1:
            of_scales = _laid_out(of_scales, codes, given[0] == packed, format, layout)
        number = f"global_{name}"
        factor = _number(arrays, number, path) if number in arrays else None
        if factor is not None and convention is None:
            raise InputError(
                f"{number} is {factor:g}; say --convention encode (448 * 6 / amax: "
                "FlashInfer, vLLM, TransformerEngine) or decode, its inverse "
                "(ModelOpt, torchao)"
            )
        if factor is not None and convention == "decode":
            if not factor > 0:
                raise InputError(f"{number} is {factor:g}; need a positive number")
            factor = 1.0 / factor
        if given[0] == packed:
            matrix = BlockScaled.from_packed(codes, of_scales, format=format)
            codes, of_scales = matrix.codes, matrix.scales
        return BlockScaled(codes, of_scales, format, global_scale=factor)
    except InputError as error:
        raise InputError(f"{path}, {given[0]} and {scales}: {error}") from None


def _laid_out(
    flat: NDArray[Any],
    codes: NDArray[Any],
    is_packed: bool,
    format: str,
    layout: ScaleLayout,
) -> LaidOutScales:
    if codes.ndim != 2:
        raise InputError(f"codes of shape {codes.shape}; need a matrix")
    vec = 16 if format == "nvfp4" else 32
    cols = codes.shape[1] * (2 if is_packed else 1) // vec
    return LaidOutScales(flat, codes.shape[0], cols, layout)


def _number(arrays: Arrays, name: str, path: Path) -> float:
    array = arrays[name]
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{path}: {name} is {array.dtype} {array.shape}; need one number"
        )
    return float(array.reshape(-1)[0])
