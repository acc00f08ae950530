"""alu: arithmetic, logic, moves, comparisons and conversions of PTX.

Integer arithmetic wraps. Floating-point results are rounded to nearest even; a NaN
result is 0x7fffffff; ``.ftz`` flushes subnormal inputs and results to signed zero.
Source: PTX, Instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fp4ref.numerics import (
    decode_e2m1,
    decode_ue4m3,
    decode_ue8m0,
    encode_bf16,
    encode_e2m1,
    encode_f16,
    encode_ue4m3,
    encode_ue8m0,
    fma_f32,
)
from fp4ref.ptx.parser import Instruction, Pair, PtxError, Symbol, Vector
from fp4ref.ptx.registry import Action, Unknown, instruction
from fp4ref.ptx.state import (
    LANES,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    Lanes,
    LaunchContext,
    WarpState,
    dtype_of,
    reader,
    writer,
)

_NAN = np.uint32(0x7FFFFFFF)
_INTEGERS = ("s16", "s32", "s64", "u16", "u32", "u64", "b16", "b32", "b64", "u8", "s8")


def _kind(each: Instruction, *legal: str) -> str:
    """Return the type suffix, which must be one of `legal`."""
    kind = each.opcode.rsplit(".", 1)[-1]
    if kind not in legal:
        raise Unknown
    return kind


def _modifiers(each: Instruction, *known: str) -> set[str]:
    """Return the modifiers between name and type; unknown ones are refused."""
    found = set(each.opcode.split(".")[1:-1])
    if found - set(known):
        raise Unknown
    return found


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
    return (
        np.where(bits & 0x7F800000, bits, bits & 0x80000000)
        .astype(np.uint32)
        .view(np.float32)
    )


def _elementwise(
    context: LaunchContext,
    each: Instruction,
    function: Callable[..., Lanes],
    kind: str,
    sources: int,
    result: str | None = None,
) -> Action:
    """Build ``d = function(a, b, ...)`` for sources of one type."""
    if len(each.operands) != sources + 1:
        raise Unknown
    reads = [reader(context, o, kind, each) for o in each.operands[1:]]
    put = writer(context, each.operands[0], result or kind, each)
    if len(reads) == 1:
        (first,) = reads
        return lambda state: put(state, function(first(state)))
    if len(reads) == 2:
        first, second = reads
        return lambda state: put(state, function(first(state), second(state)))
    return lambda state: put(state, function(*(read(state) for read in reads)))


_INTEGER_BINARY: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
_FLOAT_BINARY: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
}


@instruction("add", "sub", "and", "or", "xor", "min", "max")
def binary(context: LaunchContext, each: Instruction) -> Action:
    """Build integer, predicate and float32 operations of two sources."""
    name = each.opcode.split(".")[0]
    kind = each.opcode.rsplit(".", 1)[-1]
    if kind in _INTEGERS or kind == "pred":
        _modifiers(each)
        return _elementwise(context, each, _INTEGER_BINARY[name], kind, 2)
    if name in ("min", "max"):
        return _min_max(context, each, name)
    return _float(context, each, name)


def _float(context: LaunchContext, each: Instruction, name: str) -> Action:
    _kind(each, "f32")
    modifiers = _modifiers(each, "rn", "ftz")
    function = _FLOAT_BINARY[name]
    if "ftz" in modifiers:
        return _elementwise(
            context,
            each,
            lambda a, b: flush(canonical(function(flush(a), flush(b)))),
            "f32",
            2,
        )
    return _elementwise(context, each, lambda a, b: canonical(function(a, b)), "f32", 2)


def _min_max(context: LaunchContext, each: Instruction, name: str) -> Action:
    """Build min / max of float32: with ``.NaN`` a NaN wins, without it loses."""
    _kind(each, "f32")
    modifiers = _modifiers(each, "NaN", "ftz")
    larger = name == "max"

    def pick(a: Lanes, b: Lanes) -> Lanes:
        if "ftz" in modifiers:
            a, b = flush(a), flush(b)
        signed = np.where(a == b, np.signbit(a), a < b)
        result = np.where(signed == larger, b, a)
        a_nan, b_nan = np.isnan(a), np.isnan(b)
        if "NaN" in modifiers:
            return canonical(np.where(a_nan | b_nan, np.float32(np.nan), result))
        return canonical(np.where(a_nan, b, np.where(b_nan, a, result)))

    return _elementwise(context, each, pick, "f32", 2)


@instruction("mul")
def multiply(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mul.lo``, ``mul.hi``, ``mul.wide`` and float32 ``mul``."""
    kind = each.opcode.rsplit(".", 1)[-1]
    if kind == "f32":
        return _float(context, each, "mul")
    part = _part(each)
    if part == "lo":
        return _elementwise(context, each, np.multiply, kind, 2)
    if part == "wide":
        wide = _widen(kind)
        return _elementwise(
            context, each, lambda a, b: _wide_product(a, b, wide), kind, 2, wide
        )
    return _elementwise(context, each, lambda a, b: _high(a, b, kind), kind, 2)


