"""Every statement form; garbled text parses or gives an error with a line."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_lanes import HEADER, kernel, machine

from fp4ref.errors import Fp4refError, NotModelled
from fp4ref.ptx import Program, PtxError, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate
from fp4ref.ptx.text.syntax import (
    Address,
    Immediate,
    Instruction,
    Label,
    Location,
    Negated,
    Pair,
    Register,
    Symbol,
    Vector,
)


def body(text: str) -> list[Instruction | Label]:
    return parse(kernel(text)).entries["k"].body[:-1]


def only(text: str) -> Instruction:
    (found,) = body(text)
    assert isinstance(found, Instruction)
    return found


def test_operands() -> None:
    r, p = Register("%r1"), Register("%p1")
    assert only("setp.eq.u32 %r1|%p1, !%p1, -3;").operands == (
        Pair(r, p), Negated(p), Immediate(-3)
    )  # fmt: skip
    assert only("x.y {%r1, _, 0f3F800000}, _, name;").operands == (
        Vector((r, None, Immediate(0x3F800000, 32))), None, Symbol("name")
    )  # fmt: skip
    found = only("x [%r1], [%r1+4], [ %r1 + 0 ], [%r1+-8], [name + -0x10], [16];")
    assert found.operands == (
        Address(r), Address(r, 4), Address(r), Address(r, -8),
        Address(Symbol("name"), -16), Address(Immediate(16)),
    )  # fmt: skip
    assert only("cp [%r1, {%r1, 7}], [%r1+2];").operands[0] == Address(
        r, 0, Vector((r, Immediate(7)))
    )


def test_no_space_is_needed_before_operands() -> None:
    found = only("tcgen05.ld.sync.aligned.32x32b.x2.b32{%r1,%r2},[%r3];")
    assert found.opcode == "tcgen05.ld.sync.aligned.32x32b.x2.b32"
    assert found.operands[0] == Vector((Register("%r1"), Register("%r2")))


def test_guards_and_lines() -> None:
    found = only("\n\n@!%p1 mov.u32 %r1, 1;")
    assert found.guard == (Register("%p1"), True)
    assert found.line == only("@!%p1 mov.u32 %r1, 1;").line + 2


def test_scopes_make_names_unique() -> None:
    one = "{.reg .pred P1; W: x P1; @P1 bra D; bra W; D: }"
    found = body(f"{one} {one} W: bra W;")
    labels = [x.name for x in found if isinstance(x, Label)]
    assert len(set(labels)) == 5
    assert labels[-1] == "W"
    entry = parse(kernel(f"{one} {one}")).entries["k"]
    assert sum(name.startswith("P1@") for name in entry.registers) == 2


def test_a_label_behind_a_loc_is_seen_in_an_inner_scope() -> None:
    one = "{ bra L; .loc 1 2 3\n L: x; }"
    found = body(f"{one} {one}")
    labels = [x.name for x in found if isinstance(x, Label)]
    branches = [
        x.operands[0] for x in found if isinstance(x, Instruction) and x.operands
    ]
    assert branches == [Symbol(name) for name in labels]
    assert len(set(labels)) == 2


def test_inner_scopes_see_outer_names() -> None:
    assert body("{ { x %r1; } }")[0].operands == (Register("%r1"),)


def test_variables() -> None:
    module = parse(
        HEADER + ".global .align 4 .b8 a[6] = {1, 2, 0xFF};"
        ".extern .shared .align 1024 .b8 smem[];"
        ".const .f32 c = 0f3F800000;"
        ".visible .global .u16 d[2][3]; .shared .v4 .b32 e;"
        ".global .s32 n[2] = {-1, 5};"
    )
    found = {v.name: v for v in module.variables}
    assert (found["a"].nbytes, found["a"].alignment) == (6, 4)
    assert found["a"].data == bytes([1, 2, 255, 0, 0, 0])
    assert (found["smem"].nbytes, found["smem"].alignment) == (0, 1024)
    assert found["c"].data == (0x3F800000).to_bytes(4, "little")
    assert found["d"].nbytes == 12
    assert found["e"].nbytes == 16
    assert found["n"].data == b"\xff\xff\xff\xff\x05\0\0\0"


def test_directives_comments_and_sections_are_skipped() -> None:
    text = (
        "// a comment ; { \n/* another ;\n } */\n" + HEADER
        + '.file 1 "a//b.cu"\n.extern .func (.param .b32 r) f(.param .b64 a);'
        ".visible .entry k(.param .u64 p) .maxntid 128, 1, 1 .minnctapersm 1\n"
        '{ .pragma "x;y"; ret; }'
        ".section .debug_str { .b8 1, 2 { } }"
    )  # fmt: skip
    module = parse(text)
    assert module.files == {1: "a//b.cu"}
    assert module.externs == {"f"}
    assert module.entries["k"].directives == {
        "maxntid": (128, 1, 1), "minnctapersm": (1,)
    }  # fmt: skip
    assert (module.version, module.target) == ("8.8", "sm_100a")


def test_calls_and_locations() -> None:
    call = only(".loc 2 17 5, function_name $L+3, inlined_at 1 2 3\n"
                "call.uni (r), f, (a, %r1), proto;")  # fmt: skip
    assert call.location == Location(2, 17)
    assert call.operands == (
        Vector((Symbol("r"),)), Symbol("f"), Vector((Symbol("a"), Register("%r1")))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("mov.u32 %r1, 1", "expected ',' or ';', found 'ret'"),
        ("mov.u32 %r1 1;", "expected ','"),
        ("1 2;", "expected an instruction"),
        ("mov.u32 %r1, \x01;", "unexpected"),
        (".reg .b3 x;", "registers of type .b3"),
        (".reg b32 x;", "registers of type b32"),
        (".reg .b32 _;", "'_' is no name"),
        (".reg .b32 %r1;", "register %r1 is declared twice"),
        (".reg .b32 z<999999999>;", "expected a whole number"),
        ("L: L:", "label L is defined twice"),
        ("mov.u32 %r1, 09;", "not a number"),
        ("mov.u32 %r1, 99999999999999999999;", "does not fit 64 bits"),
        (".shared .b8 s[99999999999];", "expected a whole number"),
        (".shared .b8 s[65536][65536];", "bytes"),
        (".shared .align 3 .b8 s[4];", "power of two"),
        (".shared .nothing s;", "unknown attribute"),
        ("x [%r1+1.5];", "whole number"),
        ("x [_];", "no base"),
        ("x {{%r1}};", "expected an operand"),
        ("{" * 100, "nest deeper"),
        ("x [%r1", "expected"),
        (".loc 1 x 3", "expected a number"),
    ],
)
def test_what_is_wrong_is_named_with_the_line(text: str, match: str) -> None:
    with pytest.raises(PtxError, match=rf"PTX line \d+: .*{re.escape(match)}"):
        parse(kernel(text))


def test_the_line_is_that_of_the_last_token_that_was_read() -> None:
    text = kernel("\n\n  mov.u32 %r1, 7\n\n  8;\n")
    number = text.splitlines().index("  8;") + 1
    with pytest.raises(PtxError, match=f"PTX line {number}: expected ',' or ';'"):
        parse(text)
    number = text.splitlines().index("  mov.u32 %r1, 7") + 1
    cut = text[: text.index(", 7")]
    with pytest.raises(PtxError, match=f"PTX line {number}: the text ends"):
        parse(cut)


# -- garbled text ---------------------------------------------

SAMPLE = (
    kernel(
        """
        ld.param.u64 %rd1, [k_a];
        .shared .align 8 .b8 bar[16];
        .local .align 8 .b8 depot[16];
        mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        setp.lt.and.u32 %p1|%p2, %r1, 16, %p3;
        @!%p1 bra $L_1;
        { .reg .pred P1; W: mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], 0;
          @P1 bra D; bra W; D: }
        ld.global.v2.b32 {%r2, %r3}, [ %rd2 + 8 ];
        cvt.rn.satfinite.e2m1x2.f32 %b1, 0f3F800000, %r3;
        mov.b32 %r4, {%b1, %b1, %b2, %b3};
        fma.rn.f32 %r5, %r2, %r3, %r4;
        tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1], %rd1, %rd2,
            %r2, [%r3], [%r4], %p1;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
            [%r1], [%rd1, {%r2, %r3}], [%r4];
        shfl.sync.bfly.b32 %r6|%p4, %r5, 1, 31, -1;
        elect.sync _|%p5, 0xffffffff;
        ld.shared.b128 %q1, [bar];
        clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128
            {%r1, %r2, %r3, _}, %q1;
    $L_1: st.global.v2.u32 [%rd2], {%r5, %r6};
        prmt.b32 %r7, %r5, %r6, 0x5410;
        bfe.u32 %r8, %r7, 3, 5;
        selp.f32 %r9, %r5, 0f00000000, %p2;
        atom.global.add.u32 %r10, [%rd2], 1;
        tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r11, %r12}, [%r1];
        bar.sync 0, 128;
        """,
        params=".param .u64 k_a",
        module=".extern .shared .align 16 .b8 smem[];\n.file 1 \"a.cu\"",
    )
    .replace("ret;", ".loc 1 3 4, function_name $L_2, inlined_at 1 2 3\n    ret;")
)  # fmt: skip

PIECES = re.findall(r"[\w.%$:]+|\s+|.", SAMPLE)


def check(text: str) -> None:
    """Garbled text is translated, or refused by an error with a line or a name."""
    error: Exception | None = None
    try:
        module = parse(text)
        for name in module.entries:
            program = Program.of(module, name)
            _ = program.reconvergence
            x, y, z, *_ = (*program.entry.directives.get("reqntid", (32,)), 1, 1, 1)
            params = bytes(program.param_nbytes)
            context = load(machine(), program, params, (x, y, z))
            translate(context)
    except Fp4refError as found:
        error = found
    if isinstance(error, NotModelled):
        assert re.search(r"\(line \d+", str(error))
    elif error is not None:
        assert re.match(r"PTX line \d+: |block |entry ", str(error))


def test_the_sample_translates() -> None:
    module = parse(SAMPLE)
    program = Program.of(module)
    translate(load(machine(), program, bytes(8), (32, 1, 1)))


def mutate(rng: random.Random) -> str:
    """Change a few pieces or bytes of the sample."""
    pieces = list(PIECES)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        i = rng.randrange(len(pieces))
        match rng.randrange(6):
            case 0:
                del pieces[i]
            case 1:
                pieces.insert(i, pieces[rng.randrange(len(pieces))])
            case 2:
                pieces[i] = pieces[rng.randrange(len(pieces))]
            case 3 if pieces[i]:
                at = rng.randrange(len(pieces[i]))
                new = chr(rng.choice([rng.randrange(32, 127), rng.randrange(1, 1200)]))
                pieces[i] = pieces[i][:at] + new + pieces[i][at + 1 :]
            case 4:
                j = rng.randrange(len(pieces))
                pieces[i], pieces[j] = pieces[j], pieces[i]
            case _:
                pieces[i] = pieces[i] * rng.choice([2, 3, 40])
    text = "".join(pieces)
    return text[: rng.randrange(len(text))] if rng.random() < 0.1 else text


def test_mutated_text_gives_named_errors_only() -> None:
    rng = random.Random(7)
    started = time.monotonic()
    for _ in range(600):
        check(mutate(rng))
    assert time.monotonic() - started < 60


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=150)
def test_mutations_by_seed(seed: int) -> None:
    check(mutate(random.Random(seed)))


# Plain code points: what a codec cannot carry is of no interest here.
@given(text=st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=200))
@settings(max_examples=150)
def test_any_text_ends(text: str) -> None:
    check(text)
    check(kernel(text))


@given(words=st.lists(st.sampled_from(sorted(set(PIECES))), max_size=60))
@settings(max_examples=150)
def test_any_words_end(words: list[str]) -> None:
    check(kernel(" ".join(words)))
