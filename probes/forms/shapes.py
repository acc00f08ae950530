"""shapes: a statement around each form: arithmetic, conversions, comparisons, moves.

A statement turns %a, %b, %c, %e into %d0, %d1, ... Some forms take more than one shape
of operands: packed, immediate, wider registers. The neighbours have the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

SOURCES = ("%a", "%b", "%c", "%e")


@dataclass(frozen=True)
class Shape:
    """A statement and what goes in and out.

    Attributes
    ----------
    inputs
        Kinds of the operands, see `inputs.BITS`.
    outputs
        Bits of %d0, %d1, ...
    memory
        Bytes of each thread at [%to] that the statement itself writes, an output too.
    suffix
        What sets this shape apart from others of the form.
    cluster
        CTAs of a cluster.
    """

    body: str
    inputs: tuple[str, ...]
    outputs: tuple[int, ...]
    memory: int = 0
    suffix: str = ""
    cluster: int = 1


Groups = Mapping[str, str]
Shapes = Callable[[str, Groups], Iterator[Shape]]


def bits_of(kind: str) -> int:
    """Return the width of a PTX type such as ``s16``."""
    return int(kind.lstrip("bsuf"))


def call(opcode: str, count: int, last: str = "") -> str:
    """``opcode %d0, %a, %b, last;`` with `count` sources."""
    return f"{opcode} {', '.join(('%d0', *SOURCES[:count]))}{last};"


def plain(*inputs: str, output: int) -> Shapes:
    """One shape: registers of these kinds, one result."""

    def shapes(opcode: str, groups: Groups) -> Iterator[Shape]:
        yield Shape(call(opcode, len(inputs)), inputs, (output,))

    return shapes


def _float(opcode: str, groups: Groups) -> Iterator[Shape]:
    counts = {"fma": 3, "sqrt": 1, "rcp": 1, "neg": 1, "abs": 1}
    count = counts.get(opcode.split(".")[0], 2)
    yield Shape(call(opcode, count), ("f32",) * count, (32,))


PREDICATES = ".reg .pred %p, %q; setp.lt.s32 %p, %a, 0; setp.lt.s32 %q, %b, 0; "
SELECT = "selp.b32 %d0, 1, 0, %p;"


def _integer(count: int) -> Shapes:
    def shapes(opcode: str, groups: Groups) -> Iterator[Shape]:
        kind = groups["kind"]
        if kind == "pred":
            sources = ", ".join(("%p", "%q")[:count])
            body = f"{PREDICATES}{opcode} %p, {sources}; {SELECT}"
            yield Shape(body, ("bit", "bit"), (32,))
            return
        bits = bits_of(kind)
        yield Shape(call(opcode, count), (f"b{bits}",) * count, (bits,))

    return shapes


def _product(opcode: str, groups: Groups) -> Iterator[Shape]:
    bits = bits_of(groups["kind"])
    out = 2 * bits if groups["part"] == "wide" else bits
    third = (f"b{out}",) if opcode.startswith("mad") else ()
    inputs = (f"b{bits}", f"b{bits}", *third)
    yield Shape(call(opcode, len(inputs)), inputs, (out,))


def _divide(opcode: str, groups: Groups) -> Iterator[Shape]:
    bits = bits_of(groups["kind"])
    yield Shape(call(opcode, 2), (f"b{bits}", f"nz{bits}"), (bits,))
    zero = f".reg .b{bits} %b; sub.s{bits} %b, %a, %a; "
    yield Shape(zero + call(opcode, 2), (f"b{bits}",), (bits,), suffix="by zero")


def _shift(opcode: str, groups: Groups) -> Iterator[Shape]:
    bits = bits_of(groups["kind"])
    yield Shape(call(opcode, 2), (f"b{bits}", "by"), (bits,))


def _field(values: int) -> Shapes:
    def shapes(opcode: str, groups: Groups) -> Iterator[Shape]:
        bits = bits_of(groups["kind"])
        for where, suffix in (("field", ""), ("beyond", "beyond 255")):
            inputs = (f"b{bits}",) * values + (where, where)
            yield Shape(call(opcode, len(inputs)), inputs, (bits,), suffix=suffix)

    return shapes


def _permute(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(call(opcode, 3), ("b32",) * 3, (32,))
    for code in (0x3210, 0xF8A3, 0x7654, 0x4440):
        yield Shape(
            call(opcode, 2, f", {code}"), ("b32", "b32"), (32,), suffix=f"{code:#x}"
        )


def _logic(opcode: str, groups: Groups) -> Iterator[Shape]:
    for table in (0x00, 0x1B, 0x2C, 0x35, 0x78, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0xFF):
        last = f", {table}"
        yield Shape(call(opcode, 3, last), ("b32",) * 3, (32,), suffix=f"{table:#x}")


def _bit_find(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(call(opcode, 1), (f"b{bits_of(groups['kind'])}",), (32,))


def _count_bits(opcode: str, groups: Groups) -> Iterator[Shape]:
    out = bits_of(groups["kind"]) if groups["name"] == "brev" else 32
    yield Shape(call(opcode, 1), (groups["kind"],), (out,))


def _register(kind: str) -> int:
    """Width of the least register that holds a type."""
    return max(bits_of(kind), 16)


def _convert(opcode: str, groups: Groups) -> Iterator[Shape]:
    """Registers of the type's width, and wider ones on either side."""
    name = "f16" if ".f16." in opcode else "f32"
    to, kind = groups.get("to", name), groups["kind"]
    source, out = _register(kind), _register(to)
    yield Shape(call(opcode, 1), (f"b{source}",), (out,))
    if bits_of(kind) < 64:
        yield Shape(call(opcode, 1), ("b64",), (out,), suffix="from 64 bits")
    if to not in ("f16", "f32") and bits_of(to) < 64:
        yield Shape(call(opcode, 1), (f"b{source}",), (64,), suffix="into 64 bits")


