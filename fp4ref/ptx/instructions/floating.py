"""floating: float32 arithmetic.

Results are rounded to nearest even; `rounded` has the other directions. A NaN result is
0x7fffffff; ``.ftz`` flushes subnormal inputs and results to signed zero. It counts as
subnormal if it is below 2^-126 when rounded to 24 bits with an unbounded exponent
(measured on an H100): 2^-126 less a quarter of the unit 2^-149 is still 2^-126,
anything less is zero.
Source: PTX, Floating-point instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from fp4ref.numerics import fma_f32
from fp4ref.numerics.arithmetic import add_round_to_odd
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from fp4ref.ptx.instructions.approximate import ex2_approx_ftz, tanh_approx
from fp4ref.ptx.instructions.elementwise import elementwise, lanewise
from fp4ref.ptx.run.registry import Action, Form, Lanewise, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext
from fp4ref.ptx.text.syntax import Instruction

_NAN = np.uint32(0x7FFFFFFF)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_SIGN = np.uint32(0x80000000)
_EXPONENT = np.uint32(0x7F800000)


def canonical(values: Lanes) -> Lanes:
    """Replace every NaN by the canonical one."""
    nan = values != values
    if nan.any():
        values = values.copy()
        values.view(np.uint32)[nan] = _NAN
    return values


def flush(values: Lanes) -> Lanes:
    """Replace subnormals by zero of the same sign."""
    bits = values.view(np.uint32)
    exponents = bits & _EXPONENT
    if exponents.all():
        return values
    return np.where(exponents, bits, bits & _SIGN).view(np.float32)


Operation = Callable[..., Lanes]

_SMALLEST_NORMAL = np.uint32(0x00800000)
_ROUNDS_TO_NORMAL = 2.0**-126 - 2.0**-151


def flushing(
    function: Operation, form: Form, exact: Operation | None = None
) -> Operation:
    """Make NaN results canonical and, with ``.ftz``, flush sources and result.

    Parameters
    ----------
    exact
        The same function in float64, rounded so that it compares with 25-bit numbers
        as the exact value does. None if no result below 2^-126 can round to it.
    """
    if not form["ftz"]:
        return lambda *sources: canonical(function(*sources))

    def act(*sources: Lanes) -> Lanes:
        flushed = tuple(map(flush, sources))
        result = canonical(function(*flushed))
        exponents = result.view(np.uint32) & _EXPONENT
        if (exponents > _SMALLEST_NORMAL).all():
            return result
        result = flush(result)
        if exact is None:
            return result
        smallest = result.view(np.uint32) & _MAGNITUDE == _SMALLEST_NORMAL
        if not smallest.any():
            return result
        below = smallest & (np.abs(exact(*flushed)) < _ROUNDS_TO_NORMAL)
        return np.where(below, np.copysign(np.float32(0), result), result)

    return act


_ARITHMETIC: dict[str, Operation] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma.rn": fma_f32,
    "div.rn": np.divide,
    "sqrt.rn": np.sqrt,
    "rcp.rn": lambda x: np.divide(np.float32(1), x),
}

# A sum below 2^-126 is exact, a root is never that small, and the only reciprocal that
# rounds to 2^-126 is that of 2^126.
_IN_FLOAT64: dict[str, Operation] = {
    # Exact: 24 + 24 bits.
    "mul": lambda a, b: np.multiply(a, b, dtype=np.float64),
    "fma.rn": lambda a, b, c: add_round_to_odd(
        np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    ),
    # A quotient of 24-bit numbers is 2^-49 of itself or more away from a 25-bit one.
    "div.rn": lambda a, b: np.divide(a, b, dtype=np.float64),
}


def nearest(form: Form) -> Operation:
    """Return the operation that an opcode names, of arrays of any shape."""
    name = form["name"]
    return flushing(_ARITHMETIC[name], form, _IN_FLOAT64.get(name))


@instruction("add", "sub", "mul", form="(.rn)?(?P<ftz>.ftz)?.f32", operands=3)
@instruction("div.rn", form="(?P<ftz>.ftz)?.f32", operands=3)
@instruction("fma.rn", form="(?P<ftz>.ftz)?.f32", operands=4)
@instruction("sqrt.rn", "rcp.rn", form="(?P<ftz>.ftz)?.f32", operands=2)
def arithmetic(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build operations rounded to nearest even."""
    return lanewise(context, each, nearest(form), "f32")


