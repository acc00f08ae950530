"""memory_shapes: loads, stores, atomics, copies and addresses in every state space.

Every thread has 16 bytes of its own, at [%from] in the input and [%to] in the output.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.forms.shapes import Groups, Shape, Shapes, bits_of

ROOM = (
    ".shared .align 16 .b8 room[16384]; .reg .b32 %room; mov.u32 %room, room; "
    "mad.lo.u32 %room, %thread, 16, %room; "
)
LOCAL = ".local .align 16 .b8 own[16]; .reg .b64 %own; mov.u64 %own, own; "
GENERIC = ".reg .b64 %g; "
_OF_SHARED = f"{GENERIC}cvt.u64.u32 %g, %room; cvta.shared.u64 %g, %g; "
_OF_LOCAL = f"{GENERIC}cvta.local.u64 %g, %own; "
PARAM_NBYTES = 2048
"""Bytes of the parameter ``block``, and of the constant ``table``."""

_FOUR = "{%w0, %w1, %w2, %w3}"
_WORDS = f".reg .b32 %w<4>; ld.global.v4.b32 {_FOUR}, [%from]; "
_BLANK = "{0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee}"


def _places(space: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield of each place: how to get there, a space to fill it by, address, name."""
    match space.split("::")[0]:
        case "shared":
            yield ROOM, "shared", "%room", ""
        case "local":
            yield LOCAL, "local", "%own", ""
        case "":
            yield ROOM + _OF_SHARED, "shared", "%g", "of shared"
            yield LOCAL + _OF_LOCAL, "local", "%g", "of local"


def _fill(space: str, words: str) -> str:
    at = "%room" if space == "shared" else "%own"
    return f"st.{space}.v4.b32 [{at}], {words}; "


def _elements(kind: str, count: int, width: int) -> tuple[str, str, str, list[int]]:
    """Return declaration, operand, what follows, and the outputs' bits."""
    if kind == "b128":
        end = "mov.b128 {%d0, %d1}, %wide; "
        return ".reg .b128 %wide; ", "%wide", end, [64, 64]
    registers = [f"%d{i}" for i in range(count)]
    operand = registers[0] if count == 1 else f"{{{', '.join(registers)}}}"
    return "", operand, "", [width] * count


