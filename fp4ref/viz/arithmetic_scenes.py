"""arithmetic_scenes: one element of an MMA."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_array, require_number
from fp4ref.errors import InputError
from fp4ref.hardware.tcgen05 import MMA_K
from fp4ref.numerics import ScaleFormat, decode_e2m1, mma_block_scaled
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.viz.packet import Header
from fp4ref.viz.player import Player
from fp4ref.viz.strings import say
from fp4ref.viz.text import table_text


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
