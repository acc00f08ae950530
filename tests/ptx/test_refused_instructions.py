"""Instructions in the list of gaps are PTX, are refused by name, and are all there are.

ptxas is the judge of what is PTX.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest
from assembler import complaint, needs_ptxas, ptxas
from on_lanes import machine

from fp4ref.errors import NotModelled
from fp4ref.gaps import GAPS, Gap, covering
from fp4ref.ptx import Program, PtxError, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import ENTRIES, find, translate

REGISTERS = (
    ".reg .b8 %b<8>; .reg .b16 %h<9>; .reg .b32 %r<16>; .reg .b64 %rd<16>; "
    ".reg .b128 %q<4>; .reg .f32 %f<12>; .reg .f64 %d<8>; .reg .pred %p<8>;"
)
EXAMPLES = [(gap, example) for gap in GAPS for example in gap.examples]


def module(*lines: str, target: str = "sm_100a") -> str:
    """A kernel with one instruction on each line from the sixth on."""
    body = "\n".join(lines)
    return (
        f".version 9.0\n.target {target}\n.address_size 64\n"
        ".func helper() { ret; }\n"
        f".entry k() {{ {REGISTERS} L: targets: .branchtargets L; "
        f"proto: .callprototype _ ();\n{body}\nret; }}\n"
    )


def refused(text: str) -> NotModelled:
    with pytest.raises(NotModelled) as caught:
        translate(load(machine(), Program.of(parse(text)), b"", (32, 1, 1)))
    return caught.value


@pytest.mark.parametrize(
    ("gap", "example"), EXAMPLES, ids=[" ".join(x.split()) for _, x in EXAMPLES]
)
def test_an_example_is_refused_by_name_and_names_its_row(
    gap: Gap, example: str
) -> None:
    error = refused(module(example, target=gap.target))
    assert error.gap == gap.id
    opcode = re.escape(example.split()[0].rstrip(";"))
    assert re.search(rf"{opcode}[ \w]* \(line 6\): {gap.id}", str(error))


@pytest.mark.outside
@needs_ptxas
@pytest.mark.parametrize("target", sorted({gap.target for gap in GAPS}))
def test_the_examples_are_ptx(target: str, tmp_path: Path) -> None:
    for pair in (False, True):  # a kernel keeps to one kind of cta_group
        examples = [
            example
            for gap, example in EXAMPLES
            if gap.target == target and pair is ("cta_group::2" in example)
        ]
        assert complaint(module(*examples, target=target), tmp_path, target) == ""
        assert complaint(module(*examples, "nop;", target=target), tmp_path, target)


def speaks(pattern: str, opcode: str) -> bool:
    head, *modifiers = pattern.split()
    words = opcode.split(".")
    count = len(head.split("."))
    return ".".join(words[:count]) == head and {m[1:] for m in modifiers} <= {*words}


@pytest.mark.parametrize(
    "gap", [gap for gap in GAPS if gap.examples], ids=lambda g: g.id
)
def test_each_opcode_of_a_row_has_an_example(gap: Gap) -> None:
    opcodes = [example.split()[0].rstrip(";") for example in gap.examples]
    for pattern in gap.opcodes:
        assert any(speaks(pattern, opcode) for opcode in opcodes), pattern


INSTRUCTIONS = """
add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe
bfi szext bmsk dp4a dp2a add.cc addc sub.cc subc mad.lo.cc madc testp copysign fma rcp
rcp.approx.ftz.f64 sqrt rsqrt rsqrt.approx.ftz.f64 sin cos lg2 ex2 tanh add.f16
sub.f16 mul.f16 fma.rn.f16 neg.f16 abs.f16 min.f16 max.f16 tanh.approx.f16
ex2.approx.f16 add.f32.f16 sub.f32.f16 fma.rn.f32.f16 add.rn.f32x2 set setp selp slct
set.lt.f16.f16 setp.lt.f16 and or xor not cnot lop3 shf shl shr mov mov.v4 shfl.sync
prmt ld ld.global.nc ldu st st.async st.bulk multimem.ld_reduce multimem.st
multimem.red prefetch prefetchu applypriority discard createpolicy isspacep cvta cvt
cvt.pack mapa getctarank cp.async cp.async.commit_group cp.async.wait_group
cp.async.wait_all cp.async.bulk cp.reduce.async.bulk cp.async.bulk.prefetch
cp.async.bulk.tensor cp.reduce.async.bulk.tensor cp.async.bulk.prefetch.tensor
cp.async.bulk.commit_group cp.async.bulk.wait_group tensormap.replace tex tld4 txq
istypep suld sust sured suq bra brx.idx call ret exit bar barrier bar.warp.sync
barrier.cluster membar fence fence.proxy atom red red.async vote.sync match.any.sync
match.all.sync activemask redux.sync griddepcontrol elect.sync mbarrier.init
mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive
mbarrier.arrive_drop cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait
mbarrier.pending_count tensormap.cp_fenceproxy clusterlaunchcontrol.try_cancel
clusterlaunchcontrol.query_cancel wmma.load wmma.store wmma.mma mma mma.sp ldmatrix
stmatrix movmatrix wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group
wgmma.wait_group tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit
tcgen05.ld tcgen05.ld.red tcgen05.st tcgen05.wait::ld tcgen05.wait::st tcgen05.cp
tcgen05.shift tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.mma.ws.sp
tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync tcgen05.commit
stacksave stackrestore alloca vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2
vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4
vset4 brkpt nanosleep pmevent trap setmaxnreg
"""
"""Of PTX 9.0, as its chapters order them: integers, carry, floats, comparison, logic,
movement, textures, control flow, barriers, matrices, tcgen05, stack, video, rest."""


def registered(name: str) -> bool:
    """Whether the executor has a form of the instruction."""
    words = name.split(".")
    for entry in ENTRIES.get(words[0], ()):
        first = re.match(r"\(\?P<name>([^)]*)\)", entry.opcode.pattern)
        assert first
        for other in first[1].replace("\\", "").split("|"):
            theirs = other.split(".")
            most = min(len(words), len(theirs))
            if words[:most] == theirs[:most]:
                return True
    return False


def test_every_instruction_of_ptx_is_executed_or_in_the_list() -> None:
    names = INSTRUCTIONS.split()
    assert len(names) == len(set(names)) > 200
    assert not [x for x in names if not registered(x) and not covering(x)]


@pytest.mark.parametrize("text", ["nop;", "MOV.b32 %r1, 1;", "bra.always L;"])
def test_a_word_that_is_no_instruction_is_an_error_of_the_text(text: str) -> None:
    program = Program.of(parse(module(text)))
    context = load(machine(), program, b"", (32, 1, 1))
    opcode = re.escape(text.split()[0].rstrip(";"))
    with pytest.raises(PtxError, match=rf"PTX line 6: {opcode} is no "):
        translate(context)


# Families of which the executor has every form, so that no row speaks for them:
# modifiers before the type, in PTX's order, and the operands.
TYPES = {
    **{f"{k}{n}": r for n, r in ((8, "%b"), (16, "%h"), (32, "%r"), (64, "%rd"))
       for k in "bsu"},
    "pred": "%p", "b128": "%q", "f16": "%h", "bf16": "%h", "f16x2": "%r",
    "bf16x2": "%r", "u16x2": "%r", "s16x2": "%r", "f32": "%f", "f64": "%d",
    "f32x2": "%rd", "tf32": "%r",
}  # fmt: skip
_COMPARE = [f"{c}{u}" for c in ("eq", "ne", "lt", "le", "gt", "ge") for u in ("", "u")]
_COMPARE += ["lo", "ls", "hi", "hs", "num", "nan"]
_TWO, _THREE = "{}1, {}2;", "{}1, {}2, {}3;"
COMPLETE: dict[str, tuple[list[list[str]], str]] = {
    "not": ([], _TWO), "brev": ([], _TWO), "popc": ([], "%r1, {}2;"),
    "clz": ([], "%r1, {}2;"), "and": ([], _THREE), "or": ([], _THREE),
    "xor": ([], _THREE), "rem": ([], _THREE), "shl": ([], "{}1, {}2, %r3;"),
    "shr": ([], "{}1, {}2, %r3;"), "bfe": ([], "{}1, {}2, %r3, %r4;"),
    "bfi": ([], "{}1, {}2, %r3, %r4, %r5;"), "selp": ([], "{}1, {}2, {}3, %p1;"),
    "activemask": ([], "{}1;"), "nanosleep": ([], "{}1;"),
    "abs": ([["", "ftz"]], _TWO), "neg": ([["", "ftz"]], _TWO),
    "shf": ([["l", "r"], ["wrap", "clamp"]], "{}1, {}2, {}3, %r4;"),
    "shfl.sync": ([["up", "down", "bfly", "idx"]], "{}1, {}2, 0, 31, -1;"),
    "vote.sync": ([["all", "any", "uni", "ballot"]], "{}1, %p2, -1;"),
    "match": ([["any", "all"], ["sync"]], "%r1, {}2, -1;"),
    "setmaxnreg": ([["inc", "dec"], ["sync"], ["aligned"]], "64;"),
    "setp": ([_COMPARE, ["", "ftz"]], "%p1, {}2, {}3;"),
}  # fmt: skip


@pytest.mark.outside
@needs_ptxas
def test_of_a_family_without_a_row_every_form_of_ptx_is_executed(
    tmp_path: Path,
) -> None:
    lines = []
    for name, (groups, operands) in COMPLETE.items():
        for choice in itertools.product(*groups, TYPES):
            opcode = ".".join([name, *filter(None, choice)])
            lines.append(f"{opcode} {operands.replace('{}', TYPES[choice[-1]])}")
    source = tmp_path / "module.ptx"
    source.write_text(module(*lines))
    command = [
        str(ptxas()),
        "-arch=sm_100a",
        "-o",
        str(tmp_path / "cubin"),
        str(source),
    ]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert "Parsing error" not in said
    wrong = {int(line) - 6 for line in re.findall(r"line (\d+); error", said)}
    right = [line for i, line in enumerate(lines) if i not in wrong]
    assert 120 < len(right) < len(lines) // 2
    for line in right:
        opcode = line.split()[0]
        # Signed counts of registers, and arithmetic of narrow floats and float64, which
        # have their rows, are what is left.
        if find(opcode) is None:
            assert covering(opcode) or opcode.endswith("aligned.s32"), line
