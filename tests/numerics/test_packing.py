"""packing: bytes of codes, each by the integer that they spell."""

from __future__ import annotations

import numpy as np
import pytest

from fp4ref.errors import InputError
from fp4ref.numerics.packing import pack_codes, unpack_codes

WIDTHS = (4, 6, 8, 16)


def spelled(codes: list[int], bits: int) -> bytes:
    """A row as one number, the first code in its lowest bits."""
    number = sum(code << bits * i for i, code in enumerate(codes))
    return number.to_bytes(len(codes) * bits // 8, "little")


@pytest.mark.parametrize("bits", WIDTHS)
def test_codes_follow_each_other_without_gaps(bits: int) -> None:
    dtype = np.uint16 if bits == 16 else np.uint8
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, (2, 3, 8)).astype(dtype)
    packed = pack_codes(codes, bits)
    assert (packed.shape, packed.dtype) == ((2, 3, bits), np.uint8)
    for at in np.ndindex(2, 3):
        assert packed[at].tobytes() == spelled(codes[at].tolist(), bits)
    found = unpack_codes(packed, bits)
    assert found.dtype == dtype
    assert (found == codes).all()


@pytest.mark.parametrize(("bits", "count"), [(4, 3), (6, 2)])
def test_a_row_of_codes_ends_on_a_byte(bits: int, count: int) -> None:
    with pytest.raises(InputError, match="whose rows"):
        pack_codes(np.zeros((2, count), np.uint8), bits)


@pytest.mark.parametrize(("bits", "count"), [(6, 4), (16, 3)])
def test_a_row_of_bytes_is_a_whole_number_of_codes(bits: int, count: int) -> None:
    with pytest.raises(InputError, match="no whole number"):
        unpack_codes(np.zeros((2, count), np.uint8), bits)
