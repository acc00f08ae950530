"""activation: activations with bits that every backend can reproduce.

``expf`` and ``tanhf`` differ between libraries in the last bits. Here each function
is a fixed sequence of correctly rounded float32 operations, comparisons and integer
operations on bit patterns. A CUDA kernel that writes the same lines with
``__fmaf_rn``, ``__fmul_rn``, ``__fadd_rn``, ``__fdiv_rn``, ``__float_as_uint`` and
``__uint_as_float`` gets the same bits. The order of the operations is the definition:
changing it changes the result.

A NaN gives 0x7FFFFFFF. ReLU, GELU and SiLU of +Inf are +Inf, and of -Inf +0 (ReLU), -0,
or a NaN (`gelu_erf` and `hardswish`, whose formulas multiply it by 0).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fp4ref.numerics.arithmetic import (
    add_f32,
    canonical_nan,
    div_f32,
    fma_f32,
    max_nan,
    min_nan,
    mul_f32,
    sub_f32,
)
from fp4ref.numerics.formats import F32, require_float32

_LOG2_E: Final = np.float32(1.44269502)  # 0x3FB8AA3B
_LN2_HIGH: Final = np.float32(0.693359375)  # 0x3F318000, 9 bits: n * high is exact
_LN2_LOW: Final = np.float32(-2.12194440e-4)  # 0xB95E8083, ln2 - high
# Adding it leaves round-to-nearest-even(x) in the low mantissa bits.
_ROUND_MAGIC: Final = np.float32(12582912.0)  # 0x4B400000, 1.5 * 2^23
# exp(r) = 1 + r + r^2 * P(r) on |r| <= ln2 / 2 (Cephes expf), highest power first.
_EXP_POLYNOMIAL: Final = tuple(
    np.float32(coefficient)
    for coefficient in (
        1.9875691500e-4,  # 0x39506967
        1.3981999507e-3,  # 0x3AB743CE
        8.3334519073e-3,  # 0x3C088908
        4.1665795894e-2,  # 0x3D2AA9C1
        1.6666665459e-1,  # 0x3E2AAAAA
        5.0000001201e-1,  # 0x3F000000
    )
)
_EXP_LOWEST: Final = np.float32(-87.0)  # 1 + exp(x) is 1 long before
_EXP_HIGHEST: Final = np.float32(89.0)  # 2^128, so the result is Inf
_ONE: Final = np.float32(1.0)

# u = sqrt(2/pi) * (x + 0.044715 x^3); -2u = x * (CUBIC * x^2 + LINEAR).
_GELU_LINEAR: Final = np.float32(-1.5957691216)  # 0xBFCC422A, -2 sqrt(2/pi)
_GELU_CUBIC: Final = np.float32(-0.0713548162726)  # 0xBD922279, 0.044715 * LINEAR
# Below these the denominator is Inf, so the result is -0 for -Inf too.
_GELU_LOWEST: Final = np.float32(-16.0)
_SILU_LOWEST: Final = np.float32(-128.0)


def _at_least(x: F32, bound: np.float32) -> F32:
    """``x < bound ? bound : x``, which keeps a NaN where ``fmaxf`` would drop it."""
    return np.where(x < bound, bound, x)


def _exp(x: F32) -> F32:
    """Return exp(x) for finite results above 2^-126; Inf from 2^127.5 up."""
    x = _at_least(x, _EXP_LOWEST)
    x = np.where(x > _EXP_HIGHEST, _EXP_HIGHEST, x)
    shifted = fma_f32(x, _LOG2_E, _ROUND_MAGIC)
    n = add_f32(shifted, -_ROUND_MAGIC)
    r = fma_f32(n, -_LN2_HIGH, x)
    r = fma_f32(n, -_LN2_LOW, r)
    p = np.full_like(r, _EXP_POLYNOMIAL[0])
    for coefficient in _EXP_POLYNOMIAL[1:]:
        p = fma_f32(p, r, coefficient)
    p = fma_f32(p, r, _ONE)
    p = fma_f32(p, r, _ONE)
    # 2^n by its exponent field. The shift keeps the low 9 bits, and those of the magic
    # number are 0, so what lands in sign and exponent is n + 127 (1..255; 255 is Inf).
    power_of_two = ((shifted.view(np.uint32) + np.uint32(127)) << 23).view(np.float32)
    return mul_f32(p, power_of_two)


def relu(x: npt.ArrayLike) -> F32:
    """Return ``max(x, +0)``; -0 gives +0. PTX: ``max.NaN.f32``.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "relu x")
    return canonical_nan(np.where(array <= 0, np.float32(0), array))