def smallest_or_largest(name: str, *, keeps_nan: bool) -> Operation:
    """Return min or max of two: a NaN wins or loses; -0 < +0."""
    larger = name == "max"
    # NumPy's maximum keeps a NaN and does not order -0 and +0; its fmax keeps a
    # signalling NaN too where it leaves the choice to the C library.
    choose = np.maximum if larger else np.minimum
    of_signs = np.bitwise_and if larger else np.bitwise_or

    def pick(a: Lanes, b: Lanes) -> Lanes:
        result: Lanes = choose(a, b)
        if not keeps_nan and (result != result).any():
            result = np.where(a != a, b, np.where(b != b, a, result))
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            signed = of_signs(a.view(np.uint32), b.view(np.uint32)).view(np.float32)
            return np.where(zeros, signed, result)
        return result

    return pick


@instruction("min", "max", form="(?P<ftz>.ftz)?(?P<nan>.NaN)?.f32", operands=(3, 4))
@instruction(
    "min", "max", form="(?P<ftz>.ftz)?(?P<nan>.NaN)?(?P<abs>.abs).f32", operands=4
)
def min_max(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build min / max of two or three: with ``.NaN`` a NaN wins, without it loses."""
    pick = smallest_or_largest(form["name"], keeps_nan=bool(form["nan"]))

    def act(*sources: Lanes) -> Lanes:
        if form.get("abs"):
            sources = tuple(map(np.abs, sources))
        return reduce(pick, sources)

    return lanewise(context, each, flushing(act, form), "f32")


@instruction(
    "min", "max", form="(?P<ftz>.ftz)?(?P<nan>.NaN)?.xorsign.abs.f32", operands=3
)
def min_max_of_magnitudes(
    context: LaunchContext, each: Instruction, form: Form
) -> Lanewise:
    """Build min / max of magnitudes, with the sign that the product would have."""
    pick = smallest_or_largest(form["name"], keeps_nan=bool(form["nan"]))

    def act(a: Lanes, b: Lanes) -> Lanes:
        sign = (a.view(np.uint32) ^ b.view(np.uint32)) & _SIGN
        found: Lanes = pick(np.abs(a), np.abs(b)).view(np.uint32) | sign
        return found.view(np.float32)

    return lanewise(context, each, flushing(act, form), "f32")


@instruction("neg", "abs", form="(?P<ftz>.ftz)?.f32", operands=2)
def sign(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build negation and magnitude, operations on the sign bit."""
    operation, mask = (
        (np.bitwise_and, _MAGNITUDE)
        if form["name"] == "abs"
        else (np.bitwise_xor, _SIGN)
    )

    def act(a: Lanes) -> Lanes:
        changed: Lanes = operation(a.view(np.uint32), mask)
        return changed.view(np.float32)

    return lanewise(context, each, flushing(act, form), "f32")


@instruction("copysign.f32", operands=3)
def copy_sign(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``copysign``: the sign bit of `a` on the other bits of `b`."""

    def act(a: Lanes, b: Lanes) -> Lanes:
        sign = a.view(np.uint32) & _SIGN
        joined: Lanes = sign | b.view(np.uint32) & _MAGNITUDE
        return joined.view(np.float32)

    return elementwise(context, each, act, "f32")


@instruction("rcp.approx.ftz.f32", operands=2)
def reciprocal(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``rcp.approx.ftz.f32`` with the table measured on an H200."""
    return elementwise(context, each, rcp_approx_ftz, "f32")


@instruction("ex2.approx.ftz.f32", operands=2)
def power_of_two(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``ex2.approx.ftz.f32`` with the table measured on an H200."""
    return elementwise(context, each, ex2_approx_ftz, "f32")


@instruction("tanh.approx.f32", operands=2)
def hyperbolic_tangent(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tanh.approx.f32`` with the table measured on an H200."""
    return elementwise(context, each, tanh_approx, "f32")


_APPROXIMATE: dict[str, Operation] = {"sin": np.sin, "cos": np.cos, "lg2": np.log2}


@instruction(
    "sin.approx", "cos.approx", "lg2.approx", form="(?P<ftz>.ftz)?.f32", operands=2
)
def bounded(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``sin``, ``cos`` and ``lg2``: the exact function, rounded to nearest.

    The hardware's own tables are not known here. PTX bounds its errors, and an H200
    kept to this in 49,152 inputs each: ``sin`` 2^-20.6 and ``cos`` 2^-20.4 from the
    exact value within 2 pi of zero (PTX says nothing beyond), ``lg2`` 2^-22.3 between
    1/2 and 2 and that part of its value elsewhere.
    """
    name = form["name"].partition(".")[0]

    def act(a: Lanes) -> Lanes:
        taken = flush(a) if form["ftz"] else a
        found = _APPROXIMATE[name](taken.astype(np.float64)).astype(np.float32)
        return canonical(found)

    return elementwise(context, each, act, "f32")
