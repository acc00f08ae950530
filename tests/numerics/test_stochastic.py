"""stochastic: away from zero exactly on the carry of random and dropped bits."""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref.errors import InputError
from fp4ref.numerics import decode_e2m1, encode_e2m1
from fp4ref.numerics.stochastic import encode_e2m1_stochastic

BYTES = np.arange(256, dtype=np.uint8)


def by_carry(pattern: int, random: int) -> int:
    """The code of one float32 pattern, in integers: fixed point with 8 kept bits."""
    sign, exponent = pattern >> 31, (pattern >> 23 & 0xFF) - 127
    significand = pattern & 0x7FFFFF
    if exponent == 128:
        return 7 if significand else 8 * sign + 7
    if exponent > 2 or (exponent == 2 and significand >= 0x400000):
        return 8 * sign + 7
    if exponent >= 0:
        # One mantissa bit stays, 22 are dropped, the 8 highest of those count.
        code = (exponent + 1 << 1) + (significand >> 22)
        return 8 * sign + code + ((significand >> 14 & 0xFF) + random >> 8)
    # 0 and 0.5: in units of 2^-9, of which 256 are a step.
    units = (significand | 0x800000) >> min(14 - exponent, 31) if exponent > -127 else 0
    return 8 * sign + (units + random >> 8)


def test_it_is_the_carry_for_every_random_byte() -> None:
    rng = np.random.default_rng(3)
    near = rng.integers(0x3E000000, 0x40E00000, 300, np.uint32)
    some = rng.integers(0, 1 << 32, 200, np.uint32)
    grid = np.arange(-40, 41).astype(np.float32) / np.float32(8)
    x = np.concatenate([near, some, grid.view(np.uint32)]).view(np.float32)
    found = encode_e2m1_stochastic(
        np.repeat(x[:, None], 256, 1), np.tile(BYTES, (len(x), 1))
    )
    want = [[by_carry(int(p), r) for r in range(256)] for p in x.view(np.uint32)]
    assert (found == np.array(want)).all()


def test_the_mean_over_all_bytes_is_the_number() -> None:
    x = np.arange(-1536, 1537, dtype=np.float32) / np.float32(256)
    bits = np.tile(BYTES[:, None], (1, x.size))
    values = decode_e2m1(encode_e2m1_stochastic(np.tile(x, (256, 1)), bits))
    steps = np.where(np.abs(x) < 2, 0.5, np.where(np.abs(x) < 4, 1, 2))
    assert (np.abs(values.mean(axis=0, dtype=np.float64) - x) <= steps / 256).all()
    assert values.mean(dtype=np.float64) == 0


def test_numbers_of_the_format_stay() -> None:
    values = decode_e2m1(np.arange(16, dtype=np.uint8))
    for random in (0, 255):
        codes = encode_e2m1_stochastic(values, np.full(16, random, np.uint8))
        assert codes.tolist() == list(range(16))


def test_specials_are_those_of_the_nearest_conversion() -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e38, -7], np.float32)
    zeros = np.zeros(x.shape, np.uint8)
    assert (encode_e2m1_stochastic(x, zeros) == encode_e2m1(x)).all()


def test_there_is_a_byte_for_each_element() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(InputError, match=r"shape \(3,\), x \(4,\)"):
        encode_e2m1_stochastic(x, np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="uint8"):
        encode_e2m1_stochastic(x, np.zeros(4, np.float32))