def _to_integer(opcode: str, groups: Groups) -> Iterator[Shape]:
    to = groups["to"]
    yield Shape(call(opcode, 1), ("f32",), (_register(to),))
    if bits_of(to) < 32:
        yield Shape(call(opcode, 1), ("f32",), (32,), suffix="into 32 bits")


def _narrow(opcode: str, groups: Groups) -> Iterator[Shape]:
    if "e2m1" not in opcode:
        yield Shape(call(opcode, 2), ("f32", "f32"), (16,))
        return
    body = f".reg .b8 %n; {opcode} %n, %a, %b; cvt.u32.u8 %d0, %n;"
    yield Shape(body, ("f32", "f32"), (32,))


def _widen(opcode: str, groups: Groups) -> Iterator[Shape]:
    if "e2m1" not in opcode:
        yield Shape(call(opcode, 1), ("bytes",), (32,))
        return
    body = f".reg .b8 %n; cvt.u8.u16 %n, %a; {opcode} %d0, %n;"
    yield Shape(body, ("bytes",), (32,))


def _half(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(call(opcode, 1), (groups["kind"],), (32,))


def _compare(opcode: str, groups: Groups) -> Iterator[Shape]:
    """One result and both; a third predicate as it is and negated."""
    kind = groups["kind"]
    value = kind if kind in ("f16", "f32") else f"b{bits_of(kind)}"
    body = ".reg .pred %p, %q, %r; .reg .b32 %s; mov.b32 %d0, 0; "
    third = [""]
    if groups["combine"]:
        body += "setp.lt.s32 %r, %c, 0; "
        third = [", %r", ", !%r"]
    place = 1
    for last in third:
        # ptxas takes one result for f16.
        for targets in ("%p", "%p|%q")[: 1 if kind == "f16" else 2]:
            body += f"{opcode} {targets}, %a, %b{last}; "
            for target in targets.split("|"):
                body += f"selp.b32 %s, {place}, 0, {target}; or.b32 %d0, %d0, %s; "
                place *= 2
    inputs = (value, value, "bit") if groups["combine"] else (value, value)
    yield Shape(body, inputs, (32,))


def _select(opcode: str, groups: Groups) -> Iterator[Shape]:
    bits = bits_of(groups["kind"])
    body = ".reg .pred %p; setp.lt.s32 %p, %c, 0; "
    body += f"{opcode} %d0, %a, %b, %p;"
    yield Shape(body, (f"b{bits}", f"b{bits}", "bit"), (bits,))


def _move(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind = groups["kind"]
    if kind == "pred":
        body = f"{PREDICATES}{opcode} %p, %q; {SELECT}"
        yield Shape(body, ("bit", "bit"), (32,))
        return
    if kind == "b128":
        join = ".reg .b128 %w, %v; mov.b128 %w, {%a, %b}; "
        body = f"{join}{opcode} %v, %w; mov.b128 {{%d0, %d1}}, %v;"
        yield Shape(body, ("b64", "b64"), (64, 64))
    else:
        bits = bits_of(kind)
        yield Shape(call(opcode, 1), (f"b{bits}",), (bits,))
        if kind[0] != "b":
            return
    yield from _packed(opcode, bits_of(kind))


def _packed(opcode: str, bits: int) -> Iterator[Shape]:
    """Pack pieces of the inputs in another order, and take the result apart."""
    for count in (2, 4, 8):
        piece = bits // count
        if piece not in (8, 16, 32, 64):
            continue
        words = [f"%y{i}" for i in range(count)]
        turned = ", ".join(reversed(words))
        whole = ".reg .b128 %w, %v; mov.b128 %w, {%a, %b};"
        inputs: tuple[str, ...] = ("b64", "b64")
        outputs: tuple[int, ...] = (64, 64)
        last = "mov.b128 {%d0, %d1}, %v;"
        if bits < 128:
            whole = f".reg .b{bits} %w, %v; mov.b{bits} %w, %a;"
            inputs, outputs = (f"b{bits}",), (bits,)
            last = f"mov.b{bits} %d0, %v;"
        body = (
            f"{whole} .reg .b{piece} %y<{count}>; "
            f"{opcode} {{{', '.join(words)}}}, %w; {opcode} %v, {{{turned}}}; {last}"
        )
        yield Shape(body, inputs, outputs, suffix=f"{count} pieces")


SHAPES: dict[str, Shapes] = {
    "floating.arithmetic": _float,
    "floating.min_max": _float,
    "floating.sign": _float,
    "floating.copy_sign": _float,
    "floating.reciprocal": plain("f32", output=32),
    "floating.power_of_two": plain("f32", output=32),
    "floating.hyperbolic_tangent": plain("f32", output=32),
    "integer.binary": _integer(2),
    "integer.unary": _integer(1),
    "integer.multiply": _product,
    "integer.multiply_24": _product,
    "integer.sum_of_difference": _integer(3),
    "integer.multiply_add": _product,
    "dot_products.dot_of_bytes": plain("b32", "b32", "b32", output=32),
    "integer.divide": _divide,
    "integer.shift": _shift,
    "integer.funnel_shift": plain("b32", "b32", "by", output=32),
    "integer.bit_field_extract": _field(1),
    "integer.bit_field_insert": _field(2),
    "integer.permute": _permute,
    "integer.three_input_logic": _logic,
    "integer.count_bits": _count_bits,
    "integer.bit_find": _bit_find,
    "conversion.integer_to_integer": _convert,
    "conversion.integer_to_float": _convert,
    "conversion.integer_to_half": _convert,
    "conversion.float_to_integer": _to_integer,
    "conversion.float_to_float": plain("f32", output=32),
    "conversion.float_to_double": plain("f32", output=64),
    "conversion.float_to_half": plain("f32", output=16),
    "conversion.half_to_float": _half,
    "conversion.pair_to_halves": plain("f32", "f32", output=32),
    "conversion.pair_to_narrow": _narrow,
    "conversion.narrow_to_halves": _widen,
    "moves.set_predicate": _compare,
    "moves.select": _select,
    "moves.move": _move,
}
"""By maker."""
