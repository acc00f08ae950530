"""value_rungs: conversions and approximations, a thread for each input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.question import Part, Question, Words, of_file, one_cta
from fp4ref.device.launch import Call
from fp4ref.numerics import decode_ue8m0, encode_bf16, encode_e2m1, encode_ue8m0
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.numerics.stochastic import encode_stochastic, random_fields
from fp4ref.ptx.instructions.approximate import ex2_approx_ftz, tanh_approx

F32 = NDArray[np.float32]
THREADS = 128

_SPECIAL = np.array(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 1]
    + [0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x400000, 0x400001]
    + [0x3FFFFF],
    np.uint32,
)
"""Zeros, infinities, NaN, subnormals, the largest numbers, and around 2^-127."""


def _floats(seed: int, low: int, high: int, count: int) -> F32:
    """Floats of both signs with exponents from `low` to `high`."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 2, count) * rng.choice([-1, 1], count)
    found: F32 = np.ldexp(x, rng.integers(low, high + 1, count)).astype(np.float32)
    return found


def _specials(count: int) -> F32:
    """Every special value, over and over, each in every place of eight."""
    place = np.arange(count)
    found: F32 = _SPECIAL[(place + place // 128) % len(_SPECIAL)].view(np.float32)
    return found


def _ties(count: int) -> F32:
    """Halves between E2M1 numbers, one float below and one above, of both signs."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], np.float32).view(np.uint32)
    near = (ties[:, None] + np.array([-1, 0, 1])).astype(np.uint32).reshape(-1)
    signed = np.concatenate([near, near | 0x80000000])
    return np.resize(signed, count).view(np.float32)


def _powers(count: int) -> F32:
    """Powers of two with their neighbours, of all exponents."""
    exponents = np.arange(1, 255, dtype=np.uint32) << 23
    near = (exponents[:, None] + np.array([-1, 0, 1])).astype(np.uint32).reshape(-1)
    return np.resize(near, count).view(np.float32)


_KINDS = ("ties", "any", "large", "special", "powers")
_EACH = 1024
"""Floats of each kind."""


def _inputs() -> F32:
    return np.concatenate(
        [
            _ties(_EACH),
            _floats(21, -6, 2, _EACH),
            _floats(22, 2, 127, _EACH),
            _specials(_EACH),
            _powers(_EACH),
        ]
    )


def _launch(entry: str, words: int, source: NDArray[Any], count: int) -> Call:
    call = one_cta(entry, words, source, count, threads=THREADS, smem_nbytes=0)
    return replace(call, grid=(-(-count // THREADS), 1, 1))


def _e2m1_words(x: F32) -> Words:
    codes = encode_e2m1(x).reshape(-1, 8).astype(np.uint32)
    shifted = codes << np.arange(0, 32, 4, dtype=np.uint32)
    words: Words = np.bitwise_or.reduce(shifted, axis=1)
    return words


def _four_bytes(codes: NDArray[np.uint8]) -> Words:
    return np.ascontiguousarray(codes.reshape(-1, 4)).view(np.uint32).reshape(-1)


def convert() -> Question:
    """E2M1 to nearest, UE8M0 rounded up, and UE8M0 to BF16."""
    x = _inputs()
    count = x.size // 8
    each = _EACH // 8
    parts = []
    for number, kind in enumerate(_KINDS):
        of_kind = x[number * _EACH : (number + 1) * _EACH]
        scales = of_kind.reshape(-1, 8)[:, :4]

        def bf16(scales: F32 = scales) -> Words:
            values = decode_ue8m0(encode_ue8m0(scales)).astype(np.float32)
            return encode_bf16(values).reshape(-1).view(np.uint32)

        parts += [
            Part(
                f"e2m1 {kind}",
                "out",
                number * each,
                each,
                lambda of_kind=of_kind: _e2m1_words(of_kind),  # type: ignore[misc]
            ),
            Part(
                f"ue8m0 {kind}",
                "out",
                count + number * each,
                each,
                lambda scales=scales: _four_bytes(encode_ue8m0(scales)),  # type: ignore[misc]
            ),
            Part(f"bf16 {kind}", "out", 2 * (count + number * each), 2 * each, bf16),
        ]
    call = _launch("convert", 4 * count, x, count)
    return of_file("convert.cu", call, tuple(parts))


def ue8m0() -> Question:
    """UE8M0 of floats of either sign, rounded down and up."""
    x = _inputs()
    count, each = x.size // 4, _EACH // 4
    parts = []
    roundings: tuple[tuple[str, Literal["rz", "rp"]], ...] = (
        ("down", "rz"),
        ("up", "rp"),
    )
    for half, (word, rounding) in enumerate(roundings):
        for number, kind in enumerate(_KINDS):
            of_kind = x[number * _EACH : (number + 1) * _EACH]

            def predict(x: F32 = of_kind, to: Literal["rz", "rp"] = rounding) -> Words:
                return _four_bytes(encode_ue8m0(x, to))

            first = half * count + number * each
            parts.append(Part(f"{word} {kind}", "out", first, each, predict))
    return of_file("ue8m0.cu", _launch("ue8m0", 2 * count, x, count), tuple(parts))


def stochastic() -> Question:
    """cvt.rs to E2M1: the first float of four is the last operand."""
    x = np.concatenate([_floats(23, -6, 2, 3072), _specials(1024)])
    count = x.size // 4
    bits = np.random.default_rng(24).integers(0, 1 << 32, count, np.uint32)

    def predict() -> Words:
        fields = np.stack(random_fields(bits, "e2m1")[::-1], axis=1).reshape(-1)
        codes = encode_stochastic(x, fields, "e2m1")
        four = codes.reshape(-1, 4).astype(np.uint32)
        shifted = four << np.arange(0, 16, 4, dtype=np.uint32)
        words: Words = np.bitwise_or.reduce(shifted, axis=1)
        return words

    parts = (Part("codes", "out", 0, count, predict),)
    source = np.concatenate([x.view(np.uint32), bits])
    return of_file("stochastic.cu", _launch("stochastic", count, source, count), parts)


def approximate() -> Question:
    """rcp, ex2 and tanh, against the tables that an H200 filled."""
    count = 2048
    eighths = np.arange(1, 129, dtype=np.float32) / 8
    inputs = [
        np.concatenate(
            [_floats(25 + i, low, high, count - 384), eighths, _specials(256)]
        )
        for i, (low, high) in enumerate(((-126, 127), (-12, 7), (-9, 4)))
    ]
    tables = {"rcp": rcp_approx_ftz, "ex2": ex2_approx_ftz, "tanh": tanh_approx}
    parts = tuple(
        Part(
            name,
            "out",
            i * count,
            count,
            lambda i=i, name=name: tables[name](inputs[i]).view(np.uint32),  # type: ignore[misc]
        )
        for i, name in enumerate(tables)
    )
    call = _launch("approximate", 3 * count, np.concatenate(inputs), count)
    return of_file("approximate.cu", call, parts)
