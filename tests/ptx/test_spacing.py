"""PTX is read by grammar, not by spaces; ptxas is the judge of every spelling."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from assembler import complaint, needs_ptxas
from on_lanes import HEADER, SCRATCH, machine

from fp4ref.cuda_kernel.build import packaged
from fp4ref.errors import Fp4refError
from fp4ref.ptx import Program, PtxError, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate
from fp4ref.ptx.text.syntax import Entry, Module

BODIES = """\
{ .reg .b32 t , u ; mov .b32 t , %r1 ; mov .b32 u , t ; }
.reg .pred q ; setp .eq .and .u32 q | %p1 , %r1 , - 3 , ! %p2 ;
.reg .b32 v < 3 > , w ; mov .u32 v2 , %tid .x ; mov .b32 w , v2 ;
.shared .align 16 .b8 s [ 64 ] ; mov .u32 %r1 , s ;
.shared .v4 .b32 a , b [ 2 ] [ 3 ] ; ld .shared .v2 .b32 { %r1 , _ } , [ b + 8 ] ;
.local .align 8 .b8 depot [ 16 ] ; mov .u64 %rd1 , depot ;
L : @ %p1 bra .uni L ; @ ! %p2 bra M ; M : mov .u32 %r1 , 1 ;
{ W : mov .u32 %r1 , 0x1F ; @ %p1 bra W ; } { W : bra W ; }
ld .global .L1::evict_first .u32 %r1 , [ %rd1 + - 4 ] ;
ld .shared::cta .v2 .u32 { %r1 , %r2 } , [ %r3 ] ;
st .volatile .shared .v2 .b32 [ %r1 + 8 ] , { %r2 , %r3 } ;
mul.wide .u32 %rd1 , %r1 , 4 ; mad.lo .s32 %r1 , %r1 , %r2 , %r3 ;
fma .rn .ftz .f32 %f1 , %f1 , 0f3F800000 , 1.5 ; add .f32 %f2 , %f1 , .5 ;
cvt .rn .f32 .u32 %f1 , %r1 ; cvta.to .global .u64 %rd1 , %rd2 ;
shfl .sync .bfly .b32 %r1 | %p1 , %r2 , 1 , 31 , - 1 ;
elect .sync _ | %p1 , 0xffffffff ; bar.warp .sync - 1 ; bar .sync 0 , 128 ;
mbarrier.try_wait.parity .shared::cta .b64 %p1 , [ %r1 ] , 0 ;
mbarrier.arrive.expect_tx .shared::cta .b64 _ , [ %r1 ] , 64 ;
cp.async.bulk.tensor .2d .shared::cta .global .mbarrier::complete_tx::bytes \
.cta_group::1 [ %r1 ] , [ %rd1 , { %r2 , 0 } ] , [ %r4 ] ;
cp.async.bulk.wait_group .read 0 ; fence.proxy .async .shared::cta ;
tcgen05.ld .sync .aligned .32x32b .x2 .b32 { %r1 , %r2 } , [ %r3 ] ;
tcgen05.mma .cta_group::1 .kind::mxf4nvf4 .block_scale .block16 [ %r1 ] , %rd1 , \
%rd2 , %r2 , [ %r3 ] , [ %r4 ] , %p1 ;
tcgen05.wait::ld .sync .aligned ; barrier.cluster.arrive .release .aligned ;
.pragma "nounroll" ; mov .b64 { %r1 , %r2 } , %rd1 ; mov .b64 %rd1 , { %r1 , %r2 } ;
mov .u32 %r1 , 017 ; mov .u32 %r2 , 0b101 ; mov .u32 %r3 , 1U ; mov .u32 %r4 , + 2 ;
.reg .b128 z ; clusterlaunchcontrol.query_cancel .is_canceled .pred .b128 %p1 , z ;
""".splitlines()
"""Bodies of a kernel, a space between all words; a backslash goes on."""

MODULES = """\
.visible .entry k ( .param .u64 p , .param .align 64 .b8 m [ 128 ] ) { ret ; }
.weak .entry k ( .param .u64 .ptr .global .align 1 p ) { ret ; }
.entry k .maxntid 128 , 1 , 1 .minnctapersm 1 { exit ; }
.entry k ( ) .reqntid 32 .pragma "nounroll" ; { ret .uni ; }
.extern .shared .align 16 .b8 s [ ] ; .entry k ( ) { ret ; }
.visible .global .align 4 .b8 g [ 6 ] = { 1 , 2 , 0xFF } ; .entry k ( ) { ret ; }
.const .f32 c = 0f3F800000 ; .global .s32 n [ 2 ] = { - 1 , 5 } ; .entry k { ret ; }
.global .u32 a , b ; .global .u8 d [ ] = { 1 , 2 } ; .entry k ( ) { ret ; }
.extern .func ( .param .b32 r ) f ( .param .b64 a ) ; .entry k ( ) { ret ; }
.visible .func f ( ) { ret ; } .file 1 "a.cu" .entry k ( ) { .loc 1 2 3 ret ; }
""".splitlines()

BETWEEN = ("", "", "", " ", " ", "\n", "\t", "\r\n", " /* }; */ ", " // .reg {\n")
FLOATS = "    .reg .f32 %f<4>;\n"
CASES = [
    *(f"{HEADER}.entry k ( ) {{{SCRATCH}{FLOATS} \0{x}\0 ret; }}" for x in BODIES),
    *(f"{HEADER}\0{x}\0" for x in MODULES),
]


def spelt(case: str, rng: random.Random) -> str:
    """The words between the two marks, with other things between them."""
    before, words, behind = case.split("\0")
    often = rng.choice([0.05, 0.3, 0.8])
    text = "".join(
        word + (rng.choice(BETWEEN) if rng.random() < often else " ")
        for word in words.split(" ")
    )
    return before + text + behind


def program(text: str) -> tuple[Module, list[Entry]]:
    """What is read, without lines; the program is translated too."""
    module = parse(text)
    found = Program.of(module)
    if not module.entries["k"].params:
        threads = module.entries["k"].directives.get("reqntid", (32,))[0]
        translate(load(machine(), found, b"", (threads, 1, 1)))
    entries = []
    for entry in module.entries.values():
        body = [replace(item, line=0) for item in entry.body]
        entries.append(replace(entry, body=body))
    return replace(module, entries={}), entries


def refusal(text: str) -> str:
    try:
        program(text)
    except Fp4refError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_program_is_the_same_with_any_blank_between_its_words(case: str) -> None:
    plain = program(case.replace("\0", ""))
    for blank in (" ", "\n", "\t", "\r\n", "/*;*/", "//}\n"):
        before, words, behind = case.split("\0")
        assert program(before + words.replace(" ", blank) + behind) == plain


def check(case: str, rng: random.Random, folder: Path) -> bool:
    """Compare one spelling with ptxas; return whether it is PTX."""
    text = spelt(case, rng)
    said, ours = complaint(text, folder), refusal(text)
    assert bool(ours) == bool(said), f"ptxas: {said!r}\nhere: {ours!r}\n{text}"
    if not said:
        assert program(text) == program(case.replace("\0", "")), text
    return not said


@pytest.mark.outside
@needs_ptxas
def test_a_spelling_is_read_as_ptxas_reads_it(
    rotating_seed: int, tmp_path: Path
) -> None:
    rng = random.Random(rotating_seed)
    verdicts = [check(rng.choice(CASES), rng, tmp_path) for _ in range(150)]
    assert 20 < sum(verdicts) < 145


@pytest.mark.soak
@pytest.mark.outside
@needs_ptxas
def test_many_spellings_are_read_as_ptxas_reads_them(
    rotating_seed: int, tmp_path: Path
) -> None:
    rng = random.Random(rotating_seed)
    for _ in range(5_000):
        check(rng.choice(CASES), rng, tmp_path)


WORDS = sorted(
    {w for x in BODIES for w in x.split(" ") if re.match(r"[a-z]\w*\.\w", w)}
)


@pytest.mark.parametrize("word", WORDS)
def test_a_name_of_several_words_has_no_space(word: str) -> None:
    case = next(c for c in CASES if f" {word} " in c.replace("\0", " "))
    for at in re.finditer(r"[.]", word):
        apart = f"{word[: at.start()]} {word[at.start() :]}"
        with pytest.raises(PtxError, match="a space inside"):
            program(case.replace("\0", " ").replace(f" {word} ", f" {apart} ", 1))


@pytest.mark.outside
@needs_ptxas
@pytest.mark.parametrize("word", WORDS)
def test_ptxas_has_no_space_there_either(word: str, tmp_path: Path) -> None:
    case = next(c for c in CASES if f" {word} " in c.replace("\0", " "))
    for at in re.finditer(r"[.]", word):
        apart = f"{word[: at.start()]} {word[at.start() :]}"
        text = case.replace("\0", " ").replace(f" {word} ", f" {apart} ", 1)
        assert complaint(text, tmp_path)


def test_the_kernel_of_the_package_with_other_blanks(rotating_seed: int) -> None:
    rng = random.Random(rotating_seed)
    text = re.sub(r"//[^\n]*", "", packaged("nvfp4.ptx"))
    blanks = [" ", "\n", "\t", "/*;*/", "//}\n"]
    # A file name keeps its blanks.
    other = re.sub(
        r'"[^"]*"|\s+',
        lambda m: m.group() if m.group()[0] == '"' else rng.choice(blanks),
        text,
    )
    (name, entry), *_ = parse(text).entries.items()
    found = parse(other).entries[name]
    assert [replace(x, line=0) for x in found.body] == [
        replace(x, line=0) for x in entry.body
    ]
    assert replace(found, body=[]) == replace(entry, body=[])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mov.u32 %r1,1;;", "expected an instruction, found ';'"),
        ("mov.u32 %r1,2,;", "expected an operand, found ';'"),
        (".reg.b32t;", "registers of type .b32t"),
        (".shared.align 16.b8 s[4];", "unexpected '16.b8'"),
        ("mov.u32 %r1,1x;", "expected ',' or ';', found 'x'"),
        ("mov. u32 %r1,1;", "unexpected '.'"),
        ("mov . u32 %r1,1;", "unexpected '.'"),
        ("ld.shared.u32 %r1,[%r2-4];", "write [base + -offset]"),
        ("ld.shared.v2.u32 {},[%r2];", "expected an operand, found '}'"),
        ("\f mov.u32 %r1,1;", r"unexpected '\x0c'"),
        ("mov.u32 %r1,\u00a01;", r"unexpected '\xa0'"),
    ],
)
def test_what_is_no_ptx_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(PtxError, match=rf"PTX line \d+: .*{re.escape(says)}"):
        parse(f"{HEADER}.entry k() {{{SCRATCH}{text}\n ret; }}")
