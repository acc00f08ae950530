"""parameters: the kernel's parameter block, as ``struct GemmParams`` lays it out.

Six tensor maps of 128 bytes, two pointers, six 32-bit words, padded to 128 bytes.
"""

from __future__ import annotations

import struct

import numpy as np

from fp4ref.gemm.partition import GemmParams
from fp4ref.hardware.tensor_map import NBYTES, TensorMap
from fp4ref.numerics import ScaleFormat

PARAMS_NBYTES = 7 * NBYTES


def parameter_block(params: GemmParams) -> bytes:
    """Return the block that a launch passes by value."""
    maps = (params.a, params.b, params.sfa, params.sfb, params.c, params.d)
    words = struct.pack(
        "<QQIIIIfI",
        params.sfd,
        params.bias,
        params.m,
        params.n,
        params.k,
        params.l,
        np.float32(params.alpha),
        params.scale_format is ScaleFormat.UE8M0,
    )
    block = b"".join(map(_encoded, maps)) + words
    return block.ljust(PARAMS_NBYTES, b"\0")


def _encoded(tensor_map: TensorMap | None) -> bytes:
    """128 bytes of a map; zeros for one that the kernel never uses."""
    return bytes(NBYTES) if tensor_map is None else tensor_map.to_bytes()
