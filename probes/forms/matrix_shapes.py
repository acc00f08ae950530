"""matrix_shapes: ``mma.sync``, ``wmma`` and ``movmatrix``, by which a warp multiplies.

The warps of a CTA have operands of one kind: of every four CTAs one has any bits, two
have A and B near 1, with C near 1 or of any bits, and one has A and B of any size below
2 beside a C near 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.forms.inputs import BLOCK
from probes.forms.shapes import Groups, Shape, Shapes

_NEAR_ONE = {
    "f16": ("0x8fff8fff", "0x30003000"),
    "bf16": ("0x81ff81ff", "0x3e003e00"),
    "tf32": ("0x81ffffff", "0x3e000000"),
    "f32": ("0x83ffffff", "0x3c000000"),
}
"""Bits that stay, and bits that are set."""
_BELOW_TWO = {"f16": "0xbfffbfff", "bf16": "0xbfffbfff", "tf32": "0xbfffffff"}
_TILE = {
    "m16n16k16": (16, 16, 16),
    "m8n32k16": (8, 32, 16),
    "m32n8k16": (32, 8, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}
_NBYTES = {
    "f16": 2,
    "bf16": 2,
    "s8": 1,
    "u8": 1,
    "tf32": 4,
    "f32": 4,
    "s32": 4,
    "f64": 8,
}
_WIDER = 16
"""Bytes by which a row is longer in the second shape."""


def _mask(kind: str, accumulator: str) -> str:
    """Masks of A and B in %ma and %mo, and of C in %ca and %co."""
    any_bits = ("-1", "0")
    near, below = _NEAR_ONE.get(kind, any_bits), _BELOW_TWO.get(kind, "-1")
    # Sums of integers that go over the edge on either side.
    of_c = _NEAR_ONE.get(accumulator, ("0xff", "0x7fffff00"))
    last = of_c if accumulator in _NEAR_ONE else ("0xff", "0x80000000")
    by_class = (
        (*any_bits, *any_bits),
        (*near, *of_c),
        (*near, *any_bits),
        (below, "0", *last),
    )
    names = ("ma", "mo", "ca", "co")
    lines = [".reg .b32 %class, %ma, %mo, %ca, %co; .reg .pred %is; "]
    lines += [f"mov.b32 %{n}, {v}; " for n, v in zip(names, by_class[0], strict=True)]
    lines.append("and.b32 %class, %cta, 3; ")
    for i, values in enumerate(by_class[1:], 1):
        lines.append(f"setp.eq.u32 %is, %class, {i}; ")
        lines += [
            f"@%is mov.b32 %{n}, {v}; " for n, v in zip(names, values, strict=True)
        ]
    return "".join(lines)


def _masked(registers: list[str], which: str) -> str:
    return "".join(
        f"and.b32 {r}, {r}, %{which}a; or.b32 {r}, {r}, %{which}o; " for r in registers
    )


def _vector(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"


def _numbered(name: str, count: int) -> list[str]:
    return [f"%{name}{i}" for i in range(count)]


def _halves(registers: list[str]) -> str:
    """Split registers of 64 bits into twice as many, %p0 and on."""
    words = _numbered("p", 2 * len(registers))
    return f".reg .b32 %p<{len(words)}>; " + "".join(
        f"mov.b64 {_vector(words[2 * i : 2 * i + 2])}, {each}; "
        for i, each in enumerate(registers)
    )


def _folded(registers: list[str], kind: str = "b32") -> str:
    """One result of all registers: 16 bits of a hash."""
    if kind == "f64":
        words = _numbered("p", 2 * len(registers))
        return _halves(registers) + _folded(words)
    lines = [".reg .b32 %h, %i; mov.b32 %h, 0; "]
    for each in registers:
        lines.append(
            f"mov.b32 %i, {each}; xor.b32 %h, %h, %i; mul.lo.u32 %h, %h, 0x9E3779B1; "
        )
    lines.append("shr.u32 %h, %h, 16; cvt.u16.u32 %d0, %h; ")
    return "".join(lines)


_DOUBLES = (
    "mov.b64 %m, 0xffffffffffffffff; mov.b64 %o, 0; and.b32 %w, %cta, 1; "
    "setp.ne.u32 %is, %w, 0; @%is mov.b64 %m, 0x803fffffffffffff; "
    "@%is mov.b64 %o, 0x3fc0000000000000; "
)
"""Masks of float64: any bits, or near 1."""


def _near(registers: list[str]) -> str:
    return "".join(
        f"mov.b64 %n, {r}; and.b64 %n, %n, %m; or.b64 %n, %n, %o; mov.b64 {r}, %n; "
        for r in registers
    )


def _of_doubles(opcode: str) -> Shape:
    body = (
        ".reg .f64 %y<6>; .reg .b64 %m, %o, %n; .reg .b32 %w; .reg .pred %is; "
        f"{_DOUBLES}"
        "mov.b64 %y0, %a; mov.b64 %y1, %b; mov.b64 %y2, %c; mov.b64 %y3, %e; "
        f"{_near(_numbered('y', 4))}{opcode} {{%y4, %y5}}, {{%y0}}, {{%y1}}, "
        "{%y2, %y3}; "
    )
    return Shape(body + _folded(["%y4", "%y5"], "f64"), ("b64",) * 4, (16,))


def _mma(opcode: str, groups: Groups) -> Iterator[Shape]:
    d, kind = groups["types"].split(".")[:2]
    if kind == "f64":
        yield _of_doubles(opcode)
        return
    count = 16 * int(groups["k"]) * _NBYTES[kind] // 128
    of_a = _numbered("y", count)
    of_b, of_c = _numbered("z", count // 2), _numbered("w", 2 if d == "f16" else 4)
    body = (
        ".reg .b32 %y<4>, %z<2>, %w<4>; "
        f"{_mask(kind, d)}ld.global.v4.b32 {_vector(_numbered('y', 4))}, [%from]; "
        "mov.b64 {%z0, %z1}, %b; mov.b64 {%w0, %w1}, %c; mov.b64 {%w2, %w3}, %e; "
        f"{_masked([*of_a, *of_b], 'm')}{_masked(of_c, 'c')}"
        f"{opcode} {_vector(of_c)}, {_vector(of_a)}, {_vector(of_b)}, {_vector(of_c)}; "
    )
    yield Shape(body + _folded(of_c), ("x128", "b64", "b64", "b64"), (16,))


def _move(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(f"{opcode} %d0, %a;", ("b32",), (32,))


def _root(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(f"{opcode} %d0, %a;", ("b64",), (64,))
    positive = "and.b64 %a, %a, 0x7fffffffffffffff; "
    yield Shape(f"{positive}{opcode} %d0, %a;", ("b64",), (64,), suffix="positive")


# -- wmma --------------------------------------------------------------------------

_WARPS = 16
"""Warps with a place of their own among a CTA's 16 KB of input; the rest share one."""
_PLACE = (
    f".reg .b32 %w; .reg .b64 %at0; shr.u32 %w, %thread, 5; min.u32 %w, %w, {_WARPS}; "
    f"shl.b32 %w, %w, 9; mad.lo.u32 %w, %cta, {16 * BLOCK}, %w; "
    "cvt.u64.u32 %at0, %w; add.u64 %at0, %at0, %in; "
)
_SHARED = (
    ".shared .align 128 .b8 rows[16384]; .reg .b32 %s, %v<4>; mov.u32 %s, rows; "
    "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%from]; "
    "mad.lo.u32 %s, %thread, 16, %s; "
    "st.shared.v4.b32 [%s], {%v0, %v1, %v2, %v3}; bar.sync 0; "
    f"shr.u32 %s, %thread, 5; min.u32 %s, %s, {_WARPS}; shl.b32 %s, %s, 9; "
    ".reg .b32 %r; mov.u32 %r, rows; add.u32 %s, %s, %r; "
)


