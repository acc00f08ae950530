import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_layouts import any_layouts, image, injective_layouts

from fp4ref.errors import LayoutError
from fp4ref.layout import (
    Layout,
    coalesce,
    complement,
    composition,
    left_inverse,
    make_layout,
    right_inverse,
)

POWERS = (1, 2, 4, 8)


def test_a_layout_prints_in_cute_notation() -> None:
    assert repr(Layout((4, 8), (8, 1))) == "(4,8):(8,1)"
    assert str(Layout(((32, 4), 4), ((16, 4), 1))) == "((32,4),4):((16,4),1)"


def test_strides_default_to_dense_with_the_leftmost_mode_fastest() -> None:
    assert Layout((4, (2, 3))) == Layout((4, (2, 3)), (1, (4, 8)))
    assert Layout(7) == Layout(7, 1)


def test_a_layout_is_called_with_an_index_or_a_coordinate() -> None:
    row_major = Layout((4, 8), (8, 1))
    assert row_major((2, 3)) == 19
    assert row_major(14) == 19


def test_measures_of_a_nested_layout() -> None:
    atom = Layout(((32, 4), 4), ((16, 4), 1))
    assert (atom.size, atom.cosize, atom.rank, atom.depth) == (512, 512, 2, 2)
    assert atom[0] == Layout((32, 4), (16, 4))
    assert Layout((2, 2), (0, 5)).cosize == 6


def test_layouts_hash_by_value_and_cannot_be_changed() -> None:
    assert len({Layout(4), Layout(4, 1), Layout(4, 2)}) == 2
    with pytest.raises(AttributeError):
        Layout(4).shape = 5  # type: ignore[misc]


def test_numpy_integers_are_integers() -> None:
    four = np.int64(4)
    layout = Layout((four, np.uint8(8)), (8, 1))  # type: ignore[arg-type]
    assert layout == Layout((4, 8), (8, 1))
    assert layout((np.int32(2), 3)) == layout(np.int64(14)) == 19  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [4.0, (4, "8"), [4, 8], None])
def test_a_shape_that_is_not_made_of_integers_is_refused(shape: object) -> None:
    with pytest.raises(LayoutError, match="is not an integer or a tuple of integers"):
        Layout(shape)  # type: ignore[arg-type]


@given(any_layouts())
def test_offsets_evaluate_the_layout_at_every_coordinate(a: Layout) -> None:
    offsets = a.offsets()
    assert offsets.dtype == np.int64
    assert offsets.shape == tuple(mode.size for mode in a.modes)
    assert offsets.ravel(order="F").tolist() == image(a)


@pytest.mark.parametrize(
    ("shape", "stride", "why"),
    [
        ((4, 8), (1,), "nested differently"),
        ((4, 8), 1, "nested differently"),
        ((4, 0), (1, 1), "extents start at 1"),
        ((4, 8), (1, -4), "strides start at 0"),
    ],
)
def test_an_impossible_layout_is_refused(
    shape: object, stride: object, why: str
) -> None:
    with pytest.raises(LayoutError, match=why):
        Layout(shape, stride)  # type: ignore[arg-type]


@given(any_layouts())
def test_coalesce_keeps_the_function_and_cannot_be_repeated(a: Layout) -> None:
    c = coalesce(a)
    assert image(c) == image(a)
    assert c.depth <= 1
    assert coalesce(c) == c
    assert c.size == 1 or all(n > 1 for n, _ in c.flat_modes)


def test_coalesce_by_hand() -> None:
    assert coalesce(Layout((2, (1, 6)), (1, (6, 2)))) == Layout(12, 1)


@given(injective_layouts(POWERS), injective_layouts(POWERS, gaps=(1, 1, 2, 4)))
def test_composition_is_b_then_a(a: Layout, b: Layout) -> None:
    assume(b.cosize <= a.size)
    r = composition(a, b)
    assert image(r) == [a(b(i)) for i in range(b.size)]
    assert r.size == b.size


@given(any_layouts(), any_layouts())
def test_composition_of_anything_is_lawful_or_refused(a: Layout, b: Layout) -> None:
    assume(b.cosize <= a.size)
    try:
        r = composition(a, b)
    except LayoutError:
        return
    assert image(r) == [a(b(i)) for i in range(b.size)]


def test_composition_by_hand() -> None:
    a = Layout((6, 2), (8, 2))
    r = composition(a, Layout((4, 3), (3, 1)))
    assert repr(r) == "((2,2),3):((24,2),8)"


def test_composition_by_mode_leaves_the_other_modes_alone() -> None:
    a = Layout((8, 16, 3), (16, 1, 128))
    r = composition(a, (Layout(2, 4), 8))
    assert repr(r) == "(2,8,3):(64,1,128)"


def test_composition_that_has_no_layout_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"stride 3 and extent 4 do not divide"):
        composition(Layout((4, 3), (3, 1)), Layout(4, 3))


def test_composition_whose_modes_carry_into_each_other_is_refused() -> None:
    # A(1) + A(3) is 0, yet A(1 + 3) is 1.
    with pytest.raises(LayoutError, match="meet in the mode of extent 4"):
        composition(Layout((4, 2), (0, 1)), Layout((2, 2), (1, 3)))


def test_a_tiler_with_more_modes_than_the_layout_is_refused() -> None:
    with pytest.raises(LayoutError, match="a tiler of 3 modes does not fit"):
        composition(Layout((4, 4)), (2, 2, 2))


@given(injective_layouts(), st.integers(1, 100))
def test_complement_fills_every_gap_once(a: Layout, cotarget: int) -> None:
    c = complement(a, cotarget)
    gaps = image(c)
    assert gaps == sorted(set(gaps))
    assert set(gaps) & set(image(a)) == {0}
    together = image(make_layout(a, c))
    assert len(set(together)) == len(together)
    assert set(range(max(cotarget, a.cosize))) <= set(together)


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        (Layout(4, 2), "(2,3):(1,8)"),
        (Layout((2, 4), (1, 6)), "3:2"),
        (Layout((2, 2), (1, 6)), "(3,2):(2,12)"),
        (Layout(24, 1), "1:0"),
        (Layout(6, 4), "4:1"),
    ],
)
def test_complement_by_hand(a: Layout, expected: str) -> None:
    assert repr(complement(a, 24)) == expected


def test_complement_of_overlapping_or_ragged_modes_is_refused() -> None:
    with pytest.raises(LayoutError, match="stride 7 is not a multiple of 2"):
        complement(Layout((4, 2), (7, 1)))
    with pytest.raises(LayoutError, match="stride 3 is not a multiple of 2"):
        complement(Layout((2, 4), (1, 3)), 24)


@given(any_layouts())
def test_right_inverse_is_undone_by_the_layout(a: Layout) -> None:
    r = right_inverse(a)
    assert [a(k) for k in image(r)] == list(range(r.size))


@given(injective_layouts(gaps=(1,)))
def test_right_inverse_of_a_dense_layout_reaches_every_offset(a: Layout) -> None:
    assert right_inverse(a).size == a.size


@given(injective_layouts())
def test_left_inverse_undoes_the_layout(a: Layout) -> None:
    inverse = left_inverse(a)
    assert [inverse(k) for k in image(a)] == list(range(a.size))


def test_left_inverse_of_a_broadcast_is_refused() -> None:
    with pytest.raises(LayoutError, match="repeats offsets"):
        left_inverse(Layout((2, 4), (0, 1)))