def gelu(x: npt.ArrayLike) -> F32:
    """Return ``x / (1 + exp(-2u))``, the tanh form of GELU.

    ``u = sqrt(2/pi) * (x + 0.044715 x^3)``; in exact arithmetic this equals
    ``x/2 * (1 + tanh(u))``.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    clamped = _at_least(require_float32(x, "gelu x"), _GELU_LOWEST)
    slope = fma_f32(mul_f32(clamped, clamped), _GELU_CUBIC, _GELU_LINEAR)
    e = _exp(mul_f32(clamped, slope))
    return div_f32(clamped, add_f32(_ONE, e))


def silu(x: npt.ArrayLike) -> F32:
    """Return ``x / (1 + exp(-x))``.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    clamped = _at_least(require_float32(x, "silu x"), _SILU_LOWEST)
    e = _exp(-clamped)
    return div_f32(clamped, add_f32(_ONE, e))


# tanh(x) = x + x^3 P(x^2) below 0.625 (Cephes tanhf), highest power first.
_TANH_POLYNOMIAL: Final = tuple(
    np.float32(coefficient)
    for coefficient in (
        -5.70498872745e-3,  # 0xBBBAF0EA
        2.06390887954e-2,  # 0x3CA9134E
        -5.37397155531e-2,  # 0xBD5C1E2D
        1.33314422036e-1,  # 0x3E088393
        -3.33332819422e-1,  # 0xBEAAAA99
    )
)
_TANH_SMALL: Final = np.float32(0.625)
_TWO: Final = np.float32(2.0)
_HALF: Final = np.float32(0.5)
# erf(x) = 1 - t (A1 + t (A2 + ...)) exp(-x^2), t = 1 / (1 + 0.3275911 x), x >= 0; off
# by at most 1.5e-7 (Abramowitz and Stegun 7.1.26). Highest power first.
_ERF_P: Final = np.float32(0.3275911)  # 0x3EA7BA05
_ERF_POLYNOMIAL: Final = tuple(
    np.float32(coefficient)
    for coefficient in (
        1.061405429,  # 0x3F87DC22
        -1.453152027,  # 0xBFBA00E3
        1.421413741,  # 0x3FB5F0E3
        -0.284496736,  # 0xBE91A98E
        0.254829592,  # 0x3E827906
    )
)
_ROOT_HALF: Final = np.float32(0.70710678)  # 0x3F3504F3
_THREE: Final = np.float32(3.0)
_SIX: Final = np.float32(6.0)
_SIXTH: Final = np.float32(0.16666667)  # 0x3E2AAAAB
_ZERO: Final = np.float32(0.0)
# The derivative of GELU's tanh form: CUTLASS's dGELU.
_ROOT_2_PI: Final = np.float32(0.7978845608028654)  # 0x3F4C422A
_GELU_TERM: Final = np.float32(0.044715)  # 0x3D372713
_D_GELU_TERM: Final = np.float32(0.1070322243)  # 0x3DDB33B6


def _horner(x: F32, coefficients: tuple[np.float32, ...]) -> F32:
    """Return the polynomial, an fma for each coefficient after the first."""
    p = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        p = fma_f32(p, x, coefficient)
    return p