def _registers(matrix: str, shape: str, kind: str) -> int:
    m, n, k = _TILE[shape]
    if matrix in "ab" and kind == "f16":
        return 8
    elements = {"a": m * k, "b": n * k, "c": m * n, "d": m * n}[matrix]
    return elements * min(_NBYTES[kind], 4) // 128


def _least(matrix: str, shape: str, layout: str) -> int:
    m, n, k = _TILE[shape]
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[matrix]
    return columns if layout == "row" else rows


def _load(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind, matrix = groups["kind"], groups["matrix"]
    count = _registers(matrix, groups["shape"], kind)
    registers = _numbered("y", count)
    least = _least(matrix, groups["shape"], groups["layout"])
    prelude, at = _PLACE, "%at0"
    if groups["space"].startswith("shared"):
        prelude, at = _SHARED, "%s"
    for stride, suffix in (
        ("", ""),
        (f", {least + _WIDER // _NBYTES[kind]}", "wider rows"),
    ):
        body = f".reg .b32 %y<{count}>; {prelude}{opcode} {_vector(registers)}, "
        yield Shape(
            f"{_typed(body, kind)}[{at}]{stride}; {_folded(registers, kind)}",
            ("x128",),
            (16,),
            suffix=suffix,
        )


def _typed(text: str, kind: str) -> str:
    """Let the fragment's registers be of floats where they are."""
    own = kind if kind in ("f32", "f64") else "b32"
    return text.replace(".reg .b32 %y<", f".reg .{own} %y<")


def _store(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind = groups["kind"]
    count = _registers("d", groups["shape"], kind)
    least = _least("d", groups["shape"], groups["layout"])
    words = (
        f".reg .b32 %y<8>; ld.global.v4.b32 {_vector(_numbered('y', 4))}, [%from]; "
        "mov.b64 {%y4, %y5}, %b; mov.b64 {%y6, %y7}, %c; "
    )
    registers = _vector(_numbered("y", count))
    if kind == "f32":
        floats = "".join(f"mov.b32 %f{i}, %y{i}; " for i in range(8))
        words += f".reg .f32 %f<8>; {floats}"
        registers = _vector(_numbered("f", count))
    if kind == "f64":
        words += "mov.b64 %g0, {%y0, %y1}; mov.b64 %g1, {%y2, %y3}; "
        words = f".reg .f64 %g<2>; {words}"
        registers = _vector(_numbered("g", count))
    inputs = ("x128", "b64", "b64")
    if groups["space"].startswith("shared"):
        body = (
            f"{words}.shared .align 128 .b8 rows[32768]; .reg .b32 %s, %u; "
            "mov.u32 %u, rows; mad.lo.u32 %s, %thread, 32, %u; "
            "st.shared.v4.b32 [%s], {0, 0, 0, 0}; "
            "st.shared.v4.b32 [%s+16], {0, 0, 0, 0}; bar.warp.sync 0xffffffff; "
            ".reg .b32 %t; shr.u32 %t, %thread, 5; mad.lo.u32 %u, %t, 1024, %u; "
            f"{opcode} [%u], {registers}; bar.warp.sync 0xffffffff; "
        )
        yield Shape(body + _read_back("shared", "%s", 32), inputs, (16,))
        return
    # The warp's part of the output: 64 bytes a thread.
    place = (
        ".reg .b64 %base, %lane64; .reg .b32 %lane; mov.u32 %lane, %laneid; "
        "cvt.u64.u32 %lane64, %lane; mul.lo.u64 %lane64, %lane64, 64; "
        "sub.u64 %base, %to, %lane64; "
    )
    clear = "".join(f"st.global.v4.b32 [%to+{i}], {_ZEROS}; " for i in range(0, 64, 16))
    back = f"bar.warp.sync 0xffffffff; {_read_back('global', '%to', 64)}{clear}"
    for stride, suffix in (
        ("", ""),
        (f", {least + _WIDER // _NBYTES[kind]}", "wider rows"),
    ):
        yield Shape(
            f"{words}{place}{opcode} [%base], {registers}{stride}; {back}",
            inputs,
            (16,),
            memory=64,
            suffix=suffix,
        )


_ZEROS = "{0, 0, 0, 0}"


def _read_back(space: str, at: str, nbytes: int) -> str:
    """A hash of a thread's bytes of a tile."""
    words = _numbered("v", nbytes // 4)
    loads = "".join(
        f"ld.{space}.v4.b32 {_vector(words[i // 4 : i // 4 + 4])}, [{at}+{i}]; "
        for i in range(0, nbytes, 16)
    )
    return f".reg .b32 %v<{len(words)}>; {loads}{_folded(words)}"


def _product_of_doubles(opcode: str, layouts: list[str]) -> Shape:
    loads = "".join(
        f"wmma.load.{matrix}.sync.aligned.{layout}.m8n8k4.global.f64 "
        f"{_vector(registers)}, [%at0+{offset}]; "
        for matrix, layout, registers, offset in (
            ("a", layouts[0], ["%y0"], 0),
            ("b", layouts[1], ["%y1"], 512),
            ("c", "row", ["%y2", "%y3"], 1024),
        )
    )
    body = (
        f"{_PLACE}.reg .f64 %y<6>; .reg .b64 %m, %o, %n; .reg .pred %is; {loads}"
        f"{_DOUBLES}{_near(_numbered('y', 4))}"
        f"{opcode} {{%y4, %y5}}, {{%y0}}, {{%y1}}, {{%y2, %y3}}; "
    )
    return Shape(body + _folded(["%y4", "%y5"], "f64"), ("x128",), (16,))


def _multiply(opcode: str, groups: Groups) -> Iterator[Shape]:
    shape = groups["shape"]
    named = groups.get("types") or f"{groups['d']}.f16.f16.{groups['c']}"
    d, a, _, c = named.split(".")
    layouts = opcode.split(".")[4:6]
    if d == "f64":
        yield _product_of_doubles(opcode, layouts)
        return
    body = (
        f"{_PLACE}{_mask(a, c)}.reg .b32 %y<8>, %z<8>, %w<8>, %x<8>; "
        ".reg .f32 %f<8>, %g<8>; "
    )
    fragments = {}
    offsets = {"a": 0, "b": 1024, "c": 2048}
    for matrix, name, kind in (("a", "y", a), ("b", "z", a), ("c", "w", c)):
        layout = {"a": layouts[0], "b": layouts[1]}.get(matrix, "row")
        registers = _numbered(name, _registers(matrix, shape, kind))
        loaded = _numbered("f", len(registers)) if kind == "f32" else registers
        body += (
            f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.global.{kind} "
            f"{_vector(loaded)}, [%at0+{offsets[matrix]}]; "
        )
        if kind == "f32":
            body += "".join(
                f"mov.b32 {r}, {x}; " for r, x in zip(registers, loaded, strict=True)
            )
        body += _masked(registers, "c" if matrix == "c" else "m")
        if kind == "f32":
            body += "".join(
                f"mov.b32 {x}, {r}; " for r, x in zip(registers, loaded, strict=True)
            )
        fragments[matrix] = loaded
    out = _numbered("g" if d == "f32" else "x", _registers("d", shape, d))
    vectors = (out, fragments["a"], fragments["b"], fragments["c"])
    body += f"{opcode} {', '.join(map(_vector, vectors))}; {_folded(out)}"
    yield Shape(body, ("x128",), (16,))


SHAPES: dict[str, Shapes] = {
    "mma_sync.mma": _mma,
    "matrices.transpose": _move,
    "double_reciprocals.root": _root,
    "wmma.load": _load,
    "wmma.store": _store,
    "wmma.mma": _multiply,
}
"""By maker."""
