"""layer_error: what quantising a layer costs, recipe by recipe.

    error of w = |Q(w) - w| / |w|,   error of y = |x (Q(w) - w)^T| / |x w^T|

in Frobenius norms over the finite elements. A matrix is taken in slabs of rows, so that
memory stays flat; the sums are float64, in the order of the slabs, whatever the number
of threads.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_choice
from fp4ref.errors import InputError
from fp4ref.numerics.elements import BLOCKS
from fp4ref.numerics.formats import F32
from fp4ref.tensors.quantize import WholeScale, automatic_global_scale, quantize
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import Recipe

SLAB_ELEMENTS: Final = 1 << 20
OUTLIER_RATIO: Final = 8.0
"""A channel this many times above the median channel is an outlier."""
MOST_OUTLIERS: Final = 3


@dataclass(frozen=True, slots=True)
class RecipeError:
    """What one recipe costs.

    Attributes
    ----------
    w, y
        Relative errors; `y` is None without activations, both where nothing is finite.
    nan_blocks
        Blocks whose scale is NaN.
    """

    recipe: str
    w: float | None
    y: float | None
    nan_blocks: int


@dataclass(frozen=True, slots=True)
class Channel:
    """A column of K that stands out: its largest magnitude over the median's."""

    k: int
    ratio: float


@dataclass(frozen=True, slots=True)
class LayerError:
    """A layer, quantised by each recipe.

    Attributes
    ----------
    outliers_w, outliers_x
        Channels of the weight and of the activations that stand out, worst first.
    """

    name: str
    shape: tuple[int, int]
    errors: tuple[RecipeError, ...]
    outliers_w: tuple[Channel, ...]
    outliers_x: tuple[Channel, ...]
    notes: tuple[str, ...]

    @property
    def best(self) -> RecipeError | None:
        """The recipe with the smallest error of y, else of w."""
        known = [each for each in self.errors if each.w is not None]
        return min(known, key=lambda e: e.w if e.y is None else e.y) if known else None  # type: ignore[arg-type, return-value]


def layer_error(
    name: str,
    w: NDArray[Any],
    recipes: Iterable[str] | None = None,
    *,
    x: F32 | None = None,
    notes: Sequence[str] = (),
    threads: int | None = None,
) -> LayerError:
    """Quantise a weight by each recipe, and compare.

    Parameters
    ----------
    w : (N, K)
        float32, float16 or bfloat16; K a multiple of 16. MX recipes need one of 32 and
        are left out otherwise.
    recipes
        Names; None is all.
    x : (M, K)
        Activations, for the error of y.
    threads
        For the slabs; None is one for each core.

    Raises
    ------
    InputError
        A recipe is unknown, or the shapes do not fit.
    """
    names = tuple(RECIPES) if recipes is None else tuple(recipes)
    chosen = [
        RECIPES[require_choice(each, "recipe", tuple(RECIPES), gap="recipe")]
        for each in names
    ]
    if w.ndim != 2 or (x is not None and (x.ndim != 2 or x.shape[1] != w.shape[1])):
        raise InputError(
            f"{name}: w {w.shape}{'' if x is None else f', x {x.shape}'}; need (N, K) "
            "and (M, K)"
        )
    said = list(notes)
    for which, matrix in {"w": w, "x": x}.items():
        bad = 0 if matrix is None else int(matrix.size - np.isfinite(matrix).sum())
        if bad:
            said.append(f"{bad} NaN or Inf in {which}; errors are over what is finite")
    fitting = [r for r in chosen if w.shape[1] % BLOCKS[r.formats[0]].vec_size == 0]
    with (
        warnings.catch_warnings(),
        ThreadPoolExecutor(threads or os.cpu_count()) as pool,
    ):
        warnings.simplefilter("ignore")  # what is lost is the table itself
        made = [_error(w, x, recipe, pool) for recipe in fitting]
    errors = tuple(error for error, _ in made)
    said += [
        f"{error.recipe}: {beyond} values beyond float32 are left out"
        for error, beyond in made
        if beyond
    ]
    n, k = w.shape
    return LayerError(
        name,
        (n, k),
        errors,
        outliers(w),
        () if x is None else outliers(x),
        tuple(said),
    )


def outliers(matrix: NDArray[Any]) -> tuple[Channel, ...]:
    """Return the columns whose largest magnitude stands out, worst first."""
    largest = np.zeros(matrix.shape[1], np.float32)
    for slab in slabs(matrix.shape):
        part = np.abs(matrix[slab].astype(np.float32))
        largest = np.fmax(largest, np.fmax.reduce(part, axis=0))
    median = float(np.median(largest.astype(np.float64)))  # 3e38 + 3e38 has no float32
    if median == 0:
        return ()
    order = np.argsort(-largest, kind="stable")[:MOST_OUTLIERS]
    return tuple(
        Channel(int(k), float(largest[k]) / median)
        for k in order
        if float(largest[k]) >= OUTLIER_RATIO * median
    )


def _error(
    w: NDArray[Any], x: F32 | None, recipe: Recipe, pool: ThreadPoolExecutor
) -> tuple[RecipeError, int]:
    """Return the errors, and how many finite numbers became Inf on the way."""
    scale = whole_scale(w, recipe)

    def part_error(slab: slice) -> tuple[float, float, float, float, int, int]:
        part = w[slab]
        q = quantize(part, recipe.formats[0], recipe.name, scale)
        values = part.astype(np.float32)
        with np.errstate(all="ignore"):
            difference = q.dequantize() - values
        nan_blocks = int((q.scales == q.scale_format.nan_code).sum())
        beyond = int((np.isinf(difference) & np.isfinite(values)).sum())
        of_y = (0.0, 0.0)
        if x is not None:
            with np.errstate(all="ignore"):
                y = x @ values.T
                of_y = _squares(x @ difference.T, y)
            if np.isfinite(x).all() and np.isfinite(values).all():
                beyond += int((~np.isfinite(y)).sum())
        return (*_squares(difference, values), *of_y, nan_blocks, beyond)

    sums = list(pool.map(part_error, slabs(w.shape, recipe.rows)))
    off, whole, y_off, y_whole = (sum(each[i] for each in sums) for i in range(4))
    error = RecipeError(
        recipe.name,
        sqrt(off / whole) if whole else None,
        sqrt(y_off / y_whole) if x is not None and y_whole else None,
        sum(each[4] for each in sums),
    )
    return error, sum(each[5] for each in sums)


def _squares(difference: F32, values: F32) -> tuple[float, float]:
    """Sum the squares in float64 where both are finite."""
    finite = np.isfinite(difference) & np.isfinite(values)
    wide = (
        np.where(finite, each, 0).astype(np.float64) for each in (difference, values)
    )
    # A dot product of BLAS would depend on the number of its threads.
    off, whole = (float(np.square(each).sum()) for each in wide)
    return off, whole


def slabs(shape: tuple[int, ...], rows: int = 1) -> list[slice]:
    """Cut a matrix into runs of rows, each a multiple of `rows` but the last."""
    height = max(1, SLAB_ELEMENTS // shape[1] // rows) * rows
    return [slice(start, start + height) for start in range(0, shape[0], height)]


def whole_scale(w: NDArray[Any], recipe: Recipe) -> WholeScale | None:
    """Return the global scale of a weight; Inf counts, NaN does not."""
    if recipe.global_scale == "none":
        return None
    found = [
        np.fmax.reduce(np.abs(w[slab].astype(np.float32)), axis=None)
        for slab in slabs(w.shape)
    ]
    return automatic_global_scale(np.array(found, np.float32), recipe)
