"""int_tuple: nested tuples of integers, the shapes, strides and coordinates of CuTe.

A coordinate of a shape may be one integer for any sub-tuple. The integer then counts
through that sub-tuple with the leftmost mode fastest:

    shape (2,3):  0 -> (0,0)   1 -> (1,0)   2 -> (0,1)   ...   5 -> (1,2)
"""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import SupportsIndex, TypeAlias

from fp4ref.arguments import require_integer
from fp4ref.errors import LayoutError

whole = partial(require_integer, error=LayoutError)

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def to_int_tuple(t: object, name: str = "tuple") -> IntTuple:
    """Turn nested tuples of any integer type, NumPy's too, into an `IntTuple`.

    Raises
    ------
    LayoutError
        A leaf is not an integer.
    """
    try:
        if isinstance(t, tuple):
            return tuple(to_int_tuple(mode, name) for mode in t)
        if isinstance(t, SupportsIndex):
            return operator.index(t)
    except (TypeError, RecursionError):  # a float array has __index__ and refuses
        pass
    raise LayoutError(f"{name}: {t!r:.60} is not an integer or a tuple of integers")


def flatten(t: IntTuple) -> tuple[int, ...]:
    """List the leaves from left to right."""
    if isinstance(t, int):
        return (t,)
    return tuple(leaf for mode in t for leaf in flatten(mode))


def product(t: IntTuple) -> int:
    """Multiply the leaves; for a shape this is its size."""
    return math.prod(flatten(t))


def depth(t: IntTuple) -> int:
    """Count the levels of nesting; an integer has depth 0."""
    if isinstance(t, int):
        return 0
    return 1 + max((depth(mode) for mode in t), default=0)


def is_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Tell whether both have the same nesting."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(map(is_congruent, a, b))


def compact_strides(shape: IntTuple, first: int = 1) -> IntTuple:
    """Give the strides of a dense layout, leftmost mode fastest.

    CuTe calls this ``compact_col_major``.
    """
    if isinstance(shape, int):
        return first
    strides: list[IntTuple] = []
    for mode in shape:
        strides.append(compact_strides(mode, first))
        first *= product(mode)
    return tuple(strides)


def crd2idx(crd: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """Turn a coordinate into an index: the inner product with the strides.

    Parameters
    ----------
    crd
        An integer may stand for any sub-tuple of `shape`. As in CuTe, the last mode
        is not bounded: an index past the end runs on along that mode.
    stride
        Congruent to `shape`; the dense strides where it is not given.

    Raises
    ------
    LayoutError
        `crd` is negative or is nested deeper or otherwise than `shape`.
    """
    shape = to_int_tuple(shape, "shape")
    crd = to_int_tuple(crd, "crd")
    if stride is None:
        stride = compact_strides(shape)
    stride = to_int_tuple(stride, "stride")
    if not is_congruent(shape, stride):
        raise LayoutError(
            f"stride {notation(stride)} is nested differently than shape "
            f"{notation(shape)}; give one stride per extent"
        )
    if min(flatten(shape), default=1) < 1:
        raise LayoutError(f"shape {notation(shape)}: extents start at 1")
    return inner_product(crd, shape, stride)


def inner_product(crd: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """Give the index of a coordinate; shape and stride are congruent.

    Raises
    ------
    LayoutError
        `crd` is negative or does not fit `shape`.
    """
    if isinstance(crd, int):
        if crd < 0:
            raise LayoutError(f"crd: {crd} is negative; coordinates start at 0")
        index = 0
        modes = list(zip(flatten(shape), flatten(stride), strict=True))
        for extent, step in modes[:-1]:
            crd, inside = divmod(crd, extent)
            index += inside * step
        return index + (crd * modes[-1][1] if modes else 0)
    if isinstance(shape, int) or isinstance(stride, int) or len(crd) != len(shape):
        raise LayoutError(
            f"crd: {notation(crd)} does not fit shape {notation(shape)}; "
            "each mode takes an integer or a tuple of as many parts as the mode has"
        )
    return sum(map(inner_product, crd, shape, stride))


def idx2crd(idx: int, shape: IntTuple) -> IntTuple:
    """Turn an index into a coordinate that is congruent to `shape`.

    The inverse of ``crd2idx(crd, shape)``.

    Raises
    ------
    LayoutError
        `idx` is outside ``0 .. product(shape) - 1``.
    """
    shape = to_int_tuple(shape, "shape")
    idx = whole(idx, "idx")
    if not 0 <= idx < product(shape):
        raise LayoutError(
            f"idx: {idx} is outside shape {notation(shape)}, "
            f"which holds 0..{product(shape) - 1}"
        )
    return _idx2crd(idx, shape)


def _idx2crd(idx: int, shape: IntTuple) -> IntTuple:
    """Walk a checked shape."""
    if isinstance(shape, int):
        return idx
    crd: list[IntTuple] = []
    for mode in shape:
        idx, inside = divmod(idx, product(mode))
        crd.append(_idx2crd(inside, mode))
    return tuple(crd)


def notation(t: IntTuple) -> str:
    """Write the tuple as CuTe prints it, for example ``((32,4),4)``."""
    if isinstance(t, int):
        return str(t)
    return "(" + ",".join(map(notation, t)) + ")"
