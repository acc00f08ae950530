"""arithmetic_scenes: a block that is quantised, and one element of an MMA."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_choice, require_number
from fp4ref.errors import InputError
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    dequantize_blocks,
    mma_block_scaled,
    quantize_blocks,
)
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.viz.packet import Header
from fp4ref.viz.player import Player
from fp4ref.viz.strings import say
from fp4ref.viz.text import table_text


def quantiser(
    values: npt.ArrayLike | None = None,
    *,
    format: str = "nvfp4",
    global_scale: float = 1.0,
) -> Player:
    """Return the quantiser microscope: 16 values on the E2M1 line.

    Parameters
    ----------
    values
        16 numbers; a block with a tie and an outlier by default.
    format
        ``"nvfp4"`` (UE4M3 scales) or ``"ue8m0"`` (scales of example 72b's D).

    Raises
    ------
    InputError
        Not 16 finite numbers, another format, or a scale that is not positive.
    """
    formats = {"nvfp4": ScaleFormat.UE4M3, "ue8m0": ScaleFormat.UE8M0}
    require_choice(format, "format", tuple(formats))
    if values is None:
        values = np.linspace(-6, 6, 16).round(2)
        values[3], values[8] = 2.5, 0.25
    block, factor = _block(values), _factor(global_scale)
    codes, scales = quantize_blocks(block, norm=factor, scale_format=formats[format])
    back = dequantize_blocks(codes, scales, scale_format=formats[format])
    header: Header = {
        "title": say("title.quantiser"),
        "quantiser": {
            "values": [float(v) for v in block],
            "norm": factor,
            "format": formats[format].name,
        },
    }

    where = say(
        "text.quantiser",
        scale=f"{int(scales[0]):#04x}",
        format=formats[format].name,
        norm=f"{factor:g}",
    )
    rows = [
        [i, f"{z:g}", f"{c:#x}", f"{decode_e2m1(c):g}", f"{b / factor:g}"]
        for i, (z, c, b) in enumerate(zip(block, codes, back, strict=True))
    ]
    words = table_text(where, say("text.quantiser.columns").split("|"), rows)
    return Player(header, view="quantiser", text=lambda _, __: words)


def _block(values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return 16 finite numbers."""
    block = _floats("values", values)
    if block.size != NVFP4_VEC_SIZE or not np.isfinite(block).all():
        raise InputError(
            f"values: {block.size} of them; a block is {NVFP4_VEC_SIZE} finite numbers"
        )
    return block


def _factor(global_scale: object) -> float:
    """Return a global scale that float32 can hold."""
    factor = require_number(global_scale, "global_scale")
    with np.errstate(over="ignore", under="ignore"):
        if not 0 < np.float32(factor) < np.inf:
            raise InputError(
                f"global_scale: {factor!r}; need a positive number that is finite in "
                "float32"
            )
    return factor


def microscope(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sfa: npt.ArrayLike,
    sfb: npt.ArrayLike,
    c: float = 0.0,
) -> Player:
    """Return the MMA microscope of one output element of one instruction.

    Parameters
    ----------
    a, b : (64,)
        E2M1 codes.
    sfa, sfb : (4,)
        UE4M3 codes.
    c
        The accumulator before it, float32.

    Raises
    ------
    InputError
        A shape or a code is wrong.
    """
    parts = [_codes("a", a, MMA_K), _codes("b", b, MMA_K)]
    scales = MMA_K // NVFP4_VEC_SIZE
    parts += [_codes("sfa", sfa, scales), _codes("sfb", sfb, scales)]
    start = _floats("c", require_number(c, "c")).reshape(1, 1)
    codes_a, codes_b, scales_a, scales_b = (v[None] for v in parts)
    d = mma_block_scaled(
        codes_a,
        codes_b,
        scales_a,
        scales_b,
        start,
        scale_format=ScaleFormat.UE4M3,
        vec_size=NVFP4_VEC_SIZE,
    )
    header: Header = {
        "title": say("title.mma"),
        "microscope": {
            "a": parts[0].tolist(),
            "b": parts[1].tolist(),
            "sfa": parts[2].tolist(),
            "sfb": parts[3].tolist(),
            "c": int(start.view(np.uint32)[0, 0]),
        },
    }

    bits = int(d.view(np.uint32)[0, 0])
    words = table_text(
        say("text.mma", c=float(start[0, 0]), d=float(d[0, 0]), bits=f"{bits:#010x}"),
        say("text.mma.columns").split("|"),
        _groups(*parts),
    )
    return Player(header, view="mma", text=lambda _, __: words)


def _groups(
    a: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    sfa: npt.NDArray[np.uint8],
    sfb: npt.NDArray[np.uint8],
) -> list[list[object]]:
    """Give each block of 16 its number, its unscaled sum and its two scales."""
    x, y = (decode_e2m1(v).reshape(-1, NVFP4_VEC_SIZE) for v in (a, b))
    return [
        [g, f"{float((x[g] * y[g]).sum()):g}", f"{sfa[g]:#04x}", f"{sfb[g]:#04x}"]
        for g in range(len(x))
    ]


def _floats(name: str, values: object) -> npt.NDArray[np.float32]:
    """Return float32 numbers, at least one."""
    array = require_array(values, name)
    if not array.size or array.dtype.kind == "c":
        raise InputError(f"{name}: {values!r:.60} is no list of numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float64).astype(np.float32).ravel()


def _codes(name: str, values: object, count: int) -> npt.NDArray[np.uint8]:
    """Return `count` codes of 0 to 255."""
    wide = _floats(name, values)
    if not ((wide >= 0) & (wide <= 255) & (wide == np.floor(wide))).all():
        raise InputError(f"{name}: codes are whole numbers of 0 to 255")
    if wide.size != count:
        raise InputError(f"{name}: {wide.size} codes; need {count}")
    return wide.astype(np.uint8)
