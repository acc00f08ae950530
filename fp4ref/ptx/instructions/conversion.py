"""conversion: ``cvt`` between integers, float32, halves and the small formats.

The small formats are those of `fp4ref.numerics.elements`. Source: PTX, cvt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.numerics import encode_ue8m0
from fp4ref.numerics.elements import element
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.floating import canonical, flush
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.run.taint import Undefined, follow
from fp4ref.ptx.text.syntax import TYPE_NBYTES, Instruction

_INTEGER = "[su](8|16|32|64)"


@instruction(
    "cvt", form=f".(?P<to>{_INTEGER}).(?P<kind>{_INTEGER})", operands=2, taints=True
)
def integer_to_integer(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build conversions that extend by the source's sign, or drop high bits."""
    dtype, kind = dtype_of(form["to"]), form["kind"]
    nbytes = min(dtype.itemsize, TYPE_NBYTES[kind])
    signed = "s" in (kind[0], form["to"][0])

    def low_bytes(state: WarpState, found: list[Undefined]) -> list[Undefined]:
        if not signed:
            return found
        # The bytes that extend a number come from its sign.
        above = np.repeat(found[0][:, -1:], 8 - nbytes, axis=1)
        return [np.concatenate([found[0], above], axis=1)]

    taint = follow(context, each.operands[1:], each.operands[:1], low_bytes, nbytes)
    convert = elementwise(context, each, lambda a: a.astype(dtype), kind, form["to"])

    def act(state: WarpState) -> None:
        define = taint(state)
        convert(state)
        define(state)

    return act


