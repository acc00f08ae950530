"""tiny_road: one element of D, or one quantised block, in exact rationals.

Written from the text of the arithmetic, with no array and no float, so that nothing is
shared with what it checks. Every number is a float32 bit pattern or a Fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Bits = int
NAN, INF, SIGN = 0x7FFFFFFF, 0x7F800000, 0x80000000
E2M1 = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]


def power(e: int) -> Fraction:
    return Fraction(2) ** e


def exponent(x: Fraction) -> int:
    """Return e with 2^e <= |x| < 2^(e+1)."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power(e) <= x else e - 1


def element(code: int) -> Fraction:
    return -E2M1[code & 7] if code & 8 else E2M1[code]


def scale(code: int, ue8m0: bool) -> tuple[Fraction, int] | None:
    """Significand and exponent; None is NaN."""
    if ue8m0:
        return None if code == 255 else (Fraction(1), code - 127)
    code &= 127
    if code == 127:
        return None
    return (
        (Fraction(code, 8), -6)
        if code < 8
        else (
            1 + Fraction(code & 7, 8),
            (code >> 3) - 7,
        )
    )


def value(bits: Bits) -> Fraction:
    """Value of a finite float32."""
    field, fraction = bits >> 23 & 255, bits & 0x7FFFFF
    assert field != 255
    magnitude = (fraction | (0x800000 if field else 0)) * power(max(field, 1) - 150)
    return -magnitude if bits & SIGN else magnitude


def special(bits: Bits) -> bool:
    return bits >> 23 & 255 == 255


def is_nan(bits: Bits) -> bool:
    return special(bits) and bits & 0x7FFFFF != 0


def round_float(x: Fraction, nearest: bool, zero: Bits = 0) -> Bits:
    """Round to float32: to nearest even, or toward zero with overflow to Inf."""
    if x == 0:
        return zero
    sign, x = (SIGN, -x) if x < 0 else (0, x)
    quantum = max(exponent(x), -126) - 23
    steps = round(x / power(quantum)) if nearest else int(x / power(quantum))
    if steps == 0:
        return sign if nearest else 0
    if steps * power(quantum) >= power(128):
        return sign | INF
    if steps == 1 << 24:
        steps, quantum = steps >> 1, quantum + 1
    if steps < 1 << 23:
        return sign | steps
    return sign | quantum + 150 << 23 | steps - (1 << 23)


def mma(
    a: Sequence[int],
    b: Sequence[int],
    sfa: Sequence[int],
    sfb: Sequence[int],
    c: Bits,
    ue8m0: bool,
    kept_bits: int | None = 35,
) -> Bits:
    """One K=64 instruction; `kept_bits` None drops nothing before the last rounding."""
    pairs = [(scale(x, ue8m0), scale(y, ue8m0)) for x, y in zip(sfa, sfb, strict=True)]
    if is_nan(c) or any(x is None or y is None for x, y in pairs):
        return NAN
    if special(c):
        return c
    terms = [(value(c), max(exponent(value(c)), -126) if value(c) else -139)]
    for g, (x, y) in enumerate(pairs):
        assert x is not None
        assert y is not None
        products = [element(a[i]) * element(b[i]) for i in range(16 * g, 16 * g + 16)]
        scaled = sum(products, Fraction(0)) * x[0] * y[0] * power(x[1] + y[1])
        live = any(products) and x[0] * y[0] != 0
        terms.append((scaled, x[1] + y[1] if live else -139))
    if kept_bits is None:
        return round_float(sum((v for v, _ in terms), Fraction(0)), nearest=False)
    unit = power(max(e for _, e in terms) - kept_bits)
    return round_float(sum(int(v / unit) for v, _ in terms) * unit, nearest=False)