def sigmoid(x: npt.ArrayLike) -> F32:
    """Return ``1 / (1 + exp(-x))``: +0 of -Inf, 1 of +Inf.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    e = _exp(-_at_least(require_float32(x, "sigmoid x"), _SILU_LOWEST))
    return div_f32(_ONE, add_f32(_ONE, e))


def tanh(x: npt.ArrayLike) -> F32:
    """Return the hyperbolic tangent: -1 and 1 of the infinities, +0 of both zeros.

    Below 0.625 a polynomial in x^2, above ``1 - 2 / (exp(2x) + 1)`` of the magnitude.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "tanh x")
    square = mul_f32(array, array)
    cubic = mul_f32(_horner(square, _TANH_POLYNOMIAL), square)
    small = fma_f32(cubic, array, array)
    size = np.abs(array)
    e = _exp(add_f32(size, size))
    large = sub_f32(_ONE, div_f32(_TWO, add_f32(e, _ONE)))
    return canonical_nan(np.where(size < _TANH_SMALL, small, np.copysign(large, array)))


def erf(x: npt.ArrayLike) -> F32:
    """Return the error function, off by at most 5e-7.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "erf x")
    size = np.abs(array)
    t = div_f32(_ONE, fma_f32(_ERF_P, size, _ONE))
    e = _exp(-mul_f32(size, size))
    p = mul_f32(_horner(t, _ERF_POLYNOMIAL), t)
    return canonical_nan(np.copysign(fma_f32(-p, e, _ONE), array))


def gelu_erf(x: npt.ArrayLike) -> F32:
    """Return ``x / 2 * (1 + erf(x / sqrt(2)))``: CUTLASS's ``GELU``.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "gelu_erf x")
    cumulative = add_f32(_ONE, erf(mul_f32(array, _ROOT_HALF)))
    return mul_f32(mul_f32(_HALF, array), cumulative)


def hardswish(x: npt.ArrayLike) -> F32:
    """Return ``x * min(max(x + 3, 0), 6) * (1 / 6)``: CUTLASS's ``HardSwish``.

    Raises
    ------
    InputError
        `x` is not float32.
    """
    array = require_float32(x, "hardswish x")
    relu6 = min_nan(max_nan(add_f32(array, _THREE), _ZERO), _SIX)
    return mul_f32(mul_f32(array, relu6), _SIXTH)


def leaky_relu(x: npt.ArrayLike, slope: npt.ArrayLike) -> F32:
    """Return ``x > 0 ? x : x * slope``: CUTLASS's ``LeakyReLU``.

    Raises
    ------
    InputError
        An argument is not float32.
    """
    array = require_float32(x, "leaky_relu x")
    return np.where(array > 0, array, mul_f32(array, slope))


def d_relu(dy: npt.ArrayLike, mask: npt.ArrayLike) -> F32:
    """Return ``mask != 0 ? dy : +0``: CUTLASS's ``dReLU``.

    Raises
    ------
    InputError
        An argument is not float32.
    """
    array = require_float32(dy, "d_relu dy")
    return np.where(require_float32(mask, "d_relu mask") != 0, array, _ZERO)


def d_relu_z(dy: npt.ArrayLike, z: npt.ArrayLike) -> F32:
    """Return ``z < 0 ? +0 : dy``: CUTLASS's ``dReLU_Z``; a NaN z passes dy on.

    Raises
    ------
    InputError
        An argument is not float32.
    """
    array = require_float32(dy, "d_relu_z dy")
    return np.where(require_float32(z, "d_relu_z z") < 0, _ZERO, array)


def d_gelu(dy: npt.ArrayLike, z: npt.ArrayLike) -> F32:
    """Return dy times the derivative of GELU's tanh form at z: CUTLASS's ``dGELU``.

    With ``t = tanh(k0 z (1 + k1 z^2))`` it is ``z / 2 * (1 - t^2) (k0 + k2 z^2) +
    (1 + t) / 2``. An infinite z gives a NaN.

    Raises
    ------
    InputError
        An argument is not float32.
    """
    z = require_float32(z, "d_gelu z")
    square = mul_f32(z, z)
    inner = mul_f32(mul_f32(_ROOT_2_PI, z), fma_f32(_GELU_TERM, square, _ONE))
    t = tanh(inner)
    slope = fma_f32(-t, t, _ONE)
    grown = fma_f32(_D_GELU_TERM, square, _ROOT_2_PI)
    cumulative = mul_f32(_HALF, add_f32(_ONE, t))
    factor = fma_f32(mul_f32(_HALF, z), mul_f32(slope, grown), cumulative)
    return mul_f32(factor, dy)
