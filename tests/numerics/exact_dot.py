"""exact_dot: the K=64 instruction in exact rationals, written from the model's text.

Slow and plain, so that it can be compared by eye with the text. The keyword arguments
turn it into models that are wrong in one respect; the golden vectors must refuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

GRID = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]
NAN, INF = 0x7FFFFFFF, 0x7F800000


def element(code: int) -> Fraction:
    return -GRID[code & 7] if code & 8 else GRID[code]


def scale(code: int, scale_format: str) -> tuple[Fraction, int] | None:
    """Return significand and exponent, None for NaN."""
    if scale_format == "ue8m0":
        return None if code == 255 else (Fraction(1), code - 127)
    code &= 0x7F
    if code == 0x7F:
        return None
    if code < 8:
        return Fraction(code, 8), -6
    return 1 + Fraction(code % 8, 8), code // 8 - 7


def floor_log2(x: Fraction) -> int:
    """Return e with 2^e <= x < 2^(e+1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def float32_bits(x: Fraction, rounding: str) -> int:
    """Round toward zero ("rz") or to nearest even ("rne"), overflow to Inf.

    A zero is +0, even where a negative value was rounded to it.
    """
    if x == 0:
        return 0
    sign, x = (0x80000000, -x) if x < 0 else (0, x)
    unit = Fraction(2) ** (max(floor_log2(x), -126) - 23)
    steps = int(x / unit) if rounding == "rz" else round(x / unit)
    x = steps * unit
    if x == 0:
        return 0
    if x >= Fraction(2) ** 128:
        return sign | INF
    e = floor_log2(x)
    if e < -126:
        return sign | int(x * Fraction(2) ** 149)
    return sign | (e + 127) << 23 | int((x / Fraction(2) ** e - 1) * 2**23)


def float32_value(bits: int) -> Fraction:
    field, fraction = bits >> 23 & 255, bits & 0x7FFFFF
    value = fraction * Fraction(2) ** -149
    if field:
        value = (0x800000 | fraction) * Fraction(2) ** (field - 150)
    return -value if bits >> 31 else value


def mma_k64(
    a: Sequence[int],
    b: Sequence[int],
    sfa: Sequence[int],
    sfb: Sequence[int],
    c: int,
    scale_format: str,
    vec_size: int,
    *,
    fraction_bits: int = 35,
    rounding: str = "rz",
    truncate: bool = True,
    group: int = 16,
    exponent_of_product: bool = False,
    zero_group_keeps_exponent: bool = False,
    cancelled_group_is_zero: bool = False,
    c_joins_last: bool = False,
) -> int:
    """Return the float32 bits of one output element; `c` is bits too."""
    scales_a = [scale(code, scale_format) for code in sfa]
    scales_b = [scale(code, scale_format) for code in sfb]
    c_is_special = c >> 23 & 255 == 255
    if None in scales_a or None in scales_b or (c_is_special and c & 0x7FFFFF):
        return NAN
    if c_is_special:
        return c

    terms = []
    for start in range(0, 64, group):
        products = [element(a[k]) * element(b[k]) for k in range(start, start + group)]
        (s_a, e_a), (s_b, e_b) = (
            scales_a[start // vec_size],
            scales_b[start // vec_size],
        )
        value = sum(products) * s_a * s_b * Fraction(2) ** (e_a + e_b)
        exponent = e_a + e_b
        dead = not any(products) or s_a * s_b == 0
        if dead and not zero_group_keeps_exponent:
            exponent = -139
        if cancelled_group_is_zero and value == 0:
            exponent = -139
        if exponent_of_product and value:
            exponent = floor_log2(abs(value))
        terms.append((value, exponent))
    c_value = float32_value(c)
    c_exponent = max(floor_log2(abs(c_value)), -126) if c_value else -139
    if not c_joins_last:
        terms.append((c_value, c_exponent))

    unit = Fraction(2) ** (max(e for _, e in terms) - fraction_bits)
    total = sum(int(v / unit) * unit if truncate else v for v, _ in terms)
    if c_joins_last:
        total = float32_value(float32_bits(total, rounding)) + c_value
    return float32_bits(total, rounding)


def matmul(
    a: Sequence[Sequence[int]],
    b: Sequence[Sequence[int]],
    sfa: Sequence[Sequence[int]],
    sfb: Sequence[Sequence[int]],
    c: Sequence[Sequence[int]],
    scale_format: str,
    vec_size: int,
) -> list[list[int]]:
    """Chain over K; a K that is not a multiple of 64 is filled up with code 0."""
    k = len(a[0])
    fill = -k % 64

    def element_of_d(row: int, column: int) -> int:
        d = c[row][column]
        data_a = [*a[row], *[0] * fill]
        data_b = [*b[column], *[0] * fill]
        scales_a = [*sfa[row], *[0] * (fill // vec_size)]
        scales_b = [*sfb[column], *[0] * (fill // vec_size)]
        n = 64 // vec_size
        for step in range((k + fill) // 64):
            d = mma_k64(
                data_a[64 * step : 64 * step + 64],
                data_b[64 * step : 64 * step + 64],
                scales_a[n * step : n * step + n],
                scales_b[n * step : n * step + n],
                d,
                scale_format,
                vec_size,
            )
        return d

    return [[element_of_d(i, j) for j in range(len(b))] for i in range(len(a))]
