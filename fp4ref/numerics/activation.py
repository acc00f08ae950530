"""activation: ReLU, GELU and SiLU with bits that every backend can reproduce.

``expf`` and ``tanhf`` differ between libraries in the last bits. Here each function
is a fixed sequence of correctly rounded float32 operations, comparisons and integer
operations on bit patterns. A CUDA kernel that writes the same lines with
``__fmaf_rn``, ``__fmul_rn``, ``__fadd_rn``, ``__fdiv_rn``, ``__float_as_uint`` and
``__uint_as_float`` gets the same bits. The order of the operations is the definition:
changing it changes the result.

A NaN gives 0x7FFFFFFF, +Inf gives +Inf, -Inf gives +0 (ReLU) or -0.
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
    mul_f32,
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
