"""conversion_packed: ``cvt`` to 16-bit floats, tf32 and small floats, with its limits.

``.relu`` makes negative results +0 and keeps a NaN; ``.satfinite`` makes infinite ones
the largest number. The forms without either are in `conversion`. Source: PTX, cvt.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fp4ref.numerics import encode_ue8m0
from fp4ref.numerics.elements import element
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.rounding import NARROW, Narrow, narrow
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext
from fp4ref.ptx.text.syntax import Instruction

_RELU, _FINITE = "(?P<relu>.relu)?", "(?P<finite>.satfinite)?"


def limited(found: Lanes, to: Narrow, form: Form) -> Lanes:
    """Apply ``.satfinite`` and ``.relu`` to patterns."""
    number = found.dtype.type
    if form.get("finite"):
        infinite = found & ~number(to.sign) == number(to.infinity)
        found = found - infinite.astype(found.dtype)
    if form.get("relu"):
        found = np.where(found & number(to.sign), number(0), found)
    return found


@instruction(
    "cvt",
    form=f".(?P<way>rn|rz)(?P<relu>.relu){_FINITE}.(?P<to>f16|bf16).f32",
    operands=2,
)
@instruction(
    "cvt", form=".(?P<way>rn|rz)(?P<finite>.satfinite).(?P<to>f16|bf16).f32", operands=2
)
@instruction("cvt", form=".(?P<way>rz).(?P<to>bf16).f32", operands=2)
def to_half(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float32 to a half."""
    to = NARROW[form["to"]]

    def convert(a: Lanes) -> Lanes:
        return limited(narrow(a.astype(np.float64), to, form["way"]), to, form)

    return elementwise(context, each, convert, "f32", "b16")


