"""exact_unscaled: an MMA of 32 bytes along K in exact rationals, from the model's text.

Slow and plain. The keyword arguments turn it into models that are wrong in one respect;
the golden vectors must refuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from exact_dot import INF, NAN, float32_bits, float32_value, floor_log2

# name -> exponent bits, mantissa bits, codes that are infinite, whether there is a NaN
FORMATS = {
    "f32": (8, 23, 0x7F800000, True),
    "f16": (5, 10, 0x7C00, True),
    "bf16": (8, 7, 0x7F80, True),
    "e4m3": (4, 3, None, True),
    "e5m2": (5, 2, 0x7C, True),
    "e2m3": (2, 3, None, False),
    "e3m2": (3, 2, None, False),
    "e2m1": (2, 1, None, False),
}


def element(code: int, name: str) -> tuple[Fraction | str, int]:
    """Return the value and the exponent; "nan", "inf" or "-inf" instead of a value."""
    exponent_bits, mantissa_bits, inf, has_nan = FORMATS[name]
    if name == "f32":
        code &= ~0x1FFF  # TF32
    sign_bit = 1 << (exponent_bits + mantissa_bits)
    sign, magnitude = (-1 if code & sign_bit else 1), code & (sign_bit - 1)
    if inf is not None and magnitude >= inf:
        return ("nan" if magnitude > inf else "-inf" if sign < 0 else "inf"), 0
    if inf is None and has_nan and magnitude == sign_bit - 1:
        return "nan", 0
    field, fraction = divmod(magnitude, 1 << mantissa_bits)
    exponent = max(field, 1) - (2 ** (exponent_bits - 1) - 1)
    whole = 1 if field else 0
    value = (whole + Fraction(fraction, 1 << mantissa_bits)) * Fraction(2) ** exponent
    return sign * value, exponent


def add_specials(terms: Sequence[Fraction | str]) -> int:
    if "nan" in terms or ("inf" in terms and "-inf" in terms):
        return NAN
    return INF if "inf" in terms else INF | 0x80000000


def product(x: Fraction | str, y: Fraction | str) -> Fraction | str:
    if not isinstance(x, str) and not isinstance(y, str):
        return x * y
    if "nan" in (x, y) or 0 in (x, y):
        return "nan"
    negative = [v.startswith("-") if isinstance(v, str) else v < 0 for v in (x, y)]
    return "-inf" if negative[0] != negative[1] else "inf"


def mma(
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    a_format: str,
    b_format: str,
    *,
    scale: int | None = 0,
    fraction_bits: int = 25,
    rounding: str = "rz",
    truncate: bool = True,
    floor: bool = False,
    e_zero: int = -133,
    zero_keeps_exponent: bool = False,
    exponent_of_product: bool = False,
    c_joins_last: bool = False,
) -> int:
    """Return the float32 bits of one output element; `c` is bits too.

    `scale` is the exponent of both scales together, None with a NaN among them.
    """
    if scale is None:
        return NAN
    terms: list[tuple[Fraction | str, int]] = []
    for code_a, code_b in zip(a, b, strict=True):
        (x, e_x), (y, e_y) = element(code_a, a_format), element(code_b, b_format)
        value, exponent = product(x, y), e_x + e_y + scale
        value = value if isinstance(value, str) else value * Fraction(2) ** scale
        if value == 0 and not zero_keeps_exponent:
            exponent = e_zero
        if exponent_of_product and value and not isinstance(value, str):
            exponent = floor_log2(abs(value))
        terms.append((value, exponent))
    c_term: Fraction | str = float32_value(c)
    if c >> 23 & 255 == 255:
        c_term = "nan" if c & 0x7FFFFF else "-inf" if c >> 31 else "inf"
    values = [value for value, _ in terms] + [c_term]
    if any(isinstance(value, str) for value in values):
        return add_specials(values)

    c_exponent = max(floor_log2(abs(c_term)), -126) if c_term else e_zero
    if not c_joins_last:
        terms.append((c_term, c_exponent))
    unit = Fraction(2) ** (max(e for _, e in terms) - fraction_bits)
    cut = (lambda x: x.__floor__()) if floor else int
    total = sum(cut(v / unit) * unit if truncate else v for v, _ in terms)
    if c_joins_last:
        total = float32_value(float32_bits(total, rounding)) + c_term
    return float32_bits(total, rounding)
