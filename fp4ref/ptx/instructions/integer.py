"""integer: integer arithmetic, logic, shifts and bit fields. Arithmetic wraps.

Source: PTX, Integer arithmetic instructions; Logic and shift instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.ptx.instructions.elementwise import elementwise, lanewise
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, Lanewise, instruction
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.run.taint import Undefined, follow, register_of, undefined_bytes
from fp4ref.ptx.text.syntax import Immediate, Instruction

ARITHMETIC = ".(?P<kind>[su](16|32|64))"
_BITS = ".(?P<kind>b(16|32|64))"

_BINARY: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@instruction("add", "sub", "min", "max", form=ARITHMETIC, operands=3)
@instruction("and", "or", "xor", form=".(?P<kind>pred|b(16|32|64))", operands=3)
def binary(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build operations of two sources, on predicates too."""
    return lanewise(context, each, _BINARY[form["name"]], form["kind"])


@instruction("add", "min", "max", form=".(?P<kind>[su]16)x2", operands=3)
@instruction("min", "max", form="(?P<relu>.relu).(?P<kind>s16)x2", operands=3)
@instruction("min", "max", form="(?P<relu>.relu).(?P<kind>s32)", operands=3)
def in_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build sums, min and max of two 16-bit halves; ``.relu`` gives 0 for negatives."""
    function, dtype = _BINARY[form["name"]], dtype_of(form["kind"])

    def act(a: Lanes, b: Lanes) -> Lanes:
        found = function(
            np.ascontiguousarray(a).view(dtype), np.ascontiguousarray(b).view(dtype)
        )
        if form.get("relu"):
            found = np.maximum(found, dtype.type(0))
        return found.view(np.uint32)

    return elementwise(context, each, act, "b32")


@instruction("neg", "abs", form=".(?P<kind>s(16|32|64))", operands=2)
@instruction("not", form=".(?P<kind>pred|b(16|32|64))", operands=2)
def unary(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build negation, magnitude and complement."""
    function = {"neg": np.negative, "abs": np.abs, "not": np.invert}[form["name"]]
    return lanewise(context, each, function, form["kind"])


