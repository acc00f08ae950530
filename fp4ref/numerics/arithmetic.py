"""arithmetic: correctly rounded float32 operations on arrays: fma, mul, add, div.

These are PTX ``fma.rn.f32``, ``mul.rn.f32``, ``add.rn.f32`` and ``div.rn.f32``
(CUDA ``__fmaf_rn``, ``__fmul_rn``, ``__fadd_rn``, ``__fdiv_rn``): round to nearest
even, subnormals kept, and every NaN is 0x7FFFFFFF. Arguments broadcast. No input
raises a NumPy warning.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fp4ref.arguments import require_broadcast
from fp4ref.numerics.formats import F32, F64, NAN_BITS, require_float32

_CANONICAL_NAN = np.array(NAN_BITS, np.uint32).view(np.float32)


_DROPPED = np.uint64((1 << 29) - 1)
"""Bits of a float64 that float32 has not."""

_TIE = np.uint64(1 << 28)
_SIZE = np.uint64((1 << 63) - 1)
_SMALLEST_NORMAL = np.uint64(0x381 << 52)
"""Bits of 2^-126."""


def canonical_nan(x: F32) -> F32:
    """Replace every NaN by 0x7FFFFFFF."""
    nan = np.isnan(x)
    return np.where(nan, _CANONICAL_NAN, x) if np.any(nan) else np.asarray(x)


def add_round_to_odd(x: F64, y: F64) -> F64:
    """Add in float64; an inexact sum becomes the neighbour with an odd last bit.

    Rounding that to a format of at most 51 bits gives what rounding the exact sum
    would give: the odd last bit remembers that the sum was not a tie (Boldo and
    Melquiond, 2008).
    """
    total = x + y
    # TwoSum (Knuth): total + error == x + y exactly.
    y_part = total - x
    error = (x - (total - y_part)) + (y - y_part)
    bits = np.atleast_1d(total).view(np.int64)
    error = np.atleast_1d(error)
    must_move = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    # A pattern step of +1 grows the magnitude, whatever the sign.
    step = np.where((error > 0) == (total > 0), 1, -1)
    moved = (bits + np.where(must_move, step, 0)).view(np.float64)
    return moved.reshape(np.shape(total))


def fma_f32(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> F32:
    """Return ``a * b + c`` rounded once. PTX: ``fma.rn.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    a = require_float32(a, "fma_f32 a")
    b = require_float32(b, "fma_f32 b")
    c = require_float32(c, "fma_f32 c")
    require_broadcast(a=a, b=b, c=c)
    with np.errstate(all="ignore"):
        product = np.multiply(a, b, dtype=np.float64)  # exact: 24 + 24 bits
        total = np.add(product, c)
        if _may_round_twice(total):
            total = add_round_to_odd(product, c.astype(np.float64))
        return canonical_nan(total.astype(np.float32))


def _may_round_twice(total: F64) -> bool:
    """Whether rounding some sum to float64 and then to float32 may be wrong.

    It is right unless the float64 looks like a tie between two float32, or is
    subnormal there.
    """
    bits = np.atleast_1d(total).view(np.uint64)
    if (bits & _DROPPED == _TIE).any():
        return True
    size = bits & _SIZE
    return bool(((size < _SMALLEST_NORMAL) & (size != 0)).any())


def _rounded(name: str, operation: np.ufunc, a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Apply an operation that NumPy rounds to nearest, with the NaN of PTX."""
    x, y = require_float32(a, f"{name} a"), require_float32(b, f"{name} b")
    require_broadcast(a=x, b=y)
    with np.errstate(all="ignore"):
        return canonical_nan(operation(x, y))


def mul_f32(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return ``a * b``. PTX: ``mul.rn.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    return _rounded("mul_f32", np.multiply, a, b)


def add_f32(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return ``a + b``. PTX: ``add.rn.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    return _rounded("add_f32", np.add, a, b)


def sub_f32(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return ``a - b``. PTX: ``sub.rn.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    return _rounded("sub_f32", np.subtract, a, b)


def max_nan(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return the larger one; a NaN wins, and -0 < +0. PTX: ``max.NaN.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    larger = _rounded("max_nan", np.maximum, a, b)
    # NumPy does not order the zeros: the sum of +0 and -0 is +0, of -0 and -0 is -0.
    return np.where(larger == 0, add_f32(_zero(a), _zero(b)), larger)


def min_nan(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return the smaller one; a NaN wins, and -0 < +0. PTX: ``min.NaN.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    x, y = require_float32(a, "min_nan a"), require_float32(b, "min_nan b")
    return canonical_nan(-max_nan(-x, -y))


def _zero(x: npt.ArrayLike) -> F32:
    """Return x where it is a zero, else -0, which adds nothing."""
    array = require_float32(x, "x")
    return np.where(array == 0, array, np.float32(-0.0))


def div_f32(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """Return ``a / b``. PTX: ``div.rn.f32``.

    Raises
    ------
    InputError
        An argument is not float32, or the shapes do not broadcast.
    """
    return _rounded("div_f32", np.divide, a, b)