def accumulate(
    a: Sequence[int],
    b: Sequence[int],
    sfa: Sequence[int],
    sfb: Sequence[int],
    ue8m0: bool,
    kept_bits: int | None = 35,
) -> Bits:
    """Chain over K, filled up with code 0 and scale 0 to whole instructions."""
    fill = -len(a) % 64
    a, b = [*a, *[0] * fill], [*b, *[0] * fill]
    sfa, sfb = [*sfa, *[0] * (fill // 16)], [*sfb, *[0] * (fill // 16)]
    c = 0
    for k in range(0, len(a), 64):
        s = slice(k // 16, k // 16 + 4)
        c = mma(a[k : k + 64], b[k : k + 64], sfa[s], sfb[s], c, ue8m0, kept_bits)
    return c


def fma(x: Bits, y: Bits, z: Bits) -> Bits:
    """``x * y + z``, rounded once to nearest even."""
    if any(map(is_nan, (x, y, z))):
        return NAN
    sign = (x ^ y) & SIGN
    if special(x) or special(y):
        if x & ~SIGN == 0 or y & ~SIGN == 0 or (special(z) and (z & SIGN) != sign):
            return NAN
        return sign | INF
    if special(z):
        return z
    zero = sign & z & SIGN if value(x) * value(y) == 0 else 0
    return round_float(value(x) * value(y) + value(z), True, zero)


def mul(x: Bits, y: Bits) -> Bits:
    """``x * y``, rounded to nearest even."""
    if any(map(is_nan, (x, y))):
        return NAN
    sign = (x ^ y) & SIGN
    if special(x) or special(y):
        return NAN if x & ~SIGN == 0 or y & ~SIGN == 0 else sign | INF
    return round_float(value(x) * value(y), True, sign)


def finish(
    acc: Bits,
    alpha: Bits,
    c: Bits,
    beta: Bits,
    bias: Bits | None = None,
    relu: bool = False,
) -> Bits:
    """activation(beta * C + (alpha * acc + bias)); C is +0 where it is not loaded."""
    z = fma(beta, c, mul(alpha, acc) if bias is None else fma(alpha, acc, bias))
    if relu and not is_nan(z) and (z & SIGN or z == 0):
        return 0
    return z


def narrow(bits: Bits, exponent_bits: int, fraction_bits: int) -> int:
    """Round float32 to bf16 (8, 7) or f16 (5, 10), to nearest even."""
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    sign = (bits >> 31) << (exponent_bits + fraction_bits)
    if is_nan(bits):
        return 0x7FFF
    if special(bits):
        return sign | infinity
    x = abs(value(bits))
    if x == 0:
        return sign
    lowest = 2 - (1 << (exponent_bits - 1))
    e = max(exponent(x), lowest)
    steps = round(x / power(e - fraction_bits))
    code = (e - lowest) * (1 << fraction_bits) + steps
    return sign | min(code, infinity)


def quantise(z: Sequence[Bits], norm: Bits, ue8m0: bool) -> tuple[list[int], int]:
    """One block of 16: E2M1 codes and the scale code, by CUTLASS's rule."""
    if any(map(is_nan, z)):
        return [7] * 16, 0xFF if ue8m0 else 0x7F
    amax = max(x & ~SIGN for x in z)
    one_sixth = round_float(Fraction(1, 6), True)
    target = mul(amax, mul(norm, one_sixth))
    code = _scale_code(target, ue8m0)
    if ue8m0:
        reciprocal = round_float(power(127 - code), True)
    else:
        pair = scale(code, False)
        assert pair is not None
        exact = pair[0] * power(pair[1])
        reciprocal = round_float(1 / exact, True) if exact else INF
    s = min(mul(norm, reciprocal), INF - 1)
    return [_element_code(mul(x, s)) for x in z], code


def _scale_code(target: Bits, ue8m0: bool) -> int:
    """Encode a positive target: UE8M0 upwards, UE4M3 to nearest even."""
    if ue8m0:
        codes = [
            c for c in range(255) if special(target) or power(c - 127) >= value(target)
        ]
        return 254 if special(target) else min(codes, default=254)
    if special(target):
        return 0x7E
    return _nearest([_ue4m3(c) for c in range(0x7F)], value(target))


def _ue4m3(code: int) -> Fraction:
    pair = scale(code, False)
    assert pair is not None
    return pair[0] * power(pair[1])


def _element_code(x: Bits) -> int:
    if is_nan(x):
        return 7
    sign = 8 if x & SIGN else 0
    return sign | (7 if special(x) else _nearest(E2M1, abs(value(x))))


def _nearest(grid: Sequence[Fraction], x: Fraction) -> int:
    """Index of the nearest grid value, the even index on a tie, saturating."""
    best = min(range(len(grid)), key=lambda i: (abs(grid[i] - x), i % 2))
    return best