def _part(each: Instruction) -> str:
    modifiers = _modifiers(each, "lo", "hi", "wide")
    if len(modifiers) != 1:
        raise Unknown
    return modifiers.pop()


def _widen(kind: str) -> str:
    if kind not in ("s16", "u16", "s32", "u32"):
        raise Unknown
    return f"{kind[0]}{2 * int(kind[1:])}"


def _wide_product(a: Lanes, b: Lanes, wide: str) -> Lanes:
    dtype = dtype_of(wide)
    product: Lanes = a.astype(dtype) * b.astype(dtype)
    return product


def _high(a: Lanes, b: Lanes, kind: str) -> Lanes:
    bits = int(kind[1:])
    products = [int(x) * int(y) >> bits for x, y in zip(a, b, strict=True)]
    mask = (1 << bits) - 1
    return np.array([p & mask for p in products], f"<u{bits // 8}").view(a.dtype)


@instruction("mad")
def multiply_add(context: LaunchContext, each: Instruction) -> Action:
    """Build integer ``mad.lo``, ``mad.hi`` and ``mad.wide``."""
    kind = _kind(each, "s16", "u16", "s32", "u32", "s64", "u64")
    part = _part(each)
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    result = _widen(kind) if part == "wide" else kind
    c = reader(context, each.operands[3], result, each)
    put = writer(context, each.operands[0], result, each)
    if part == "lo":
        return lambda s: put(s, a(s) * b(s) + c(s))
    if part == "wide":
        return lambda s: put(s, _wide_product(a(s), b(s), result) + c(s))
    return lambda s: put(s, _high(a(s), b(s), kind) + c(s))


@instruction("fma")
def fused(context: LaunchContext, each: Instruction) -> Action:
    """Build ``fma.rn.f32``."""
    _kind(each, "f32")
    modifiers = _modifiers(each, "rn", "ftz")
    if "ftz" in modifiers:
        return _elementwise(
            context,
            each,
            lambda a, b, c: flush(fma_f32(flush(a), flush(b), flush(c))),
            "f32",
            3,
        )
    return _elementwise(context, each, fma_f32, "f32", 3)


@instruction("div", "rem")
def divide(context: LaunchContext, each: Instruction) -> Action:
    """Build integer division and remainder, truncating, and ``div.rn.f32``."""
    kind = each.opcode.rsplit(".", 1)[-1]
    name = each.opcode.split(".")[0]
    if kind == "f32" and name == "div":
        if "rn" not in _modifiers(each, "rn"):
            raise Unknown
        return _elementwise(
            context, each, lambda a, b: canonical(np.divide(a, b)), "f32", 2
        )
    if kind not in _INTEGERS:
        raise Unknown
    _modifiers(each)

    def truncated(a: Lanes, b: Lanes) -> Lanes:
        safe = np.where(b == 0, 1, b).astype(a.dtype)
        remainder = np.fmod(a, safe)
        value = remainder if name == "rem" else (a - remainder) // safe
        # Division by zero gives all ones; the remainder is the dividend.
        return np.where(
            b == 0, a if name == "rem" else ~np.zeros_like(a), value
        ).astype(a.dtype)

    return _elementwise(context, each, truncated, kind, 2)


_UNARY: dict[str, Callable[[Lanes], Lanes]] = {
    "neg": np.negative,
    "abs": np.abs,
    "not": np.invert,
}


@instruction("neg", "abs", "not")
def unary(context: LaunchContext, each: Instruction) -> Action:
    """Build negation, magnitude and complement; float signs are bit operations."""
    name = each.opcode.split(".")[0]
    kind = each.opcode.rsplit(".", 1)[-1]
    if kind == "f32":
        modifiers = _modifiers(each, "ftz")
        mask = np.uint32(0x7FFFFFFF if name == "abs" else 0x80000000)
        operation = np.bitwise_and if name == "abs" else np.bitwise_xor

        def sign(a: Lanes) -> Lanes:
            a = flush(a) if "ftz" in modifiers else a
            return canonical(operation(a.view(np.uint32), mask).view(np.float32))

        return _elementwise(context, each, sign, "f32", 1)
    if kind not in (*_INTEGERS, "pred"):
        raise Unknown
    _modifiers(each)
    return _elementwise(context, each, _UNARY[name], kind, 1)