@instruction("cvt.rn.f32", form=f".(?P<kind>{_INTEGER})", operands=2)
def integer_to_float(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build integer to float32, nearest even."""
    return elementwise(
        context, each, lambda a: a.astype(np.float32), form["kind"], "f32"
    )


@instruction("cvt.rn.f16", form=f".(?P<kind>{_INTEGER})", operands=2)
def integer_to_half(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build integer to f16, nearest even; 65,520 and more is infinite.

    Float64 holds every integer that is not: rounding on the way changes nothing.
    """

    def convert(a: Lanes) -> Lanes:
        with np.errstate(over="ignore"):
            half = a.astype(np.float64).astype(np.float16)
        return half.view(np.uint16)

    return elementwise(context, each, convert, form["kind"], "b16")


_ROUND: dict[str, Callable[[Lanes], Lanes]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


@instruction(
    "cvt",
    form=f".(?P<round>rni|rzi|rmi|rpi)(?P<ftz>.ftz)?.(?P<to>{_INTEGER}).f32",
    operands=2,
)
def float_to_integer(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float32 to integer: rounded as asked, then limited to the type's range.

    NaN gives 0, or the top bit alone in a 64-bit type.
    """
    dtype = dtype_of(form["to"])
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    nan = np.array(1 << 63, np.uint64).view(np.int64) if dtype.itemsize == 8 else 0
    rounding = _ROUND[form["round"]]

    def convert(a: Lanes) -> Lanes:
        x = rounding(flush(a) if form["ftz"] else a).astype(np.float64)
        inside = np.where((x > low) & (x < high), x, 0.0).astype(dtype)
        result = np.where(x >= high, dtype.type(high), inside)
        result = np.where(x <= low, dtype.type(low), result)
        return np.where(a != a, np.array(nan).astype(dtype), result)

    return elementwise(context, each, convert, "f32", form["to"])


@instruction(
    "cvt",
    form="(.(?P<round>rni|rzi|rmi|rpi))?(?P<ftz>.ftz)?(?P<sat>.sat)?.f32.f32",
    operands=2,
)
def float_to_float(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float32 to an integral float32, or into [0, 1] with ``.sat``.

    Without a modifier it is a move, which keeps every NaN.
    """
    if not (form["round"] or form["ftz"] or form["sat"]):
        return elementwise(context, each, lambda a: a, "f32")

    def convert(a: Lanes) -> Lanes:
        x = flush(a) if form["ftz"] else a
        x = _ROUND[form["round"]](x) if form["round"] else x
        if form["sat"]:
            # NaN and -0 saturate to +0.
            return np.where(x > 0, np.minimum(x, np.float32(1)), np.float32(0))
        return canonical(x)

    return elementwise(context, each, convert, "f32")


@instruction("cvt.f64.f32", operands=2)
def float_to_double(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build the exact widening; a NaN keeps its sign and payload and becomes quiet."""

    def convert(a: Lanes) -> Lanes:
        wide = a.astype(np.float64)
        nan = a != a
        if nan.any():
            bits = a.view(np.uint32)[nan].astype(np.uint64)
            sign, payload = bits >> np.uint64(31), bits & np.uint64(0x7FFFFF)
            quiet = sign << np.uint64(63) | _QUIET_NAN_64 | payload << np.uint64(29)
            wide.view(np.uint64)[nan] = quiet
        return wide

    return elementwise(context, each, convert, "f32", "f64")


_QUIET_NAN_64 = np.uint64(0x7FF8 << 48)


@instruction("cvt.rn", form=".(?P<to>bf16|f16).f32", operands=2)
def float_to_half(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float32 to f16 or bf16."""
    return elementwise(context, each, element(form["to"]).encode, "f32", "b16")


@instruction("cvt.f32", form=".(?P<kind>bf16|f16)", operands=2)
def half_to_float(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build f16 or bf16 to float32, exactly.

    A NaN of bf16 keeps its bits, for the conversion is a shift; one of f16 does not.
    """
    return elementwise(context, each, element(form["kind"]).decode, "b16", "f32")


@instruction("cvt.rn", form=".(?P<to>bf16|f16)x2.f32", operands=3)
def pair_to_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two float32 to two halves; the first source is the upper one."""
    encode = element(form["to"]).encode

    def convert(a: Lanes, b: Lanes) -> Lanes:
        high = encode(a).astype(np.uint32) << np.uint32(16)
        both: Lanes = high | encode(b).astype(np.uint32)
        return both

    return elementwise(context, each, convert, "f32", "b32")


_NARROW: dict[str, Callable[[Lanes], Lanes]] = {
    "rn.satfinite.e2m1x2": element("e2m1").encode,
    "rn.satfinite.e4m3x2": element("e4m3").encode,
    "rn.satfinite.e5m2x2": element("e5m2").encode,
    "rp.satfinite.ue8m0x2": lambda x: encode_ue8m0(x, "rp"),
    "rz.satfinite.ue8m0x2": lambda x: encode_ue8m0(x, "rz"),
}


@instruction("cvt", form=f".(?P<to>{'|'.join(_NARROW)}).f32", operands=3)
def pair_to_narrow(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two float32 to two small floats; the first source is the upper one."""
    encode = _NARROW[form["to"]]
    bits, kind = _pair(form["to"].rpartition(".")[2])
    dtype = dtype_of(kind)

    def convert(a: Lanes, b: Lanes) -> Lanes:
        high = encode(a).astype(dtype) << dtype.type(bits)
        both: Lanes = high | encode(b).astype(dtype)
        return both

    return elementwise(context, each, convert, "f32", kind)


def _pair(name: str) -> tuple[int, str]:
    """Return the width of one code, and the type that holds two of them."""
    bits = element(name.removesuffix("x2")).bits
    return bits, f"b{2 * bits}"


_WIDEN = (
    *(f"f16x2.{small}x2" for small in ("e2m1", "e4m3", "e5m2")),
    *(f"bf16x2.{small}x2" for small in ("e2m1", "e4m3", "e5m2", "ue8m0")),
)


@instruction("cvt.rn", form=f".(?P<types>{'|'.join(_WIDEN)})", operands=2)
def narrow_to_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two small floats to two halves, exactly."""
    halves, small = form["types"].split(".")
    encode = element(halves.removesuffix("x2")).encode
    decode = element(small.removesuffix("x2")).decode
    bits, kind = _pair(small)
    read = reader(context, each.operands[1], kind, each)
    put = writer(context, each.operands[0], "b32", each)

    def half(codes: Lanes) -> Lanes:
        wide: Lanes = encode(decode(codes.astype(np.uint8))).astype(np.uint32)
        return wide

    def act(state: WarpState) -> None:
        pair = read(state)
        low, high = pair & ((1 << bits) - 1), pair >> bits
        put(state, half(high) << np.uint32(16) | half(low))

    return act