@instruction(
    "cvt",
    form=f".(?P<way>rn|rz)(?P<relu>.relu){_FINITE}.(?P<to>f16|bf16)x2.f32",
    operands=3,
)
@instruction(
    "cvt",
    form=".(?P<way>rn|rz)(?P<finite>.satfinite).(?P<to>f16|bf16)x2.f32",
    operands=3,
)
@instruction("cvt", form=".(?P<way>rz).(?P<to>f16|bf16)x2.f32", operands=3)
def to_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two float32 to two halves; the first source is the upper one."""
    to = NARROW[form["to"]]

    def half(x: Lanes) -> Lanes:
        found = limited(narrow(x.astype(np.float64), to, form["way"]), to, form)
        return found.astype(np.uint32)

    def convert(a: Lanes, b: Lanes) -> Lanes:
        return half(a) << np.uint32(16) | half(b)

    return elementwise(context, each, convert, "f32", "b32")


_TF32_UNIT = np.uint32(1 << 13)
_TF32_NAN = np.uint32(0x7FFFE000)


@instruction("cvt", form=f".(?P<way>rna){_FINITE}.tf32.f32", operands=2)
@instruction("cvt", form=f".(?P<way>rn|rz){_FINITE}{_RELU}.tf32.f32", operands=2)
def to_tf32(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build float32 to tf32: the low 13 bits of the fraction become zeros.

    Of a NaN ``.rna`` keeps the upper bits, as an H200 does.
    """
    way = form["way"]
    sign, infinity = np.uint32(1 << 31), np.uint32(0x7F800000)

    def convert(bits: Lanes) -> Lanes:
        magnitude = bits & ~sign
        if way == "rna":
            half = np.where(magnitude > infinity, np.uint32(0), _TF32_UNIT // 2)
            kept = magnitude + half
        elif way == "rn":
            odd = magnitude >> np.uint32(13) & np.uint32(1)
            kept = magnitude + (_TF32_UNIT // 2 - np.uint32(1)) + odd
        else:
            kept = magnitude
        kept = kept & ~(_TF32_UNIT - np.uint32(1))
        found = bits & sign | kept
        if form["finite"]:
            beyond = (kept & infinity) == infinity
            found = np.where(beyond, found - _TF32_UNIT, found)
        if form.get("relu"):
            found = np.where(bits & sign, np.uint32(0), found)
        if way != "rna":
            found = np.where(magnitude > infinity, _TF32_NAN, found)
        return found.astype(np.uint32)

    return elementwise(context, each, convert, "b32")


_SMALL = "(?P<small>e4m3|e5m2|e2m1|e2m3|e3m2)x2"


def _fields(small: str) -> int:
    """Return the bits between two elements of a pair; six-bit ones lie in bytes."""
    return 4 if small == "e2m1" else 8


def _encode(small: str, x: Lanes, relu: str) -> Lanes:
    values = np.where(x < 0, np.float32(0), x) if relu else x
    # Of a negative zero the encoders keep the sign.
    values = np.where((values == 0) & bool(relu), np.float32(0), values)
    codes: Lanes = element(small).encode(values.astype(np.float32))
    return codes.astype(np.uint16)


@instruction("cvt.rn.satfinite", form=f"(?P<relu>.relu).{_SMALL}.f32", operands=3)
@instruction("cvt.rn.satfinite", form=".(?P<small>e2m3|e3m2)x2.f32", operands=3)
def to_small(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two float32 to two small floats; the first source is the upper one."""
    small, relu = form["small"], form.get("relu", "")
    by = _fields(small)

    def convert(a: Lanes, b: Lanes) -> Lanes:
        both = _encode(small, a, relu) << np.uint16(by) | _encode(small, b, relu)
        return both.astype(np.uint8) if by == 4 else both

    return elementwise(context, each, convert, "f32", "b8" if by == 4 else "b16")


@instruction(
    "cvt.rn.satfinite", form=f"{_RELU}.{_SMALL}.(?P<half>f16|bf16)x2", operands=2
)
def halves_to_small(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a pair of halves to a pair of small floats."""
    small, half = form["small"], NARROW[form["half"]]
    by = _fields(small)

    def convert(pair: Lanes) -> Lanes:
        halves = np.ascontiguousarray(pair).view(np.uint16).reshape(-1, 2)
        codes = _encode(small, half.widen(halves).astype(np.float32), form["relu"])
        both = codes[:, 1] << np.uint16(by) | codes[:, 0]
        return both.astype(np.uint8) if by == 4 else both

    return elementwise(context, each, convert, "b32", "b8" if by == 4 else "b16")


@instruction("cvt", form=".(?P<way>rz|rp)(.satfinite)?.ue8m0x2.bf16x2", operands=2)
def halves_to_scales(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a pair of bf16 to a pair of UE8M0 scales."""
    way: Literal["rz", "rp"] = "rz" if form["way"] == "rz" else "rp"

    def convert(pair: Lanes) -> Lanes:
        halves = np.ascontiguousarray(pair).view(np.uint16).reshape(-1, 2)
        values = NARROW["bf16"].widen(halves).astype(np.float32)
        codes = encode_ue8m0(values, way).astype(np.uint16)
        return codes[:, 1] << np.uint16(8) | codes[:, 0]

    return elementwise(context, each, convert, "b32", "b16")


@instruction("cvt.rn", form=f"(?P<relu>.relu).(?P<half>f16)x2.{_SMALL}", operands=2)
@instruction("cvt.rn", form=".(?P<half>f16)x2.(?P<small>e2m3|e3m2)x2", operands=2)
@instruction("cvt.rn", form=f"{_RELU}.(?P<half>bf16)x2.{_SMALL}", operands=2)
def small_to_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a pair of small floats to a pair of halves, exactly; a NaN is 0x7fff."""
    small, half = form["small"], NARROW[form["half"]]
    by = _fields(small)
    width = element(small).bits

    def convert(pair: Lanes) -> Lanes:
        codes = np.stack([pair, pair >> by], axis=1) & ((1 << width) - 1)
        values = element(small).decode(codes.astype(np.uint8)).astype(np.float64)
        found = narrow(values, half)
        if form.get("relu"):
            found = np.where(found & np.uint16(0x8000), np.uint16(0), found)
        return np.ascontiguousarray(found).view(np.uint32)[:, 0]

    return elementwise(context, each, convert, "b8" if by == 4 else "b16", "b32")
