"""packed: the formula's values of a subtile in BF16, two to a word."""

from __future__ import annotations

import numpy as np

from fp4ref.gemm.fusion.node import F32
from fp4ref.numerics.formats import encode_bf16
from fp4ref.trace import Bytes


def packed(z: F32) -> Bytes:
    """Round each number to BF16; (32, 2 * columns).

    A sum that is one of BF16 already stays what it is: in CUDA it is never made wider.
    """
    return np.ascontiguousarray(encode_bf16(z)).view(np.uint8)