def _load(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind, count = groups["kind"], int(groups.get("count") or 1)
    bits = bits_of(kind)
    widths = [max(bits, 32)]
    if bits < 32 and count == 1:
        widths = [16, 32, 64]
    for width in widths:
        suffix = f"into {width} bits" if len(widths) > 1 else ""
        yield from _loads(opcode, groups["space"], kind, count, width, suffix)


def _loads(
    opcode: str, space: str, kind: str, count: int, width: int, suffix: str
) -> Iterator[Shape]:
    declare, operand, end, outputs = _elements(kind, count, width)
    nbytes = count * bits_of(kind) // 8

    def shape(before: str, at: str, place: str = "") -> Shape:
        name = " ".join(filter(None, (place, suffix)))
        body = f"{declare}{before}{opcode} {operand}, [{at}]; {end}"
        return Shape(body, ("x128",), tuple(outputs), suffix=name)

    if space in ("", "global"):
        stride = f"mad.lo.u64 %from, %index64, {nbytes}, %in; "
        yield shape(stride, "%from")
    if space.startswith("param") or space == "const":
        name = "table" if space == "const" else "block"
        offset = f"mul.lo.u64 %from, %index64, {nbytes}; and.b64 %from, %from, "
        offset += f"{PARAM_NBYTES - nbytes}; "
        begin = f".reg .b64 %base; mov.u64 %base, {name}; "
        yield shape(f"{begin}{offset}add.u64 %from, %from, %base; ", "%from")
    for begin, fills, at, place in _places(space):
        yield shape(f"{begin}{_WORDS}{_fill(fills, _FOUR)}", at, place)


def _store(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind, count = groups["kind"], int(groups.get("count") or 1)
    bits = bits_of(kind)
    widths = [max(bits, 32)]
    if bits < 32 and count == 1:
        widths = [16, 32, 64]
    for width in widths:
        suffix = f"from {width} bits" if len(widths) > 1 else ""
        begin, operand = _sources(kind, count, width)
        yield from _stores(opcode, groups["space"], begin, operand, suffix)


def _sources(kind: str, count: int, width: int) -> tuple[str, str]:
    """Return how values get into registers, and the operand."""
    if kind == "b128":
        halves = ".reg .b64 %h<2>; ld.global.v2.b64 {%h0, %h1}, [%from]; "
        return f"{halves}.reg .b128 %wide; mov.b128 %wide, {{%h0, %h1}}; ", "%wide"
    if width == 16:
        return ".reg .b16 %h0; ld.global.b16 %h0, [%from]; ", "%h0"
    registers = [f"%h{i}" for i in range(count)]
    room = 128 // width
    begin = f".reg .b{width} %h<{count}>; "
    for first in range(0, count, room):
        part = registers[first : first + room]
        vector = f".v{len(part)}" if len(part) > 1 else ""
        listed = f"{{{', '.join(part)}}}" if vector else part[0]
        begin += f"ld.global{vector}.b{width} {listed}, [%from]; "
    return begin, registers[0] if count == 1 else f"{{{', '.join(registers)}}}"


def _stores(
    opcode: str, space: str, begin: str, operand: str, suffix: str
) -> Iterator[Shape]:
    def shape(body: str, place: str = "") -> Shape:
        name = " ".join(filter(None, (place, suffix)))
        return Shape(begin + body, ("x128",), (), memory=16, suffix=name)

    if space in ("", "global"):
        yield shape(f"{opcode} [%to], {operand};")
    for reach, fills, at, place in _places(space):
        own = "%room" if fills == "shared" else "%own"
        body = f"{reach}{_fill(fills, _BLANK)}{opcode} [{at}], {operand}; "
        body += f".reg .b32 %w<4>; ld.{fills}.v4.b32 {_FOUR}, [{own}]; "
        body += f"st.global.v4.b32 [%to], {_FOUR};"
        yield shape(body, place)


def _atomic(opcode: str, groups: Groups) -> Iterator[Shape]:
    what, kind, space = groups["what"], groups["kind"], groups["space"]
    bits = 32 if kind.endswith("x2") else bits_of(kind)
    value = kind if kind == "f32" else f"b{bits}"
    inputs: tuple[str, ...] = (value, value)
    if what == "cas":
        inputs = (f"few{bits}", f"few{bits}", f"b{bits}")
    returns = groups["name"] == "atom"
    target = "%d0, " if returns else ""
    sources = "%b, %c" if what == "cas" else "%b"
    outputs = (bits,) if returns else ()
    nbytes = bits // 8

    def shape(begin: str, own: str, at: str, end: str, suffix: str = "") -> Shape:
        body = (
            f"{begin}st{own}.b{bits} [{at}], %a; {opcode} {target}[{at}], {sources}; "
        )
        return Shape(body + end, inputs, outputs, memory=nbytes, suffix=suffix)

    if space in ("", "global"):
        yield shape("", ".global", "%to", "")
    if space != "global":
        begin, own, at = ROOM, ".shared", "%room"
        if not space:
            begin, own, at = ROOM + _OF_SHARED, "", "%g"
        end = f".reg .b{bits} %last; ld.shared.b{bits} %last, [%room]; "
        end += f"st.global.b{bits} [%to], %last;"
        yield shape(begin, own, at, end, "" if space else "of shared")


def _atomic_vector(opcode: str, groups: Groups) -> Iterator[Shape]:
    count, kind = int(groups["vector"][1:]), groups["kind"]
    bits = 32 if kind.endswith("x2") else bits_of(kind)
    room = 64 // bits
    begin = f"{_WORDS}st.global.v4.b32 [%to], {_FOUR}; .reg .b{bits} %h<{2 * room}>; "
    for source, first in (("%b", 0), ("%c", room)):
        part = ", ".join(f"%h{first + i}" for i in range(room))
        begin += f"mov.b64 {{{part}}}, {source}; "
    operand = ", ".join(f"%h{i}" for i in range(count))
    returns = groups["name"] == "atom"
    results = ", ".join(f"%d{i}" for i in range(count))
    target = f"{{{results}}}, " if returns else ""
    body = f"{begin}{opcode} {target}[%to], {{{operand}}};"
    outputs = (bits,) * count if returns else ()
    yield Shape(body, ("x128", "b64", "b64"), outputs, memory=16)


def _copy(opcode: str, groups: Groups) -> Iterator[Shape]:
    """Copies are waited for by an mbarrier, on which every thread arrives."""
    wait = (
        ".shared .align 8 .b64 full; .reg .b32 %full; .reg .pred %p; "
        "mov.u32 %full, full; setp.eq.u32 %p, %thread, 0; "
        "@%p mbarrier.init.shared.b64 [%full], 1024; bar.sync 0; "
        "{copy} cp.async.mbarrier.arrive.noinc.shared.b64 [%full]; "
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%full], 0; @!%p bra WAIT; "
    )
    for nbytes in (4, 8, 16):
        copy = f"{opcode} [%room], [%from], {nbytes};"
        body = ROOM + _fill("shared", _BLANK) + wait.replace("{copy}", copy)
        body += f".reg .b32 %w<4>; ld.shared.v4.b32 {_FOUR}, [%room]; "
        body += f"st.global.v4.b32 [%to], {_FOUR};"
        yield Shape(body, ("x128",), (), memory=16, suffix=f"{nbytes} bytes")


_OWN_ADDRESS = {
    "global": (".reg .b64 %x; mov.b64 %x, %to; st.global.b32 [%to], %a; ", 4),
    "shared": (ROOM + ".reg .b64 %x; cvt.u64.u32 %x, %room; ", 0),
    "local": (LOCAL + ".reg .b64 %x; mov.b64 %x, %own; ", 0),
    "param": (".reg .b64 %x; mov.u64 %x, block; ", 0),
    "const": (".reg .b64 %x; mov.u64 %x, table; ", 0),
}
"""By space: how %x becomes an address in it, and bytes of memory that this takes."""


def _convert_address(opcode: str, groups: Groups) -> Iterator[Shape]:
    """There and back again; memory is read through the address that is asked about."""
    space = groups["space"].split("::")[0]
    begin, memory = _OWN_ADDRESS[space]
    if space in ("shared", "local"):
        begin += f"st.{space}.b32 [%x], %a; "
    there = opcode if not groups["to"] else opcode.replace(".to.", ".")
    back = opcode if groups["to"] else f"cvta.to.{groups['space']}.u64"
    body = f"{begin}.reg .b64 %g, %y; .reg .pred %p; {there} %g, %x; "
    body += f"{back} %y, %g; setp.eq.u64 %p, %x, %y; selp.b32 %d0, 1, 0, %p; "
    read = f"ld.{space}.b32 %d1, [%y];" if groups["to"] else "ld.b32 %d1, [%g];"
    yield Shape(body + read, ("b32",), (32, 32), memory=memory)


def _is_space(opcode: str, groups: Groups) -> Iterator[Shape]:
    """Ask about an address in each space; the bits of %d0 are the answers."""
    body = ".reg .pred %p; .reg .b32 %s; .reg .b64 %g; mov.b32 %d0, 0; "
    body += ROOM + LOCAL + "st.shared.b32 [%room], 0; st.local.b32 [%own], 0; "
    body += "st.global.b32 [%to], 0; "
    addresses = (
        "mov.b64 %g, %to; ",
        "cvt.u64.u32 %g, %room; cvta.shared.u64 %g, %g; ",
        "cvta.local.u64 %g, %own; ",
        "mov.u64 %g, block; cvta.param.u64 %g, %g; ",
    )
    for place, address in enumerate(addresses):
        body += f"{address}{opcode} %p, %g; selp.b32 %s, {1 << place}, 0, %p; "
        body += "or.b32 %d0, %d0, %s; "
    yield Shape(body, ("b32",), (32,), memory=4)


SHAPES: dict[str, Shapes] = {
    "memory.load": _load,
    "memory.store": _store,
    "atomics.atomic": _atomic,
    "atomics.vector": _atomic_vector,
    "cp_async.copy": _copy,
    "moves.convert_address": _convert_address,
    "moves.is_space": _is_space,
}
"""By maker."""
