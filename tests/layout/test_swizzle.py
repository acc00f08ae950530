import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4ref.errors import InputError, LayoutError
from fp4ref.layout import Swizzle, SwizzleMode, swizzled_offsets

SWIZZLED = [SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128]


@pytest.mark.parametrize(
    ("mode", "mask"),
    [
        (SwizzleMode.NONE, 0),
        (SwizzleMode.B32, 1),
        (SwizzleMode.B64, 3),
        (SwizzleMode.B128, 7),
    ],
)
def test_each_mode_is_the_address_formula_of_ptx(mode: SwizzleMode, mask: int) -> None:
    for address in range(0, 8192):
        expected = address ^ (((address >> 7) & mask) << 4)
        assert mode.swizzle(address) == expected


def test_atoms_of_32_bytes_keep_pairs_of_chunks_together() -> None:
    """Four rows of 128 bytes are a period; row r has atom a at place a XOR r."""
    found = swizzled_offsets(SwizzleMode.B128_ATOM_32B, 8, 128)
    for row in range(8):
        places = [found[row, 32 * atom] // 32 - 4 * row for atom in range(4)]
        assert places == [atom ^ (row % 4) for atom in range(4)]
        assert (np.diff(found[row].reshape(4, 32)) == 1).all()


def test_the_modes_carry_their_numbers() -> None:
    assert [m.value for m in SwizzleMode] == [0, 1, 2, 3, 4]
    assert [m.span for m in SwizzleMode] == [16, 32, 64, 128, 128]
    assert [m.alignment for m in SwizzleMode] == [128, 256, 512, 1024, 512]
    assert [m.descriptor_code for m in SwizzleMode] == [0, 6, 4, 2, 1]
    assert repr(SwizzleMode.B128.swizzle) == "Sw<3,4,3>"


@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3), st.integers(0, 1 << 40))
def test_a_swizzle_undoes_itself(bits: int, base: int, extra: int, offset: int) -> None:
    swizzle = Swizzle(bits, base, bits + extra)
    assert swizzle(swizzle(offset)) == offset


@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2))
def test_a_swizzle_permutes_its_period(bits: int, base: int, extra: int) -> None:
    swizzle = Swizzle(bits, base, bits + extra)
    period = 1 << (base + 2 * bits + extra)
    assert sorted(map(swizzle, range(period))) == list(range(period))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_arrays_swizzle_like_integers_and_keep_their_type(dtype: type) -> None:
    offsets = np.arange(256, dtype=dtype) * dtype(1 if dtype is np.uint8 else 16)
    swizzled = Swizzle(3, 4, 3)(offsets)
    assert swizzled.dtype == dtype
    assert swizzled.tolist() == [Swizzle(3, 4, 3)(int(i)) for i in offsets]


def test_offsets_that_are_not_integers_are_refused() -> None:
    with pytest.raises(InputError, match="float64; need integers"):
        Swizzle(3, 4, 3)(np.zeros(4))  # type: ignore[type-var]


def test_overlapping_bit_fields_are_refused() -> None:
    with pytest.raises(LayoutError, match=r"Sw<3,4,2>: needs"):
        Swizzle(3, 4, 2)


@pytest.mark.parametrize("mode", SWIZZLED)
def test_a_tile_fills_its_bytes_once_and_keeps_16_byte_chunks(
    mode: SwizzleMode,
) -> None:
    offsets = swizzled_offsets(mode, 16, mode.span)
    assert sorted(offsets.ravel().tolist()) == list(range(16 * mode.span))
    chunks = offsets.reshape(16, mode.span // 16, 16)
    assert (np.diff(chunks, axis=-1) == 1).all()
    assert (chunks[..., 0] % 16 == 0).all()


def test_row_5_of_a_128b_tile_reads_its_chunks_in_order_5_4_7_6_1_0_3_2() -> None:
    row = swizzled_offsets(SwizzleMode.B128, 8, 128)[5]
    assert ((row[::16] - 5 * 128) // 16).tolist() == [5, 4, 7, 6, 1, 0, 3, 2]


def test_rows_of_64_and_32_bytes_change_their_pattern_every_2_and_4_rows() -> None:
    b64 = swizzled_offsets(SwizzleMode.B64, 8, 64)[:, 0] // 16
    b32 = swizzled_offsets(SwizzleMode.B32, 8, 32)[:, 0] // 16
    assert b64.tolist() == [0, 4, 9, 13, 18, 22, 27, 31]
    assert b32.tolist() == [0, 2, 4, 6, 9, 11, 13, 15]


def test_eight_rows_of_one_column_lie_in_different_banks() -> None:
    column = swizzled_offsets(SwizzleMode.B128, 8, 128)[:, 0]
    assert len(set((column % 128 // 16).tolist())) == 8


def test_without_swizzle_the_tile_is_row_major() -> None:
    offsets = swizzled_offsets(SwizzleMode.NONE, 3, 48)
    assert (offsets == np.arange(144).reshape(3, 48)).all()


def test_a_row_that_is_not_the_span_is_refused_with_the_remedy() -> None:
    with pytest.raises(LayoutError, match=r"row_bytes: 256 with B128 .*256 E2M1"):
        swizzled_offsets(SwizzleMode.B128, 8, 256)
    with pytest.raises(LayoutError, match="multiples of 16"):
        swizzled_offsets(SwizzleMode.NONE, 8, 40)
    with pytest.raises(LayoutError, match="at least 1"):
        swizzled_offsets(SwizzleMode.B128, 0, 128)
