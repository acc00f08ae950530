"""conversion_rounded: ``cvt`` of floats of 16 to 64 bits and integers, any rounding.

The forms that CUTLASS's block-scaled kernels use are in `conversion`. Source: PTX, cvt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.numerics.arithmetic import add_round_to_odd
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.floating import flush
from fp4ref.ptx.instructions.rounding import (
    F64,
    NARROW,
    WAYS,
    flush_result,
    narrow,
    saturate,
)
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext, dtype_of
from fp4ref.ptx.text.syntax import Instruction

_INTEGER = "[su](8|16|32|64)"
_WAY = f".(?P<way>{WAYS})"
_FTZ, _SAT = "(?P<ftz>.ftz)?", "(?P<sat>.sat)?"
_QUIET_64 = np.uint64(1 << 51)

_OF_KIND = {"f16": "b16", "bf16": "b16", "f32": "b32", "f64": "b64"}


def _wide(kind: str, bits: Lanes) -> F64:
    """Return patterns of a float type as float64, exactly."""
    return bits.view(np.float64) if kind == "f64" else NARROW[kind].widen(bits)


def _carry_nan(kind: str, bits: Lanes, to: str) -> Lanes:
    """Return NaNs of another type with the sign and the upper bits of the payload."""
    source = 52 if kind == "f64" else NARROW[kind].fraction
    target = 52 if to == "f64" else NARROW[to].fraction
    wide = bits.astype(np.uint64)
    total = 8 * bits.dtype.itemsize
    payload = wide & np.uint64((1 << source) - 1)
    by = np.uint64(abs(target - source))
    payload = payload << by if target > source else payload >> by
    if to == "f64":
        top, width = 0x7FF << 52, 64
    else:
        top, width = NARROW[to].infinity, NARROW[to].bits
    sign = wide >> np.uint64(total - 1) << np.uint64(width - 1)
    made: Lanes = sign | np.uint64(top | 1 << target - 1) | payload
    return made


@instruction("cvt", form=f"{_WAY}{_FTZ}{_SAT}.(?P<to>f32).(?P<kind>f64)", operands=2)
@instruction("cvt", form=f"{_WAY}{_SAT}.(?P<to>f16|bf16).(?P<kind>f64)", operands=2)
@instruction(
    "cvt", form=f".(?P<way>rz|rm|rp){_FTZ}{_SAT}.(?P<to>f16).(?P<kind>f32)", operands=2
)
@instruction(
    "cvt", form=f".(?P<way>rn){_FTZ}(?P<sat>.sat).(?P<to>f16).(?P<kind>f32)", operands=2
)
@instruction("cvt", form=f"{_WAY}.(?P<to>f16).(?P<kind>bf16)", operands=2)
@instruction("cvt", form=f"{_WAY}.(?P<to>bf16).(?P<kind>f16)", operands=2)
def narrower(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a conversion that rounds; a NaN of float64 keeps the payload that fits.

    ``.ftz`` changes nothing on the way from float32 to f16, as an H200 has it.
    """
    kind, target, way = form["kind"], form["to"], form["way"]
    to = NARROW[target]

    def convert(bits: Lanes) -> Lanes:
        x = _wide(kind, bits)
        found = narrow(x, to, way)
        if form.get("ftz") and target == "f32":
            found = flush_result(x, found, to, way)
        if form.get("sat"):
            return saturate(found, to)
        nan = np.isnan(x)
        if kind == "f64" and nan.any():
            found = np.where(nan, _carry_nan(kind, bits, target), found)
        return found.astype(to.storage)

    return elementwise(context, each, convert, _OF_KIND[kind], _OF_KIND[target])


