"""global_scales: one global scale for a tensor, each row, each matrix or each group.

    D[m, n] = alpha[m, n] * acc[m, n],    alpha = 1 / (G_A[m] * G_B[n])

G_B of a row of B is that of a column of D. The MMA has no place for either: a number
goes into alpha, rows and columns into the epilogue's broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fp4ref.arguments import require_array, require_choice
from fp4ref.errors import InputError
from fp4ref.layout.int_tuple import whole
from fp4ref.numerics.elements import BLOCKS, ScaleFormat, element
from fp4ref.numerics.formats import F32
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.losses import (
    MOST_AUTO_SCALE,
    warn_of_nonfinite,
    warn_of_overflow,
)
from fp4ref.tensors.recipes import RECIPES
from fp4ref.tensors.recipes.recipe import (
    FLT_MAX,
    Blocks,
    Recipe,
    largest_magnitudes,
    run_rule,
)

_ONE: Final = np.float32(1)
Per = Literal["tensor", "row", "batch", "group"]


def automatic(amax: F32, recipe: Recipe) -> tuple[F32, F32]:
    """Return G and its inverse of largest magnitudes, as a recipe's library makes them.

    G is ``range * 6 / amax``, or its inverse is ``amax / (range * 6)``: which of the
    two is rounded first is the recipe's. 1 where amax is 0 or infinite, and some
    originals divide 0 by 0.

    Raises
    ------
    InputError
        A magnitude is so small that the inverse of what the library stores is no
        float32.
    """
    most = np.float32(recipe.range * 6)
    ordinary = (amax > 0) & np.isfinite(amax)
    encode: F32
    decode: F32
    with np.errstate(all="ignore"):
        if recipe.global_scale == "encode":
            bound = MOST_AUTO_SCALE if recipe.name == "cutlass" else FLT_MAX
            encode = np.where(
                ordinary, np.minimum(most / amax, np.float32(bound)), _ONE
            )
            decode = _ONE / encode
        else:
            decode = np.where(ordinary, amax / most, _ONE)
            encode = _ONE / decode
    if not (np.isfinite(encode) & (encode > 0)).all():
        raise InputError(
            f"global_scale 'auto' with recipe {recipe.name!r}: the largest value, "
            f"{float(np.min(amax, where=ordinary, initial=np.inf)):g}, over {most:g} "
            "has no inverse in float32. Multiply the matrix by a power of two"
        )
    return encode, decode


def largest_behind(amax: F32, encode: F32, recipe: Recipe) -> F32:
    """Return the magnitude that an automatic G stands for: amax, or that of G = 1."""
    most = np.float32(recipe.range * 6)
    return np.where((amax > 0) & np.isfinite(amax), amax, most / encode)


@dataclass(frozen=True, eq=False)
class GlobalScales:
    """Encode scales of the rows of a matrix, or of a batch of them.

    Parameters
    ----------
    encode : float32 (..., M, 1)
        G of each row.
    per
        For what each was chosen.
    """

    encode: F32
    per: Per

    def alpha(self, b: GlobalScales) -> F32:
        """Return ``1 / (G_A * G_B)`` for each element of D (..., M, N), in float32.

        Raises
        ------
        InputError
            The batches differ, or an element of alpha is 0 or Inf in float32.
        """
        if self.encode.shape[:-2] != b.encode.shape[:-2]:
            raise InputError(
                f"global scales of batches {self.encode.shape[:-2]} and "
                f"{b.encode.shape[:-2]}; they must agree"
            )
        with np.errstate(all="ignore"):
            product: F32 = self.encode * np.swapaxes(b.encode, -1, -2)
            inverse: F32 = _ONE / product
        wrong = ~np.isfinite(inverse) | (inverse == 0)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise InputError(
                f"alpha{list(at)}, 1 over the product of the global scales of row "
                f"{at[-2]} of A and row {at[-1]} of B, is {inverse[at]:g} in float32. "
                "Divide A or B by a power of two before quantising, and D by its "
                "inverse"
            )
        return inverse

    def dequantize(self, q: BlockScaled) -> NDArray[np.float32]:
        """Give the values of `q`, whose own global scale is None, over these.

        Raises
        ------
        InputError
            The shapes differ, or `q` has a global scale of its own.

        Warns
        -----
        NonFiniteWarning
            A value is beyond float32 and became Inf.
        """
        if q.global_scale is not None or q.shape[:-1] != self.encode.shape[:-1]:
            raise InputError(
                f"{q!r} with global scales of rows {self.encode.shape[:-1]}; need one "
                "for each row, and none in the matrix itself"
            )
        with np.errstate(all="ignore"):
            exact = q.dequantize(np.float64) / self.encode
            values: F32 = exact.astype(np.float32)
        warn_of_overflow(exact, values)
        return values


def quantize_per(
    x: ArrayLike,
    per: Per,
    *,
    recipe: str = "cutlass",
    counts: tuple[int, ...] | None = None,
) -> tuple[BlockScaled, GlobalScales]:
    """Quantise to NVFP4 with an automatic global scale for each part of `x`.

    Parameters
    ----------
    x : (..., M, K)
        float32, float16 or bfloat16.
    per
        ``"tensor"``, ``"row"`` (a token, or an output of a weight), ``"batch"`` (each
        matrix, such as an expert's) or ``"group"``: runs of rows, which `counts` gives.
    counts
        Rows of each group; 0 is an empty one.

    Returns
    -------
    BlockScaled
        Without a global scale.
    GlobalScales
        One for each row.

    Raises
    ------
    InputError
        Wrong type, shape, recipe or counts.
    """
    require_choice(per, "per", ("tensor", "row", "batch", "group"))
    chosen = RECIPES[require_choice(recipe, "recipe", tuple(RECIPES), gap="recipe")]
    if "nvfp4" not in chosen.formats:
        raise InputError(f"recipe {recipe!r} has no global scale; take one for nvfp4")
    if chosen.rows > 1 and per in ("row", "group"):
        raise InputError(
            f"recipe {recipe!r} per {per}: {chosen.rows} rows share a scale, and so "
            "a global scale. Take per='tensor' or 'batch'",
            gap="recipe",
        )
    array = require_array(x, "x")
    values = _values(array)
    drop = chosen.nan == "drop"
    vec_size = BLOCKS["nvfp4"].vec_size
    amax = largest_magnitudes(values, vec_size, drop, chosen.rows)
    largest = _largest_of(values, per, counts)
    encode, decode = automatic(largest, chosen)
    codes, scales, _ = run_rule(
        chosen,
        Blocks(
            values=values.reshape(*values.shape[:-1], -1, vec_size),
            amax=amax,
            encode=encode,
            decode=decode,
            one_level=False,
            largest=largest_behind(largest, encode, chosen),
            range=chosen.range,
            dtype=array.dtype.name,
            element=element("nvfp4"),
            scale_format=ScaleFormat.UE4M3,
            round=element("nvfp4").encode,
        ),
    )
    warn_of_nonfinite(values, scales, "nvfp4", ScaleFormat.UE4M3, drop=drop)
    encode.flags.writeable = False
    q = BlockScaled(codes.reshape(values.shape), scales)
    return q, GlobalScales(encode, per)


def _values(array: NDArray[Any]) -> F32:
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        raise InputError(f"x: dtype {array.dtype}; need float32, float16 or bfloat16")
    if array.ndim < 2 or 0 in array.shape or array.shape[-1] % 16:
        raise InputError(
            f"x of shape {array.shape}; nvfp4 takes (..., M, K) with K a multiple of 16"
        )
    with np.errstate(invalid="ignore"):
        return array.astype(np.float32)


def _largest_of(values: F32, per: Per, counts: tuple[int, ...] | None) -> F32:
    """Return the largest magnitude that counts for each row (..., M, 1)."""
    rows = np.fmax.reduce(np.abs(values), axis=-1, keepdims=True)
    rows = np.where(np.isnan(rows), np.float32(0), rows)
    if (per == "group") is (counts is None):
        raise InputError("counts go with per='group', and with nothing else")
    if counts is not None:
        sizes = [whole(count, "counts", 0) for count in counts]
        if values.ndim != 2 or sum(sizes) != len(values):
            raise InputError(
                f"counts {tuple(sizes)} are {sum(sizes)} rows; x is {values.shape}"
            )
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            rows[end - size : end] = rows[end - size : end].max(initial=0)
        return rows
    if per == "tensor":
        return np.broadcast_to(rows.max(), rows.shape)
    if per == "batch":
        return np.broadcast_to(rows.max(axis=(-2, -1), keepdims=True), rows.shape)
    return rows
