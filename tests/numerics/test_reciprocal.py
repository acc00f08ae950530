"""reciprocal: a unit from the right one, its ends, and a table that is read once."""

from __future__ import annotations

import numpy as np

from fp4ref.numerics import reciprocal

NAN, INFINITY, MINUS = 0x7FFFFFFF, 0x7F800000, 0x80000000


def bits_of(patterns: list[int]) -> list[int]:
    x = np.array(patterns, np.uint32).view(np.float32)
    found: list[int] = reciprocal.rcp_approx_ftz(x).view(np.uint32).tolist()
    return found


def test_it_is_at_most_a_unit_from_the_reciprocal() -> None:
    rng = np.random.default_rng(11)
    x = rng.integers(1 << 23, 0xFD << 23, 4096).astype(np.uint32)
    x |= (rng.integers(0, 2, 4096) << 31).astype(np.uint32)
    near = (1 / x.view(np.float32).astype(np.float64)).astype(np.float32)
    distance = np.array(bits_of(x.tolist())) - near.view(np.uint32).astype(np.int64)
    assert set(np.unique(distance)) == {-1, 0, 1}


def test_powers_of_two_zeros_and_what_counts_as_zero_are_exact() -> None:
    assert bits_of([0x3F800000, 0xC0000000, 0x3E800000]) == [
        *(0x3F800000, 0xBF000000, 0x40800000)
    ]
    assert bits_of([0, MINUS, 1, MINUS | 0x7FFFFF]) == [
        *(INFINITY, INFINITY | MINUS, INFINITY, INFINITY | MINUS)
    ]
    assert bits_of([INFINITY, INFINITY | MINUS, 0x7F000000, 0xFF000000]) == [
        *(0, MINUS, 0, MINUS)
    ]
    assert bits_of([0x7FC00000, 0xFF800001]) == [NAN, NAN]


def test_the_table_is_unpacked_once(monkeypatch) -> None:
    first = bits_of([0x3FC00000])
    monkeypatch.setattr(reciprocal.gzip, "decompress", None)
    assert bits_of([0x3FC00000]) == first
