"""doubles: float64 arithmetic, rounded once in any direction.

NumPy rounds to nearest; the other directions compare its result with the exact one, as
fractions, lane by lane. A fused multiply-add is put together from exact parts (Boldo
and Melquiond, 2008) where none of them can overflow or lose bits, else from fractions.
Source: PTX, Floating-point instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from fp4ref.numerics.arithmetic import add_round_to_odd
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.rounding import F64, WAYS
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext
from fp4ref.ptx.text.syntax import Instruction

_SIGN = np.uint64(1 << 63)
_SPLIT = 134217729.0
"""2^27 + 1: it divides a significand of 53 bits into two of 26 (Veltkamp)."""


def _product(a: F64, b: F64) -> tuple[F64, F64]:
    """Return the product and its error, whose sum is exact (Dekker)."""
    high = [_SPLIT * x - (_SPLIT * x - x) for x in (a, b)]
    low = [a - high[0], b - high[1]]
    whole = a * b
    error = high[0] * high[1] - whole + high[0] * low[1] + low[0] * high[1]
    return whole, error + low[0] * low[1]


def _sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Return the sum and its error, whose sum is exact (Knuth)."""
    whole = a + b
    part = whole - a
    return whole, a - (whole - part) + (b - part)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def fma(a: F64, b: F64, c: F64) -> F64:
    """Return ``a * b + c``, rounded once to nearest even."""
    product, error = _product(a, b)
    high, low = _sum(c, error)
    total, rest = _sum(product, high)
    found = total + np.atleast_1d(add_round_to_odd(rest, low))
    factors = (np.abs(a) > 2.0**-400) & (np.abs(b) > 2.0**-400)
    factors &= (np.abs(a) < 2.0**400) & (np.abs(b) < 2.0**400)
    term = (np.abs(c) > 2.0**-850) & (np.abs(c) < 2.0**850)
    plain = a * b + c
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    zero = (a == 0) | (b == 0)
    found = np.where(finite & ~zero, found, plain)
    found = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, found)
    for i in np.flatnonzero(finite & ~zero & ~(factors & term)):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        if exact:
            found[i] = _nearest(exact)
            if found[i] == 0:
                found[i] = np.copysign(0.0, -1.0 if exact < 0 else 1.0)
        else:
            found[i] = plain[i] if plain[i] == 0 else 0.0
    return found


_NEAREST: dict[str, Callable[..., F64]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": fma,
    "mad": fma,
    "div": np.divide,
    "rcp": lambda x: np.divide(1.0, x),
    "sqrt": np.sqrt,
}


def _side(name: str, found: Fraction, *sources: Fraction) -> int:
    """Return the sign of the exact result less `found`."""
    match name, sources:
        case "add", (a, b):
            beyond = a + b - found
        case "sub", (a, b):
            beyond = a - b - found
        case "mul", (a, b):
            beyond = a * b - found
        case "div", (a, b):
            beyond = a / b - found
        case "rcp", (x,):
            beyond = 1 / x - found
        case "sqrt", (x,):
            beyond = x - found * found
        case _, (a, b, c):
            beyond = a * b + c - found
        case _:
            raise ValueError(name)
    return (beyond > 0) - (beyond < 0)


def directed(name: str, way: str, *sources: F64) -> F64:
    """Return a result rounded in a direction, from the nearest and the exact one."""
    found = np.array(_NEAREST[name](*sources))
    finite = np.logical_and.reduce([np.isfinite(x) for x in sources])
    finite &= ~np.isnan(found)
    if name in ("div", "rcp"):
        finite &= sources[-1] != 0
    for i in np.flatnonzero(finite):
        exact = [Fraction(float(x[i])) for x in sources]
        near = float(found[i])
        overflows = np.isinf(near)
        side = -1 if near > 0 else 1
        if not overflows:
            side = _side(name, Fraction(near), *exact)
        if side == 0:
            continue
        away_from_zero = near != 0 and (near > 0) != (side > 0)
        if way == "rp" and side > 0:
            found[i] = np.nextafter(near, np.inf)
        elif way == "rm" and side < 0:
            found[i] = np.nextafter(near, -np.inf)
        elif way == "rz" and away_from_zero:
            found[i] = np.nextafter(near, 0.0)
    if way == "rm" and name in ("add", "sub", "fma", "mad"):
        *first, last = sources
        term = first[0] * first[1] if len(first) == 2 else first[0]
        other = -last if name == "sub" else last
        minus = (found == 0) & (np.signbit(term) | np.signbit(other))
        exact_zero = finite & minus & (term == -other)
        found = np.where(exact_zero, -0.0, found)
    return found


