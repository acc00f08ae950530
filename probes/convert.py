"""convert: conversions of float32, as samples; `exhaustive` has all inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fp4ref.device import Call, Pointer
from fp4ref.numerics import decode_ue4m3, encode_bf16, encode_f16, encode_ue4m3
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.ptx.instructions.approximate import (
    ex2_approx_ftz,
    tanh_approx,
)
from fp4ref.trace import Bytes
from probes.probe import Case, Outputs, Probe, blank, pattern

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
COUNT = 4096


def e4m3(x: F32) -> U32:
    """``cvt.rn.satfinite.e4m3x2.f32``, one half; NaN loses its sign."""
    sign = np.where(np.isnan(x), 0, x.view(np.uint32) >> np.uint32(31) << np.uint32(7))
    return encode_ue4m3(np.abs(x)).astype(np.uint32) | sign.astype(np.uint32)


def bf16(x: F32) -> U32:
    """``cvt.rn.bf16.f32``."""
    return encode_bf16(x).astype(np.uint32)


def f16(x: F32) -> U32:
    """``cvt.rn.f16.f32``."""
    return encode_f16(x).astype(np.uint32)


def rcp(x: F32) -> U32:
    """``rcp.approx.ftz.f32``."""
    return rcp_approx_ftz(x).view(np.uint32)


MODELS: dict[str, Callable[[F32], U32]] = {
    "e4m3": e4m3,
    "bf16": bf16,
    "f16": f16,
    "rcp": rcp,
    "ex2": lambda x: ex2_approx_ftz(x).view(np.uint32),
    "tanh_approx": lambda x: tanh_approx(x).view(np.uint32),
}


def samples(seed: int, count: int = COUNT) -> F32:
    """Return random patterns, ordinary values, and the edges of every exponent."""
    random = pattern(seed, count).astype(np.uint32)
    third = count // 3
    # Exponents from 2^-16 to 2^15, where conversions to small formats round.
    near = random[:third] & np.uint32(0x8F7FFFFF) | np.uint32(0x38000000)
    exponent = np.arange(512, dtype=np.uint32) << np.uint32(23)
    edges = np.concatenate([exponent, exponent - 1, exponent + 1, exponent + 0x400000])
    # Ties of short significands: few bits set below the exponent.
    ties = random[:third] & np.uint32(0xFFF80000)
    mixed = np.concatenate([edges, near, ties, random])[:count]
    return mixed.astype(np.uint32).view(np.float32)


def _sample(name: str, seed: int) -> Case:
    x = samples(seed)
    call = Call(
        f"sample_{name}",
        {"in": x.view(np.uint8), "out": blank(4 * x.size)},
        (Pointer("in"), Pointer("out"), np.uint32(x.size)),
    )
    return Case(name, call, ("out",))


def cases() -> Iterator[Case]:
    """Every function of one float; the halves of pairs; all E4M3 bytes decoded."""
    for seed, name in enumerate(MODELS):
        yield _sample(name, 77 if name in ("ex2", "tanh_approx") else seed)
    x = samples(5, 6144)
    call = Call(
        "sample_pairs",
        {"in": x.view(np.uint8), "out": blank(6 * x.size)},
        (Pointer("in"), Pointer("out"), np.uint32(x.size // 2)),
    )
    yield Case("pairs", call, ("out",))
    call = Call(
        "sample_decode_e4m3",
        {"out": blank(4 * 65536)},
        (Pointer("out"), np.uint32(65536)),
        block=(32, 1, 1),
    )
    yield Case("decode e4m3", call, ("out",))


def _decoded() -> Bytes:
    codes = np.arange(256, dtype=np.uint8)
    value = encode_f16(decode_ue4m3(codes & np.uint8(0x7F))).astype(np.uint32)
    nan = codes & 0x7F == 0x7F
    signed = value | (codes.astype(np.uint32) >> np.uint32(7) << np.uint32(15))
    half = np.where(nan, value, signed).astype(np.uint32)
    both = half[None, :] | half[:, None] << np.uint32(16)
    return np.ascontiguousarray(both).view(np.uint8).ravel()


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.numerics`."""
    if case.name == "decode e4m3":
        return {"out": _decoded()}
    x = case.call.buffers["in"].view(np.float32)
    if case.name == "pairs":
        a, b = x[0::2], x[1::2]
        rows = [
            e4m3(a) << np.uint32(8) | e4m3(b),
            f16(a) << np.uint32(16) | f16(b),
            bf16(a) << np.uint32(16) | bf16(b),
        ]
        return {"out": np.ascontiguousarray(np.stack(rows, 1)).view(np.uint8).ravel()}
    return {"out": MODELS[case.name](x).view(np.uint8)}


PROBE = Probe("convert", tuple(cases()), emulate, files=("probe.cuh", "all_inputs.cuh"))
