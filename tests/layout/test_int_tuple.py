import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4ref.errors import LayoutError
from fp4ref.layout import crd2idx, idx2crd
from fp4ref.layout.int_tuple import compact_strides, depth, is_congruent, notation

SHAPES = st.recursive(
    st.integers(1, 4),
    lambda t: st.lists(t, min_size=1, max_size=3).map(tuple),
    max_leaves=5,
)


def test_an_integer_counts_the_leftmost_mode_fastest() -> None:
    coordinates = [idx2crd(i, (2, 3)) for i in range(6)]
    assert coordinates == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


@given(SHAPES, st.data())
def test_crd2idx_undoes_idx2crd(shape: object, data: st.DataObject) -> None:
    from fp4ref.layout.int_tuple import product

    index = data.draw(st.integers(0, product(shape) - 1))  # type: ignore[arg-type]
    crd = idx2crd(index, shape)  # type: ignore[arg-type]
    assert is_congruent(crd, shape)  # type: ignore[arg-type]
    assert crd2idx(crd, shape) == index  # type: ignore[arg-type]


def test_an_integer_may_stand_for_any_sub_tuple() -> None:
    shape, stride = ((2, 3), 4), ((10, 1), 100)
    assert crd2idx(((1, 2), 3), shape, stride) == 312
    assert crd2idx((5, 3), shape, stride) == 312
    assert crd2idx(23, shape, stride) == 312


def test_the_last_mode_runs_on_past_the_end_as_in_cute() -> None:
    assert crd2idx(8, (2, 3), (10, 100)) == 400


def test_dense_strides_of_a_nested_shape() -> None:
    assert compact_strides((3, (2, 4), 5)) == (1, (3, 6), 24)


def test_depth_and_notation() -> None:
    assert (depth(4), depth((4, 2)), depth(((2, 2), 4))) == (0, 1, 2)
    assert notation(((32, 4), 4)) == "((32,4),4)"


@pytest.mark.parametrize("crd", [(0,), (0, 0, 0), ((0, 0), 0)])
def test_a_coordinate_of_another_nesting_is_refused(crd: object) -> None:
    with pytest.raises(LayoutError, match=r"does not fit shape"):
        crd2idx(crd, (4, 8))  # type: ignore[arg-type]


def test_a_negative_coordinate_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"-1 is negative"):
        crd2idx((0, -1), (4, 8))


@pytest.mark.parametrize("index", [-1, 32])
def test_an_index_outside_the_shape_is_refused(index: int) -> None:
    with pytest.raises(
        LayoutError, match=r"outside shape \(4,8\), which holds 0\.\.31"
    ):
        idx2crd(index, (4, 8))
