import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_layouts import image, injective_layouts

from fp4ref.errors import LayoutError
from fp4ref.layout import (
    Layout,
    composition,
    flat_divide,
    local_tile,
    logical_divide,
    tiled_divide,
    zipped_divide,
)

ROW_MAJOR = Layout((512, 1024), (1024, 1))


@given(injective_layouts((1, 2, 4, 8)), st.data())
def test_divide_is_a_bijection_whose_first_mode_is_the_tile(
    a: Layout, data: st.DataObject
) -> None:
    power = a.size.bit_length() - 1
    n = data.draw(st.integers(0, power))
    d = data.draw(st.integers(0, power - n))
    tiler = Layout(1 << n, 1 << d)
    for divide in (logical_divide, zipped_divide):
        divided = divide(a, tiler)
        assert sorted(image(divided)) == sorted(image(a))
        assert image(divided[0]) == image(composition(a, tiler))


def test_logical_divide_by_hand() -> None:
    a = Layout((4, 2, 3), (2, 1, 8))
    assert repr(logical_divide(a, Layout(4, 2))) == "((2,2),(2,3)):((4,1),(2,8))"
    b = Layout((9, (4, 8)), (59, (13, 1)))
    tiler = (Layout(3, 3), Layout((2, 4), (1, 8)))
    expected = "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    assert repr(logical_divide(b, tiler)) == expected


@pytest.mark.parametrize(
    ("divide", "expected"),
    [
        (logical_divide, "((128,4),(256,4)):((1024,131072),(1,256))"),
        (zipped_divide, "((128,256),(4,4)):((1024,1),(131072,256))"),
        (tiled_divide, "((128,256),4,4):((1024,1),131072,256)"),
        (flat_divide, "(128,256,4,4):(1024,1,131072,256)"),
    ],
)
def test_the_divides_group_the_same_offsets_differently(
    divide: object, expected: str
) -> None:
    assert repr(divide(ROW_MAJOR, (128, 256))) == expected  # type: ignore[operator]


def test_untiled_modes_join_the_rest() -> None:
    batched = Layout((512, 1024, 3), (1024, 1, 524288))
    divided = zipped_divide(batched, (128, 256))
    assert repr(divided) == "((128,256),(4,4,3)):((1024,1),(131072,256,524288))"


def test_nested_tilers_are_zipped_at_every_level() -> None:
    a = Layout(((4, 8), 6))
    assert (
        repr(zipped_divide(a, ((2, 4), 3)))
        == "(((2,4),3),((2,2),2)):(((1,4),32),((2,16),96))"
    )


def test_local_tile_is_a_slice_of_the_matrix() -> None:
    matrix = np.arange(512 * 1024).reshape(512, 1024)
    tile, offset = local_tile(ROW_MAJOR, (128, 256), (3, 1))
    assert (tile.offsets() + offset == matrix[384:512, 256:512]).all()


def test_local_tile_keeps_the_modes_that_are_none() -> None:
    tile, offset = local_tile(ROW_MAJOR, (128, 256), (2, None))
    assert repr(tile) == "(128,256,4):(1024,1,256)"
    assert offset == 2 * 128 * 1024


def test_local_tile_of_a_vector_takes_an_integer() -> None:
    tile, offset = local_tile(Layout(24, 2), 6, 3)
    assert (repr(tile), offset) == ("(6):(2)", 36)


@pytest.mark.parametrize("coord", [(4, 0), (0, -1), (0,), (0, 0, 0)])
def test_a_tile_that_is_not_there_is_refused(coord: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match=r"outside 0\.\.3|does not fit the tiles"):
        local_tile(ROW_MAJOR, (128, 256), coord)


def test_a_tile_that_does_not_divide_is_refused_with_the_remedy() -> None:
    with pytest.raises(LayoutError, match=r"tile of 128 does not divide .* pad"):
        logical_divide(Layout(200), 128)


def test_a_strided_tile_past_the_end_is_refused() -> None:
    with pytest.raises(LayoutError, match="covers 8 elements, not the 4"):
        logical_divide(Layout(4), Layout(4, 2))


def test_a_tiler_with_too_many_modes_is_refused() -> None:
    with pytest.raises(LayoutError, match="tiler: 3 modes do not fit"):
        zipped_divide(ROW_MAJOR, (2, 2, 2))