@instruction("shl", "shr")
def shift(context: LaunchContext, each: Instruction) -> Action:
    """Build shifts; a distance of the width or more gives 0, or the sign."""
    name = each.opcode.split(".")[0]
    kind = _kind(each, *_INTEGERS)
    a = reader(context, each.operands[1], kind, each)
    distance = reader(context, each.operands[2], "u32", each)
    put = writer(context, each.operands[0], kind, each)
    bits = 8 * dtype_of(kind).itemsize
    arithmetic = kind[0] == "s"

    def act(state: WarpState) -> None:
        by, value = distance(state), a(state)
        low = np.minimum(by, bits - 1).astype(value.dtype)
        if name == "shl":
            put(state, np.where(by >= bits, 0, value << low).astype(value.dtype))
        elif arithmetic:
            put(state, value >> low)
        else:
            put(state, np.where(by >= bits, 0, value >> low).astype(value.dtype))

    return act


@instruction("bfe")
def bit_field_extract(context: LaunchContext, each: Instruction) -> Action:
    """Build ``bfe``: `c` bits of `a` from position `b`; signed types extend the sign."""
    kind = _kind(each, "u32", "s32", "u64", "s64")
    a = reader(context, each.operands[1], kind, each)
    b, c = (reader(context, o, "u32", each) for o in each.operands[2:4])
    put = writer(context, each.operands[0], kind, each)
    bits = int(kind[1:])

    def field(value: int, position: int, length: int) -> int:
        position, length = position & 0xFF, length & 0xFF
        pattern = value % (1 << bits)
        if length == 0:
            return 0
        sign = 0
        if kind[0] == "s":
            sign = pattern >> min(position + length - 1, bits - 1) & 1
        present = max(0, min(length, bits - position))
        found = pattern >> position & ((1 << present) - 1) if present else 0
        return (found - (1 << present) if sign else found) % (1 << bits)

    def act(state: WarpState) -> None:
        found = [
            field(int(v), int(p), int(n))
            for v, p, n in zip(a(state), b(state), c(state), strict=True)
        ]
        put(state, np.array(found, f"<u{bits // 8}").view(dtype_of(kind)))

    return act


@instruction("bfi")
def bit_field_insert(context: LaunchContext, each: Instruction) -> Action:
    """Build ``bfi``: put the low `d` bits of `a` into `b` at position `c`."""
    kind = _kind(each, "b32", "b64")
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    c, d = (reader(context, o, "u32", each) for o in each.operands[3:5])
    put = writer(context, each.operands[0], kind, each)
    bits = int(kind[1:])

    def act(state: WarpState) -> None:
        found = []
        for x, y, p, n in zip(a(state), b(state), c(state), d(state), strict=True):
            position, length = int(p) & 0xFF, int(n) & 0xFF
            field = ((1 << length) - 1) << position & ((1 << bits) - 1)
            found.append(int(x) << position & field | int(y) & ~field)
        put(state, np.array(found, f"<u{bits // 8}"))

    return act