@instruction("mul", form=".(?P<part>lo|hi)" + ARITHMETIC, operands=3)
@instruction("mul", form=".(?P<part>wide).(?P<kind>[su](16|32))", operands=3)
def multiply(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build ``mul.lo``, ``mul.hi`` and ``mul.wide``."""
    function, result = _product(form)
    return lanewise(context, each, function, form["kind"], result)


@instruction("mad", form=".(?P<part>lo|hi)" + ARITHMETIC, operands=4)
@instruction("mad", form=".(?P<part>wide).(?P<kind>[su](16|32))", operands=4)
def multiply_add(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build ``mad.lo``, ``mad.hi`` and ``mad.wide``."""
    function, result = _product(form)
    a, b = (reader(context, o, form["kind"], each) for o in each.operands[1:3])
    c = reader(context, each.operands[3], result, each)
    target, *sources = each.operands
    put = writer(context, target, result, each)
    return Lanewise(
        lambda a, b, c: function(a, b) + c,
        tuple(sources),
        (form["kind"], form["kind"], result),
        target,
        result,
        lambda s: put(s, function(a(s), b(s)) + c(s)),
    )


@instruction("mul24", form=".(?P<part>lo|hi).(?P<kind>[su]32)", operands=3)
@instruction("mad24", form=".(?P<part>lo|hi).(?P<kind>[su]32)", operands=4)
def multiply_24(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mul24`` and ``mad24``: products of the low 24 bits of each source.

    ``.lo`` takes the low 32 of the product's 48 bits, ``.hi`` the upper 32. Bit 23 is
    the sign of a signed source.
    """
    wide = np.dtype(np.int64 if form["kind"] == "s32" else np.uint64)
    unused, down = wide.type(40), wide.type(0 if form["part"] == "lo" else 16)

    def product(a: Lanes, b: Lanes, c: Lanes | int = 0) -> Lanes:
        low = (x.astype(wide) << unused >> unused for x in (a, b))
        found: Lanes = (np.multiply(*low) >> down).astype(a.dtype) + c
        return found

    return elementwise(context, each, product, form["kind"])


@instruction("sad", form=ARITHMETIC, operands=4)
def sum_of_difference(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``sad``: the distance of two numbers, and `c`."""

    def distance(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        return np.where(a < b, b - a, a - b) + c

    return elementwise(context, each, distance, form["kind"])


def _product(form: Form) -> tuple[Callable[[Lanes, Lanes], Lanes], str]:
    """Return a multiplication and the type of its result."""
    kind, part = form["kind"], form["part"]
    bits = int(kind[1:])
    if part == "lo":
        return np.multiply, kind
    if bits == 64:
        return (_high_64_signed if kind[0] == "s" else _high_64), kind
    wide = f"{kind[0]}{2 * bits}"
    dtype = dtype_of(wide)

    def product(a: Lanes, b: Lanes) -> Lanes:
        return np.multiply(a, b, dtype=dtype)

    if part == "wide":
        return product, wide
    return lambda a, b: (product(a, b) >> bits).astype(a.dtype), kind


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _high_64(a: Lanes, b: Lanes) -> Lanes:
    """Upper half of a 128-bit product, by four products of 32 bits."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a1 * b0 + (a0 * b0 >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    high: Lanes = a1 * b1 + (middle >> _HALF) + (other >> _HALF)
    return high


def _high_64_signed(a: Lanes, b: Lanes) -> Lanes:
    # A negative factor x counts as 2^64 + x in the unsigned product.
    high = _high_64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    signed: Lanes = high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
    return signed


@instruction("div", "rem", form=ARITHMETIC, operands=3)
def divide(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build division and remainder, truncating.

    By zero, both give all ones. PTX leaves that open; it was measured on an H100.
    """
    remainder_wanted = form["name"] == "rem"

    def truncated(a: Lanes, b: Lanes) -> Lanes:
        safe = np.where(b == 0, 1, b).astype(a.dtype)
        remainder = np.fmod(a, safe)
        found = remainder if remainder_wanted else (a - remainder) // safe
        return np.where(b == 0, ~np.zeros_like(a), found)

    return elementwise(context, each, truncated, form["kind"])


@instruction("shl", form=_BITS, operands=3)
@instruction("shr", form=".(?P<kind>[bsu](16|32|64))", operands=3)
def shift(context: LaunchContext, each: Instruction, form: Form) -> Lanewise:
    """Build shifts; a distance of the width or more gives 0, or the sign."""
    kind = form["kind"]
    a = reader(context, each.operands[1], kind, each)
    distance = reader(context, each.operands[2], "u32", each)
    put = writer(context, each.operands[0], kind, each)
    last = np.uint32(int(kind[1:]) - 1)
    operation = np.left_shift if form["name"] == "shl" else np.right_shift
    arithmetic = kind[0] == "s"

    def shifted(value: Lanes, by: Lanes) -> Lanes:
        found: Lanes = operation(value, np.minimum(by, last).astype(value.dtype))
        return found if arithmetic else found * (by <= last)

    target, *sources = each.operands
    return Lanewise(
        shifted,
        tuple(sources),
        (kind, "u32"),
        target,
        kind,
        lambda s: put(s, shifted(a(s), distance(s))),
    )


@instruction("shf", form=".(?P<way>[lr]).(?P<limit>wrap|clamp).b32", operands=4)
def funnel_shift(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``shf``: shift the 64 bits ``b:a``, keep the upper or the lower half."""
    left, wraps = form["way"] == "l", form["limit"] == "wrap"

    def funnel(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        by = (c & np.uint32(31) if wraps else np.minimum(c, 32)).astype(np.uint64)
        both = b.astype(np.uint64) << _HALF | a
        shifted = both << by >> _HALF if left else both >> by
        return shifted.astype(np.uint32)

    return elementwise(context, each, funnel, "b32")


def _bit_field(
    context: LaunchContext, each: Instruction, start: int, bits: int
) -> Callable[[WarpState], tuple[Lanes, Lanes]]:
    """Return a function that reads position and length, each at most `bits`.

    PTX restricts both to 0..255. Of more, 32-bit fields take the low byte and 64-bit
    ones the whole number, as an H100 does.
    """
    operands = each.operands[start : start + 2]
    position, length = (reader(context, o, "u32", each) for o in operands)
    kept = np.uint32(0xFF if bits == 32 else 0xFFFFFFFF)
    most = np.uint32(bits)

    def read(state: WarpState) -> tuple[Lanes, Lanes]:
        found = (position(state) & kept, length(state) & kept)
        return np.minimum(found[0], most), np.minimum(found[1], most)

    return read


@instruction("bfe", form=".(?P<kind>[su](32|64))", operands=4)
def bit_field_extract(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bfe``: `c` bits of `a` from `b` up; signed types extend the sign."""
    kind = form["kind"]
    bits = int(kind[1:])
    dtype = dtype_of(kind)
    a = reader(context, each.operands[1], kind, each)
    field = _bit_field(context, each, 2, bits)
    put = writer(context, each.operands[0], kind, each)

    def act(state: WarpState) -> None:
        position, length = field(state)
        last = np.minimum(position + length - 1, bits - 1)
        # The field's top bit goes to the top of the word, then all of it comes down.
        # Where the field reaches over the top, bits above are the sign or 0.
        up = (bits - 1 - last).astype(dtype)
        down = np.minimum(position.astype(np.int64) + up.astype(np.int64), bits - 1)
        value = a(state) << up >> down.astype(dtype)
        beyond = position >= bits
        if kind[0] == "s":
            value = np.where(beyond, a(state) >> dtype.type(bits - 1), value)
        else:
            value = np.where(beyond, 0, value)
        put(state, np.where(length == 0, 0, value).astype(dtype))

    return act


@instruction("bfi", form=".(?P<kind>b(32|64))", operands=5)
def bit_field_insert(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bfi``: put the low `d` bits of `a` into `b` at position `c`."""
    kind = form["kind"]
    bits = int(kind[1:])
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    field = _bit_field(context, each, 3, bits)
    put = writer(context, each.operands[0], kind, each)
    one = dtype_of(kind).type(1)

    def shift_left(value: Lanes, by: Lanes) -> Lanes:
        shifted = value << np.minimum(by, bits - 1).astype(value.dtype)
        return np.where(by < bits, shifted, np.zeros_like(value))

    def act(state: WarpState) -> None:
        position, length = field(state)
        source = a(state)
        low = shift_left(np.full_like(source, one), length) - one
        mask = shift_left(low, position)
        put(state, shift_left(source, position) & mask | b(state) & ~mask)

    return act


@instruction("prmt.b32", operands=4, taints=True)
def permute(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``prmt.b32``: each result byte is one of the eight source bytes."""
    select = reader(context, each.operands[3], "b32", each)
    by = register_of(context, each.operands[3])

    def move(state: WarpState, undefined: list[Undefined]) -> list[Undefined]:
        code = select(state)[:, None] >> _NIBBLES & 7
        both = np.concatenate(undefined, axis=1)
        moved: Undefined = np.take_along_axis(both, code.astype(np.intp), axis=1)
        return [moved | undefined_bytes(state, by, 1)]

    sources = each.operands[1:3]
    taint = follow(context, sources, each.operands[:1], move, 4, also=[by])

    fixed = None
    if isinstance(each.operands[3], Immediate):
        codes = [each.operands[3].value >> int(n) & 15 for n in _NIBBLES]
        fixed = codes if max(codes) < 8 else None

    def pick(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
        source = np.empty((LANES, 2), np.uint32)
        source[:, 0], source[:, 1] = a, b
        if fixed is not None:
            return source.view(np.uint8).take(fixed, axis=1).view(np.uint32)[:, 0]
        source = source.view(np.uint8)  # (32, 8)
        code = selector[:, None] >> _NIBBLES  # (32, 4)
        found = np.take_along_axis(source, (code & 7).astype(np.intp), axis=1)
        # Bit 3 of a code asks for the byte's sign in all its bits.
        sign = np.where(found & 0x80, np.uint8(0xFF), np.uint8(0))
        return np.where(code & 8, sign, found).astype(np.uint8).view(np.uint32)[:, 0]

    pick_lanes = elementwise(context, each, pick, "b32")

    def act(state: WarpState) -> None:
        define = taint(state)
        pick_lanes(state)
        define(state)

    return act


_NIBBLES = np.arange(0, 16, 4, dtype=np.uint32)


@instruction("lop3.b32", operands=5)
def three_input_logic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``lop3.b32``: bit ``4 a + 2 b + c`` of the table is the result."""
    a, b, c = (reader(context, o, "b32", each) for o in each.operands[1:4])
    table = reader(context, each.operands[4], "b32", each)
    put = writer(context, each.operands[0], "b32", each)

    def act(state: WarpState) -> None:
        x, y, z = a(state), b(state), c(state)
        code = int(table(state)[0])
        result = np.zeros(LANES, np.uint32)
        for row in range(8):
            if code >> row & 1:
                term = x if row & 4 else ~x
                term = term & (y if row & 2 else ~y)
                result |= term & (z if row & 1 else ~z)
        put(state, result)

    return act


@instruction("popc", "clz", "brev", form=".(?P<kind>b(32|64))", operands=2)
def count_bits(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build population count, leading zeros and bit reversal."""
    kind = form["kind"]
    bits = int(kind[1:])
    functions: dict[str, Callable[[int], int]] = {
        "popc": int.bit_count,
        "clz": lambda x: bits - x.bit_length(),
        "brev": lambda x: int(f"{x:0{bits}b}"[::-1], 2),
    }
    function = functions[form["name"]]
    result = kind if form["name"] == "brev" else "b32"
    return elementwise(
        context,
        each,
        lambda a: np.array([function(int(x)) for x in a], dtype_of(result)),
        kind,
        result,
    )


@instruction("bfind", form="(?P<shift>.shiftamt)?.(?P<kind>[su](32|64))", operands=2)
def bit_find(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bfind``: the highest bit that is not the sign; -1 where there is none.

    ``.shiftamt`` counts from the top: how far a shift to the left brings the bit there.
    """
    kind = form["kind"]
    bits = int(kind[1:])
    nothing = 0xFFFF_FFFF

    def find(value: int) -> int:
        position = (~value if value < 0 else value).bit_length() - 1
        if position < 0:
            return nothing
        return bits - 1 - position if form["shift"] else position

    return elementwise(
        context,
        each,
        lambda a: np.array([find(int(x)) for x in a], np.uint32),
        kind,
        "u32",
    )
