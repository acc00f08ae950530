"""tensor_copies: maps, loads and stores of boxes, and what they must copy."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from on_machine import MBAR, TILE, launch, random_bytes, xor_swizzle

from fp4ref.hardware import mbarrier, smem, tma
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode

NONE, B32, B64, B128, PAIRS = SwizzleMode
BITS = {"UINT8": 8, "UINT16": 16, "FLOAT32": 32, "FLOAT64": 64, "U4_ALIGN8B": 4}


def elements(m, coords):
    """For each element of the box: bit in the tile, bit in the tensor or None."""
    bits = BITS[m.data_type.name]
    for number, reversed_index in enumerate(product(*[range(b) for b in m.box[::-1]])):
        index = reversed_index[::-1]
        at = [c + i for c, i in zip(coords, index, strict=True)]
        inside = all(0 <= a < d for a, d in zip(at, m.dims, strict=True))
        start = at[0] * bits + 8 * sum(
            a * s for a, s in zip(at[1:], m.strides, strict=True)
        )
        yield number * bits, start if inside else None, bits


def tile_bit(m, dst, bit):
    """Bit of the tile's bytes after the swizzle of its shared address."""
    address = dst + bit // 8
    return 8 * (xor_swizzle(address, m.swizzle) - dst) + bit % 8


def bits_of(data):
    return np.unpackbits(data, bitorder="little")


def expected_tile(m, tensor, coords, dst, fill=0):
    source = bits_of(tensor)
    nbytes = prod(m.box) * BITS[m.data_type.name] // 8
    out = np.zeros(8 * nbytes, np.uint8)
    for at, origin, bits in elements(m, coords):
        to = tile_bit(m, dst, at)
        if origin is None:
            out[to : to + bits] = [fill >> i & 1 for i in range(bits)]
        else:
            out[to : to + bits] = source[origin : origin + bits]
    return np.packbits(out, bitorder="little")


def expected_tensor(m, before, tile, coords, src):
    source, out = bits_of(tile), bits_of(before)
    end = 0
    for at, target, bits in elements(m, coords):
        if target is not None:
            from_ = tile_bit(m, src, at)
            out[target : target + bits] = source[from_ : from_ + bits]
            end = target + bits
        elif end and end % 128:
            # The last chunk of a row is written whole.
            from_ = tile_bit(m, src, at)
            out[end : end + bits] = source[from_ : from_ + bits]
            end += bits
        else:
            end = 0
    return np.packbits(out, bitorder="little")


def tensor_map(on, name, dims, box, swizzle=NONE, oob_nan=False, pad=0, seed=0):
    """A random tensor with `pad` bytes after each row, and its map."""
    bits = BITS[name]
    pitch = -(-dims[0] * bits // 8 // 16) * 16 + pad
    strides, stride = [], pitch
    for dim in dims[1:]:
        strides.append(stride)
        stride *= dim
    tensor = random_bytes(stride, seed)
    address = on.gmem.upload("T", tensor)
    m = TensorMap(
        DataType[name],
        address,
        dims,
        tuple(strides),
        box,
        swizzle=swizzle,
        oob_nan=oob_nan,
    )
    return tensor, m


def load(on, m, coords, dst=TILE, expect=None):
    nbytes = prod(m.box) * BITS[m.data_type.name] // 8

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.arrive_expect_tx(warp, MBAR, nbytes if expect is None else expect)
        tma.load(warp, m, coords, dst, MBAR)
        yield from mbarrier.try_wait(warp, MBAR, 0)

    launch(on, body)
    return on.sms[0].smem.data[dst - 0x400 :][:nbytes]


def store(on, m, coords, tile, src=TILE):
    def body(warp):
        smem.st(warp, src, tile)
        smem.fence_proxy_async(warp)
        tma.store(warp, m, coords, src)
        tma.commit_group(warp)
        yield from tma.wait_group(warp, 0)

    launch(on, body)


# -- refusals


def one_load(m, coords=(0, 0), dst=TILE):
    return lambda w: tma.load(w, m, coords, dst, MBAR)
