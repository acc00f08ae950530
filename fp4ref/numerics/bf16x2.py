"""bf16x2: arithmetic of BF16, two numbers of a word at a time.

Here on arrays of any size; the numbers are float32 that BF16 has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.formats import F32, decode_bf16, encode_bf16, require_float32


def add_bf16x2(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return ``bf16(bf16(a) + bf16(b))``. PTX: ``add.rn.bf16x2``.

    The sum in float32 and its second rounding are as one rounding: float32 has more
    than twice the bits of BF16, and two more (Figueroa, 1995).

    Raises
    ------
    InputError
        An argument is not float32.
    """
    x, y = (
        decode_bf16(encode_bf16(require_float32(each, f"add_bf16x2 {name}")))
        for name, each in (("a", a), ("b", b))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        return decode_bf16(encode_bf16(np.asarray(x + y)))