@instruction("cvt", form=".(?P<to>f64).(?P<kind>f16|bf16)", operands=2)
@instruction("cvt", form="(?P<ftz>.ftz).(?P<to>f64).(?P<kind>f32)", operands=2)
@instruction("cvt", form="(?P<ftz>.ftz).(?P<to>f32).(?P<kind>f16|bf16)", operands=2)
def wider(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build an exact widening; ``.ftz`` makes NaNs canonical and subnormals zeros."""
    kind, target = form["kind"], form["to"]

    def convert(bits: Lanes) -> Lanes:
        x = _wide(kind, bits)
        if form.get("ftz"):
            x = flush(x.astype(np.float32)).astype(np.float64)
        if target == "f32":
            return narrow(x, NARROW["f32"])
        nan = np.isnan(x)
        if nan.any():
            taken = np.full_like(bits, 0x7FFFFFFF) if form.get("ftz") else bits
            carried = _carry_nan(kind, taken, "f64").view(np.float64)
            x = np.where(nan, carried, x)
        return x.view(np.uint64)

    return elementwise(context, each, convert, _OF_KIND[kind], _OF_KIND[target])


_INTEGRAL: dict[str, Callable[[F64], F64]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_TO_INTEGRAL = f".(?P<way>{'|'.join(_INTEGRAL)})"


@instruction(
    "cvt",
    form=f"{_TO_INTEGRAL}{_SAT}.(?P<to>f16|bf16|f64).(?P<kind>f16|bf16|f64)",
    operands=2,
)
def to_integral(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build the integral value of a float, in its own type."""
    kind, target = form["kind"], form["to"]
    if kind != target:
        raise Unknown("ptx-cvt")

    def convert(bits: Lanes) -> Lanes:
        x = _INTEGRAL[form["way"]](_wide(kind, bits))
        if form["sat"]:
            x = np.where(x > 0, np.minimum(x, 1.0), 0.0)
        if kind != "f64":
            return narrow(x, NARROW[kind])
        nan = np.isnan(x)
        return np.where(nan, bits | _QUIET_64, x.view(np.uint64))

    return elementwise(context, each, convert, _OF_KIND[kind])


@instruction(
    "cvt",
    form=f"{_TO_INTEGRAL}{_SAT}.(?P<to>{_INTEGER}).(?P<kind>f16|bf16|f64)",
    operands=2,
)
@instruction(
    "cvt",
    form=f"{_TO_INTEGRAL}{_FTZ}(?P<sat>.sat).(?P<to>{_INTEGER}).(?P<kind>f32)",
    operands=2,
)
def to_integer(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a float to an integer: rounded as asked, then limited to the type's range.

    A NaN gives 0; of float64, and to 64 bits, it gives the top bit alone.
    """
    kind, dtype = form["kind"], dtype_of(form["to"])
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    top_bit = kind == "f64" or dtype.itemsize == 8
    nan_bits = 1 << 8 * dtype.itemsize - 1 if top_bit else 0
    nan_value = np.array(nan_bits, f"u{dtype.itemsize}")

    def convert(bits: Lanes) -> Lanes:
        wide = _wide(kind, bits)
        if form.get("ftz"):
            wide = flush(bits.view(np.float32)).astype(np.float64)
        x = _INTEGRAL[form["way"]](wide)
        inside = np.where((x > low) & (x < high), x, 0.0).astype(dtype)
        found = np.where(x >= high, dtype.type(high), inside)
        found = np.where(x <= low, dtype.type(low), found)
        return np.where(np.isnan(x), nan_value.view(dtype), found).astype(dtype)

    return elementwise(context, each, convert, _OF_KIND[kind], form["to"])


@instruction(
    "cvt",
    form=f".(?P<way>rz|rm|rp){_SAT}.(?P<to>f32|f16).(?P<kind>{_INTEGER})",
    operands=2,
)
@instruction(
    "cvt",
    form=f".(?P<way>rn)(?P<sat>.sat).(?P<to>f32|f16).(?P<kind>{_INTEGER})",
    operands=2,
)
@instruction("cvt", form=f"{_WAY}.(?P<to>bf16).(?P<kind>{_INTEGER})", operands=2)
@instruction("cvt", form=f"{_WAY}.(?P<to>f64).(?P<kind>{_INTEGER})", operands=2)
def from_integer(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build an integer to a float, in any direction."""
    target, way, kind = form["to"], form["way"], form["kind"]

    def convert(a: Lanes) -> Lanes:
        if target == "f64":
            return _directed_double(a, way)
        to = NARROW[target]
        found = narrow(_odd_double(a), to, way)
        return saturate(found, to) if form.get("sat") else found

    return elementwise(context, each, convert, kind, _OF_KIND[target])


def _odd_double(a: Lanes) -> F64:
    """Return integers as float64, rounded to odd where they have more than 53 bits."""
    if a.dtype.itemsize < 8:
        return a.astype(np.float64)
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    return np.atleast_1d(add_round_to_odd(high, low))


def _directed_double(a: Lanes, way: str) -> Lanes:
    found = a.astype(np.float64)
    if way != "rn" and a.dtype.itemsize == 8:
        for i, value in enumerate(a.tolist()):
            near = int(found[i])
            if way == "rz" and abs(near) > abs(value):
                found[i] = np.nextafter(found[i], 0)
            elif way == "rm" and near > value:
                found[i] = np.nextafter(found[i], -np.inf)
            elif way == "rp" and near < value:
                found[i] = np.nextafter(found[i], np.inf)
    return found.view(np.uint64)


@instruction("cvt.sat", form=f".(?P<to>{_INTEGER}).(?P<kind>{_INTEGER})", operands=2)
def to_integer_in_range(
    context: LaunchContext, each: Instruction, form: Form
) -> Action:
    """Build an integer to an integer, limited to the range of the result."""
    limits = np.iinfo(dtype_of(form["to"]))
    source = np.iinfo(dtype_of(form["kind"]))
    low, high = max(limits.min, source.min), min(limits.max, source.max)

    def convert(a: Lanes) -> Lanes:
        return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(limits.dtype)

    return elementwise(context, each, convert, form["kind"], form["to"])