@instruction("add", "sub", "mul", form=f"(.(?P<way>{WAYS}))?.f64", operands=3)
@instruction("div", form=f".(?P<way>{WAYS}).f64", operands=3)
@instruction("fma", "mad", form=f".(?P<way>{WAYS}).f64", operands=4)
@instruction("rcp", "sqrt", form=f".(?P<way>{WAYS}).f64", operands=2)
def arithmetic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float64 arithmetic; ``mad`` is ``fma``."""
    name, way = form["name"], form["way"] or "rn"

    def act(*sources: Lanes) -> Lanes:
        found = (
            _NEAREST[name](*sources) if way == "rn" else directed(name, way, *sources)
        )
        return quiet(
            found, [sources[i] for i in _NAN_ORDER.get(name, (0, 1, 2)[: len(sources)])]
        )

    return elementwise(context, each, act, "f64")


_QUIET = np.uint64(1 << 51)
_INVALID = np.uint64(0xFFF8 << 48)


_NAN_ORDER = {"fma": (0, 2, 1), "mad": (0, 2, 1), "div": (1, 0)}
"""Of several sources that are NaN, the last in this order gives the result."""


def quiet(found: F64, sources: Sequence[Lanes]) -> F64:
    """Return results whose NaNs are those of the hardware, as an H200 has them.

    The last source that is a NaN gives its sign and payload and becomes quiet; without
    one, an invalid operation gives 0xfff8000000000000.
    """
    nan = np.isnan(found)
    if not nan.any():
        return found
    bits = np.where(nan, _INVALID, found.view(np.uint64))
    for source in sources:
        taken = nan & np.isnan(source)
        bits = np.where(taken, source.view(np.uint64) | _QUIET, bits)
    return bits.view(np.float64)


@instruction("min", "max", form=".f64", operands=3)
def min_max(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build min / max: a NaN loses against a number; -0 < +0."""
    larger = form["name"] == "max"
    choose = np.fmax if larger else np.fmin
    of_signs = np.bitwise_and if larger else np.bitwise_or

    def pick(a: Lanes, b: Lanes) -> Lanes:
        result: Lanes = choose(a, b)
        signed = of_signs(a.view(np.uint64), b.view(np.uint64)).view(np.float64)
        return quiet(np.where((a == 0) & (b == 0), signed, result), (a, b))

    return elementwise(context, each, pick, "f64")


@instruction("neg", "abs", form=".f64", operands=2)
def sign(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build negation and magnitude; a NaN keeps its sign and becomes quiet."""
    is_abs = form["name"] == "abs"

    def act(a: Lanes) -> Lanes:
        bits = a.view(np.uint64)
        changed = bits & ~_SIGN if is_abs else bits ^ _SIGN
        return np.where(np.isnan(a), bits | _QUIET, changed).view(np.float64)

    return elementwise(context, each, act, "f64")


@instruction("copysign.f64", operands=3)
def copy_sign(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``copysign``: the sign bit of `a` on the other bits of `b`."""

    def act(a: Lanes, b: Lanes) -> Lanes:
        joined: Lanes = a.view(np.uint64) & _SIGN | b.view(np.uint64) & ~_SIGN
        return joined.view(np.float64)

    return elementwise(context, each, act, "f64")