@instruction("prmt")
def permute(context: LaunchContext, each: Instruction) -> Action:
    """Build ``prmt.b32``: each result byte is one of the eight source bytes."""
    if each.opcode != "prmt.b32":
        raise Unknown

    def pick(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
        source = (b.astype(np.uint64) << np.uint64(32)) | a
        result = np.zeros(LANES, np.uint32)
        for byte in range(4):
            code = selector >> np.uint32(4 * byte) & np.uint32(15)
            shift = (code & 7).astype(np.uint64) * np.uint64(8)
            value = (source >> shift & np.uint64(0xFF)).astype(np.uint32)
            sign = np.where(value & 0x80, np.uint32(0xFF), np.uint32(0))
            value = np.where(code & 8, sign, value)
            result |= value << np.uint32(8 * byte)
        return result

    return _elementwise(context, each, pick, "b32", 3)


@instruction("lop3")
def three_input_logic(context: LaunchContext, each: Instruction) -> Action:
    """Build ``lop3.b32`` with its truth table."""
    if each.opcode != "lop3.b32":
        raise Unknown
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


@instruction("popc", "clz", "brev")
def count_bits(context: LaunchContext, each: Instruction) -> Action:
    """Build population count, leading zeros and bit reversal."""
    name = each.opcode.split(".")[0]
    kind = _kind(each, "b32", "b64")
    bits = int(kind[1:])
    functions: dict[str, Callable[[int], int]] = {
        "popc": int.bit_count,
        "clz": lambda x: bits - x.bit_length(),
        "brev": lambda x: int(f"{x:0{bits}b}"[::-1], 2),
    }
    function = functions[name]
    result = kind if name == "brev" else "b32"
    return _elementwise(
        context,
        each,
        lambda a: np.array([function(int(x)) for x in a], dtype_of(result)),
        kind,
        1,
        result,
    )


_COMPARE: dict[str, Callable[[Lanes, Lanes], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_BOOLEAN: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


@instruction("setp", writes=1)
def set_predicate(context: LaunchContext, each: Instruction) -> Action:
    """Build ``setp``: compare, combine with a third predicate, one or two results.

    Without ``u`` a comparison with NaN is false, but ``ne`` excludes NaN too.
    """
    parts = each.opcode.split(".")[1:]
    kind = parts.pop()
    flushes = "ftz" in parts
    parts = [p for p in parts if p != "ftz"]
    unordered = parts[0] not in _COMPARE and parts[0].endswith("u")
    comparison = parts[0].removesuffix("u") if unordered else parts[0]
    special = comparison in ("num", "nan")
    if not special and comparison not in _COMPARE:
        raise Unknown
    combine = parts[1] if len(parts) > 1 else None
    if combine is not None and combine not in _BOOLEAN:
        raise Unknown
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    target = each.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, Pair) else (target, None)
    )
    put = writer(context, first, "pred", each)
    put_second = writer(context, second, "pred", each)
    third = reader(context, each.operands[3], "pred", each) if combine else None

    def act(state: WarpState) -> None:
        x, y = a(state), b(state)
        if flushes:
            x, y = flush(x), flush(y)
        if kind[0] == "f":
            nan = np.isnan(x) | np.isnan(y)
            if special:
                found = nan if comparison == "nan" else ~nan
            else:
                found = np.where(nan, unordered, _COMPARE[comparison](x, y))
        else:
            found = _COMPARE[comparison](x, y)
        other = ~found
        if combine and third:
            found = _BOOLEAN[combine](found, third(state))
            other = _BOOLEAN[combine](other, third(state))
        put(state, found)
        put_second(state, other)

    return act


@instruction("selp")
def select(context: LaunchContext, each: Instruction) -> Action:
    """Build ``selp``: `a` where the predicate holds, else `b`."""
    kind = each.opcode.rsplit(".", 1)[-1]
    a, b = (reader(context, o, kind, each) for o in each.operands[1:3])
    predicate = reader(context, each.operands[3], "pred", each)
    put = writer(context, each.operands[0], kind, each)
    return lambda s: put(s, np.where(predicate(s), a(s), b(s)))


@instruction("mov")
def move(context: LaunchContext, each: Instruction) -> Action:
    """Build ``mov``: registers, constants, addresses, packing and unpacking."""
    kind = each.opcode.rsplit(".", 1)[-1]
    target, source = each.operands
    if isinstance(target, Vector):
        return _unpack(context, each, target, kind)
    if isinstance(source, Vector):
        return _pack(context, each, source, kind)
    if kind == "b128":
        raise Unknown
    put = writer(context, target, kind, each)
    if isinstance(source, Symbol) and _is_shared(context, source.name):
        # A shared symbol carries the CTA's rank, like every shared address.
        offset = context.addresses[source.name]
        dtype = dtype_of(kind)
        return lambda s: put(s, np.full(LANES, offset | s.warp.cta.rank << 24, dtype))
    read = reader(context, source, kind, each)
    return lambda s: put(s, read(s))


def _is_shared(context: LaunchContext, name: str) -> bool:
    program = context.program
    return any(
        v.name == name and v.space == "shared"
        for v in (*program.module.variables, *program.entry.variables)
    )


def _pieces(kind: str, count: int) -> str:
    bits = 128 if kind == "b128" else 8 * dtype_of(kind).itemsize
    if bits % count or bits // count not in (8, 16, 32, 64):
        raise Unknown
    return f"b{bits // count}"


def _pack(
    context: LaunchContext, each: Instruction, source: Vector, kind: str
) -> Action:
    piece = _pieces(kind, len(source.items))
    reads = [reader(context, o, piece, each) for o in source.items]
    put = writer(context, each.operands[0], kind, each)
    target = np.uint64 if kind == "b128" else dtype_of(kind)

    def act(state: WarpState) -> None:
        stacked = np.stack([read(state) for read in reads], axis=1)
        whole = np.ascontiguousarray(stacked).view(target)
        put(state, whole if kind == "b128" else whole[:, 0])

    return act


def _unpack(
    context: LaunchContext, each: Instruction, target: Vector, kind: str
) -> Action:
    piece = _pieces(kind, len(target.items))
    read = reader(context, each.operands[1], kind, each)
    puts = [writer(context, o, piece, each) for o in target.items]
    dtype = dtype_of(piece)

    def act(state: WarpState) -> None:
        whole = np.ascontiguousarray(read(state)).reshape(LANES, -1)
        pieces = whole.view(dtype)
        for i, put in enumerate(puts):
            put(state, np.ascontiguousarray(pieces[:, i]))

    return act


@instruction("cvta")
def convert_address(context: LaunchContext, each: Instruction) -> Action:
    """Build ``cvta``: between a state space and generic addresses."""
    parts = each.opcode.split(".")[1:]
    kind = parts.pop()
    to_space = parts[0] == "to"
    space = parts[-1]
    windows = {
        "global": 0,
        "const": 0,
        "param": PARAM_WINDOW,
        "shared": SHARED_WINDOW,
        "shared::cta": SHARED_WINDOW,
        "shared::cluster": SHARED_WINDOW,
        "local": LOCAL_WINDOW,
    }
    if space not in windows or kind != "u64":
        raise Unknown
    window = np.uint64(windows[space])
    read = reader(context, each.operands[1], "u64", each)
    put = writer(context, each.operands[0], "u64", each)
    if to_space:
        return lambda s: put(s, read(s) - window)
    return lambda s: put(s, read(s) + window)


@instruction("cvt")
def convert(context: LaunchContext, each: Instruction) -> Action:
    """Build ``cvt`` between integers, floats and the small formats."""
    parts = each.opcode.split(".")[1:]
    modifiers, target, source = parts[:-2], parts[-2], parts[-1]
    if target in _INTEGERS and source in _INTEGERS and not modifiers:
        read = reader(context, each.operands[1], source, each)
        put = writer(context, each.operands[0], target, each)
        dtype = dtype_of(target)
        return lambda s: put(s, read(s).astype(dtype))
    if target in ("e2m1x2", "e4m3x2", "ue8m0x2") and source == "f32":
        return _narrow_pair(context, each, modifiers, target)
    if (target, source) in _WIDEN and set(modifiers) <= {"rn"}:
        return _widen_pair(context, each, target, source)
    if source == "f32" and target in ("bf16", "f16") and modifiers == ["rn"]:
        encode = encode_bf16 if target == "bf16" else encode_f16
        return _elementwise_kinds(context, each, encode, "f32", "b16")
    if target in ("bf16x2", "f16x2") and source == "f32" and modifiers == ["rn"]:
        return _two_halves(context, each, target)
    if target == "f32" and source in ("f16", "bf16") and not modifiers:
        return _elementwise_kinds(
            context, each, lambda a: half_to_f32(a, source), "b16", "f32"
        )
    if target == "f32" and source in _INTEGERS and modifiers == ["rn"]:
        return _elementwise_kinds(
            context, each, lambda a: a.astype(np.float32), source, "f32"
        )
    raise Unknown


def half_to_f32(bits: Lanes, kind: str) -> Lanes:
    """Convert f16 or bf16 bit patterns to float32, NaN canonical."""
    if kind == "bf16":
        return canonical((bits.astype(np.uint32) << 16).view(np.float32))
    return canonical(bits.view(np.float16).astype(np.float32))


def _elementwise_kinds(
    context: LaunchContext,
    each: Instruction,
    function: Callable[[Lanes], Lanes],
    source: str,
    target: str,
) -> Action:
    read = reader(context, each.operands[1], source, each)
    put = writer(context, each.operands[0], target, each)
    return lambda s: put(s, function(read(s)))


def _narrow_pair(
    context: LaunchContext, each: Instruction, modifiers: list[str], target: str
) -> Action:
    """Build two float32 to two small floats; the first source is the upper one."""
    a, b = (reader(context, o, "f32", each) for o in each.operands[1:3])
    if target == "ue8m0x2":
        if "satfinite" not in modifiers or not {"rp", "rz"} & set(modifiers):
            raise Unknown
        direction = "rp" if "rp" in modifiers else "rz"

        def encode(x: Lanes) -> Lanes:
            return encode_ue8m0(np.abs(x), "rp" if direction == "rp" else "rz")

    elif set(modifiers) != {"rn", "satfinite"}:
        raise Unknown
    else:
        encode = encode_e2m1 if target == "e2m1x2" else encode_ue4m3
    if target == "e2m1x2":
        put = writer(context, each.operands[0], "b8", each)
        return lambda s: put(s, encode(a(s)) << np.uint8(4) | encode(b(s)))
    put = writer(context, each.operands[0], "b16", each)
    return lambda s: put(
        s,
        encode(a(s)).astype(np.uint16) << np.uint16(8) | encode(b(s)).astype(np.uint16),
    )


def _signed_e4m3(codes: Lanes) -> Lanes:
    magnitude = decode_ue4m3(codes & np.uint8(0x7F))
    return np.where(codes & 0x80, -magnitude, magnitude)


_WIDEN: dict[tuple[str, str], Callable[[Lanes], Lanes]] = {
    ("f16x2", "e2m1x2"): decode_e2m1,
    ("f16x2", "e4m3x2"): _signed_e4m3,
    ("bf16x2", "ue8m0x2"): decode_ue8m0,
}


def _widen_pair(
    context: LaunchContext, each: Instruction, target: str, source: str
) -> Action:
    decode = _WIDEN[target, source]
    narrow = "b8" if source == "e2m1x2" else "b16"
    read = reader(context, each.operands[1], narrow, each)
    put = writer(context, each.operands[0], "b32", each)
    encode = encode_bf16 if target == "bf16x2" else encode_f16

    def half(codes: Lanes) -> Lanes:
        return encode(decode(codes.astype(np.uint8))).astype(np.uint32)

    def act(state: WarpState) -> None:
        pair = read(state)
        if source == "e2m1x2":
            low, high = pair & np.uint8(15), pair >> np.uint8(4)
        else:
            low, high = pair & np.uint16(255), pair >> np.uint16(8)
        put(state, half(high) << np.uint32(16) | half(low))

    return act


def _two_halves(context: LaunchContext, each: Instruction, target: str) -> Action:
    a, b = (reader(context, o, "f32", each) for o in each.operands[1:3])
    put = writer(context, each.operands[0], "b32", each)
    encode = encode_bf16 if target == "bf16x2" else encode_f16
    return lambda s: put(
        s,
        encode(a(s)).astype(np.uint32) << np.uint32(16)
        | encode(b(s)).astype(np.uint32),
    )


@instruction("shfl.sync")
def shuffle(context: LaunchContext, each: Instruction) -> Action:
    """Build ``shfl.sync.{idx,up,down,bfly}.b32``."""
    mode = each.opcode.split(".")[2]
    if mode not in ("idx", "up", "down", "bfly") or not each.opcode.endswith(".b32"):
        raise Unknown
    target = each.operands[0]
    first, second = (
        (target.first, target.second) if isinstance(target, Pair) else (target, None)
    )
    put = writer(context, first, "b32", each)
    put_valid = writer(context, second, "pred", each)
    a, b, c, members = (reader(context, o, "u32", each) for o in each.operands[1:5])
    lane = np.arange(LANES)

    def act(state: WarpState) -> None:
        if state.uniform(members(state), "the member mask") & state.mask != state.mask:
            raise PtxError(
                f"PTX line {each.line}: a lane shuffles outside its member mask"
            )
        offset = b(state).astype(np.int64) & 31
        clamp, segment = c(state) & 31, c(state) >> 8 & 31
        low = lane & segment
        high = low | clamp & ~segment & 31
        candidates = {
            "up": lane - offset,
            "down": lane + offset,
            "bfly": lane ^ offset,
            "idx": low | offset & ~segment.astype(np.int64) & 31,
        }
        source = candidates[mode]
        valid = source >= high if mode == "up" else source <= high
        source = np.where(valid, source, lane)
        put(state, a(state)[source])
        put_valid(state, valid)

    return act


@instruction("rcp.approx.ftz.f32")
def reciprocal(context: LaunchContext, each: Instruction) -> Action:
    """Build ``rcp.approx.ftz.f32`` with the table measured on an H200."""
    from fp4ref.ptx.approximate import rcp_approx_ftz

    return _elementwise(context, each, rcp_approx_ftz, "f32", 1)
