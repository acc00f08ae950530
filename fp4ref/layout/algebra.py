"""algebra: CuTe layouts, functions from coordinates to offsets.

A `Layout` is a shape and a stride. Every operation here is defined by a law, and the
law is its test:

    coalesce      C(i) == A(i), with as few modes as possible
    composition   R(i) == A(B(i))
    complement    the offsets that A leaves out, in ascending order
    right_inverse A(R(i)) == i
    left_inverse  L(A(i)) == i

`fp4ref.layout.tiling` builds the divides from these. Source: CuTe, the layout algebra
(``media/docs/cpp/cute/02_layout_algebra.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError, LayoutError
from fp4ref.layout.int_tuple import (
    IntTuple,
    compact_strides,
    depth,
    flatten,
    inner_product,
    is_congruent,
    notation,
    product,
    to_int_tuple,
    whole,
)


@dataclass(frozen=True, repr=False)
class Layout:
    """A function from the coordinates of `shape` to integer offsets.

    Parameters
    ----------
    shape
        Extents, each at least 1.
    stride
        Congruent to `shape`, each at least 0. Dense and leftmost mode fastest where
        it is not given.

    Raises
    ------
    LayoutError
        Shape and stride are not congruent, or a value is out of range.

    Examples
    --------
    >>> row_major = Layout((4, 8), (8, 1))
    >>> row_major, row_major((2, 3)), row_major(14)
    ((4,8):(8,1), 19, 19)
    """

    shape: IntTuple
    stride: IntTuple = ()

    def __post_init__(self) -> None:
        shape = to_int_tuple(self.shape, "shape")
        stride = to_int_tuple(self.stride, "stride")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(
            self, "stride", compact_strides(shape) if stride == () else stride
        )
        if not is_congruent(self.shape, self.stride):
            raise LayoutError(
                f"shape {notation(self.shape)} and stride {notation(self.stride)} "
                "are nested differently; give one stride per extent"
            )
        if min(flatten(self.shape), default=1) < 1:
            raise LayoutError(f"shape {notation(self.shape)}: extents start at 1")
        if min(flatten(self.stride), default=0) < 0:
            raise LayoutError(f"stride {notation(self.stride)}: strides start at 0")

    def __call__(self, crd: IntTuple) -> int:
        """Give the offset of a coordinate; an integer counts leftmost mode fastest."""
        return inner_product(to_int_tuple(crd, "crd"), self.shape, self.stride)

    def __getitem__(self, mode: int) -> Layout:
        return self.modes[mode]

    def __repr__(self) -> str:
        return f"{notation(self.shape)}:{notation(self.stride)}"

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The top-level modes, each a layout; a flat layout is its own only mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(map(Layout, self.shape, self.stride))

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return product(self.shape)

    @property
    def cosize(self) -> int:
        """One past the largest offset."""
        return 1 + sum((n - 1) * d for n, d in self.flat_modes)

    @property
    def rank(self) -> int:
        """How many top-level modes there are."""
        return len(self.modes)

    @property
    def depth(self) -> int:
        """How deeply the shape is nested."""
        return depth(self.shape)

    @property
    def flat_modes(self) -> list[tuple[int, int]]:
        """The (extent, stride) pairs of all leaves, leftmost first."""
        return list(zip(flatten(self.shape), flatten(self.stride), strict=True))

    def offsets(self) -> NDArray[np.int64]:
        """Evaluate the layout everywhere.

        Returns
        -------
        int64, one axis per top-level mode
            Element ``[i, j, ...]`` is ``self((i, j, ...))``.
        """
        image = np.zeros((), dtype=np.int64)
        for mode in self.modes:
            axis = np.zeros(1, dtype=np.int64)
            for n, d in mode.flat_modes:
                axis = np.add.outer(np.arange(n, dtype=np.int64) * d, axis).ravel()
            image = np.add.outer(image, axis)
        return image


#: Per mode a layout, an extent, or again a tuple; a layout or extent takes one mode.
Tiler: TypeAlias = "Layout | int | tuple[Tiler, ...]"


def require_layout(value: object, name: str) -> Layout:
    """Return `value` if it is a layout.

    Raises
    ------
    LayoutError
        It is not.
    """
    if not isinstance(value, Layout):
        raise LayoutError(f"{name}: {value!r:.60} is no Layout; see make_layout")
    return value


def require_tiler(value: object, name: str) -> Layout | tuple[Tiler, ...]:
    """Return `value` if it is a tiler, an extent as a layout.

    Raises
    ------
    LayoutError
        A part is no layout, extent or tuple of these.
    """
    if isinstance(value, Layout):
        return value
    try:
        if isinstance(value, tuple):
            return tuple(require_tiler(part, name) for part in value)
        return Layout(whole(value, name, 1))
    except (InputError, RecursionError):
        raise LayoutError(
            f"{name}: {value!r:.60} is no tiler: a Layout, an extent of at least 1, or "
            "a tuple of tilers"
        ) from None


def make_layout(*layouts: Layout) -> Layout:
    """Put layouts side by side as the modes of one layout."""
    for layout in layouts:
        require_layout(layout, "layouts")
    return Layout(tuple(a.shape for a in layouts), tuple(a.stride for a in layouts))


def coalesce(layout: Layout) -> Layout:
    """Merge and drop modes as far as the function allows.

    Two neighbours ``s0:d0, s1:d1`` are one mode when ``d1 == s0*d0``. Extents of 1 are
    dropped. The result is flat.
    """
    require_layout(layout, "layout")
    merged: list[tuple[int, int]] = []
    for n, d in layout.flat_modes:
        if n == 1:
            continue
        if merged and d == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * n, merged[-1][1])
        else:
            merged.append((n, d))
    return _from_modes(merged)


def composition(a: Layout, b: Tiler) -> Layout:
    """Give R with ``R(i) == A(B(i))``, shaped as `b`.

    The law holds where ``B(i)`` is below ``size(A)``; as in CuTe, offsets past it run
    on along the last mode of the coalesced `a`.

    A tuple of tilers applies mode by mode; the modes of `a` past its end stay as they
    are. An integer ``n`` stands for the layout ``n:1``.

    Raises
    ------
    LayoutError
        No layout of this shape has that law: extents and strides do not divide, or
        two modes of `b` together carry from one mode of `a` into the next.
    """
    require_layout(a, "a")
    b = require_tiler(b, "b")
    if isinstance(b, tuple):
        if len(b) > a.rank:
            raise LayoutError(f"b: a tiler of {len(b)} modes does not fit {a}")
        rest = a.modes[len(b) :]
        return make_layout(*map(composition, a.modes, b), *rest)
    a = coalesce(a)
    composed = _compose(a, b)
    _refuse_carries(a, b)
    return composed


def _refuse_carries(a: Layout, b: Layout) -> None:
    """Check that the modes of `b` add up without a carry between modes of `a`.

    Only then is A of a sum the sum of A, which composing mode by mode relies on.
    """
    lasts = [(n - 1) * d for n, d in b.flat_modes]
    for extent, _ in a.flat_modes[:-1]:
        if sum(last % extent for last in lasts) >= extent:
            raise LayoutError(
                f"composition of {a} with {b}: modes of the second meet in the mode of "
                f"extent {extent} and pass its end; choose a tile that divides {extent}"
            )
        lasts = [last // extent for last in lasts]


def _compose(a: Layout, b: Layout) -> Layout:
    """Compose a coalesced layout with each mode of `b` by itself."""
    if not isinstance(b.shape, int):
        return make_layout(*(_compose(a, mode) for mode in b.modes))
    ((count, step),) = b.flat_modes
    modes: list[tuple[int, int]] = []
    if step == 0 or count == 1:
        return Layout(count, 0)
    leaves = a.flat_modes
    for n, d in leaves[:-1]:
        if step % n == 0:
            step //= n  # the whole mode is stepped over
        elif (count - 1) * step < n:
            modes.append((count, step * d))  # all that is left lies inside this mode
            count = 1
        elif n % step == 0 and count % (n // step) == 0:
            modes.append((n // step, step * d))
            count //= n // step
            step = 1
        else:
            raise LayoutError(
                f"composition of {a} with {b}: stride {step} and extent {n} do not "
                f"divide, so no layout equals A(B(i)); choose a tile that divides {n}"
            )
        if count == 1:
            break
    if count > 1:
        modes.append((count, step * leaves[-1][1]))
    return _from_modes(modes)


def complement(layout: Layout, cotarget: int = 1) -> Layout:
    """Give the layout that fills in what `layout` leaves out.

    Its offsets ascend, no non-zero one is an offset of `layout`, and the two side by
    side reach, once each, every offset below ``cosize(layout)`` and `cotarget`.

    Raises
    ------
    LayoutError
        Two modes overlap or leave a ragged gap, which no layout fills exactly. CuTe
        fills a ragged gap in part.
    """
    require_layout(layout, "layout")
    cotarget = whole(cotarget, "cotarget", 1)
    filled = 1
    gaps: list[tuple[int, int]] = []
    leaves = [(d, n) for n, d in layout.flat_modes if n > 1 and d > 0]
    for d, n in sorted(leaves):
        if d % filled:
            raise LayoutError(
                f"complement of {layout}: stride {d} is not a multiple of {filled}, "
                "what the smaller strides fill; the modes overlap or leave ragged gaps"
            )
        gaps.append((d // filled, filled))
        filled = d * n
    gaps.append((-(-cotarget // filled), filled))
    return coalesce(_from_modes(gaps))


def right_inverse(layout: Layout) -> Layout:
    """Give R with ``A(R(i)) == i`` for every i below ``size(R)``.

    R starts at the mode of stride 1 and goes as far as the strides of `layout` are
    dense.
    """
    require_layout(layout, "layout")
    reached = 1
    modes: list[tuple[int, int]] = []
    dense = flatten(compact_strides(layout.shape))
    leaves = zip(layout.flat_modes, dense, strict=True)
    for d, n, position in sorted((d, n, p) for (n, d), p in leaves if n > 1):
        if d == reached:
            modes.append((n, position))
            reached = d * n
    return coalesce(_from_modes(modes))


def left_inverse(layout: Layout) -> Layout:
    """Give L with ``L(A(i)) == i``, for a layout that repeats no offset.

    Raises
    ------
    LayoutError
        `layout` repeats an offset, or its gaps fit no layout.
    """
    require_layout(layout, "layout")
    if any(d == 0 and n > 1 for n, d in layout.flat_modes):
        raise LayoutError(f"{layout} repeats offsets (stride 0): no left inverse")
    return right_inverse(make_layout(layout, complement(layout)))


def _from_modes(modes: list[tuple[int, int]]) -> Layout:
    """Make a flat layout; one mode stands bare, none is ``1:0``."""
    if math.prod(n for n, _ in modes) == 1:
        return Layout(1, 0)
    if len(modes) == 1:
        return Layout(*modes[0])
    return Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
