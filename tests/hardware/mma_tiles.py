"""mma_tiles: tiles, scales and descriptors in place for tcgen05."""

from __future__ import annotations

import numpy as np
from on_machine import MBAR, TILE, launch, machine, random_bytes, xor_swizzle

from fp4ref.hardware import mbarrier, tcgen05, tmem
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat

NONE, B32, B64, B128, _ = SwizzleMode
UE4M3, UE8M0 = ScaleFormat.UE4M3, ScaleFormat.UE8M0


def idesc(n=128, m=128, *, ue8m0=0, a_id=0, b_id=0, negate_a=0, negate_b=0):
    """The 32 bits, from PTX's table."""
    word = 1 << 7 | 1 << 10 | (n >> 3) << 17 | (m >> 7) << 27
    word |= ue8m0 << 23 | a_id << 29 | b_id << 4 | negate_a << 13 | negate_b << 14
    return word


A_AT, B_AT, SF_AT = TILE, TILE + 0x8000, TILE + 0x18000
SFA, SFB = 256, 264
MEMORY = random_bytes(SF_AT - TILE + 0x1000, seed=7)
"""What shared memory holds from `TILE`: every bit pattern."""


def put_memory(cta):
    cta.smem.poke(TILE, MEMORY)


def descriptor(start, swizzle=B128, stride=None, leading=16):
    stride = 8 * (16 << swizzle) if stride is None else stride
    return SmemDescriptor(start, leading, stride, swizzle).encode()


def tile_codes(rows, start, swizzle, stride=None, leading=16):
    """E2M1 codes (rows, 64) of a K-major tile in `MEMORY`, low nibble first."""
    span = 16 << swizzle
    stride = 8 * span if stride is None else stride
    codes = np.empty((rows, 64), int)
    for row in range(rows):
        for byte in range(32):
            if swizzle is NONE:
                at = start + row // 8 * stride + row % 8 * 16
                at += byte // 16 * leading + byte % 16
            else:
                linear = start + row // 8 * stride + row % 8 * span + byte
                at = xor_swizzle(linear, swizzle)
            value = int(MEMORY[at - TILE])
            codes[row, 2 * byte : 2 * byte + 2] = value & 15, value >> 4
    return codes


def put_scales(warp, column, codes, sf_id=0, seed=0):
    """Scale (row, k) to lane row % 32 + 32 q, byte sf_id + k of column + row // 32.

    The other bytes of a word are noise.
    """
    rows, count = codes.shape
    columns = -(-rows // 32)
    noise = random_bytes(32 * columns * 4, seed).reshape(32, columns, 4)
    for row in range(rows):
        noise[row % 32, row // 32, sf_id : sf_id + count] = codes[row]
    for lane in range(128):
        warp.tmem.poke(lane * 2048 + 4 * column, noise[lane % 32].ravel())


def with_tmem(*steps):
    """A warp that owns all of TMEM, has MBAR initialised, and does the steps."""

    def body(warp):
        mbarrier.init(warp, MBAR, 1)
        mbarrier.fence_mbarrier_init(warp)
        yield from tmem.alloc(warp, MBAR + 8, 512)
        for step in steps:
            result = step(warp)
            if result is not None:
                yield from result
        tmem.dealloc(warp, 0, 512)

    return body


def commit_and_wait(warp, parity=0):
    tcgen05.commit(warp, MBAR)
    return mbarrier.try_wait(warp, MBAR, parity)


def easy_scales(warp, n=128):
    put_scales(warp, SFA, np.full((128, 4), 0x38))
    put_scales(warp, SFB, np.full((-(-n // 32) * 32, 4), 0x38))


def easy_mma(warp, n=128, d=0, accumulate=False, **options):
    tcgen05.mma(
        warp,
        d,
        descriptor(A_AT),
        descriptor(B_AT),
        idesc(n),
        SFA,
        SFB,
        accumulate,
        **options,
    )


SF_WORD = 0x00004008 << 32 | 1 << 16


def landing_order(*steps, schedule="late", ordering="ptx"):
    on = machine(schedule, ordering=ordering, trace=True)
    launch(on, with_tmem(*steps, commit_and_wait), setup=put_memory)
    return [e.operation for e in on.recorder.trace if e.kind == "land"], on
