"""Modifiers may stand in any order that ptxas takes, and in no other."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from assembler import complaint, needs_ptxas
from on_lanes import HEADER, SCRATCH, lanes, machine

from fp4ref.errors import Fp4refError
from fp4ref.ptx import Program, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import find, translate
from fp4ref.ptx.text.statements import undivided

FLOATS = "    .reg .f32 %f<4>;\n    .reg .f64 %d<2>;\n"
STATEMENTS = """\
add.rn.ftz.f32 %f1, %f2, %f3;
mul.lo.s32 %r1, %r2, %r3;
mad.wide.u32 %rd1, %r1, %r2, %rd2;
fma.rn.ftz.f32 %f1, %f2, %f3, %f1;
max.ftz.NaN.f32 %f1, %f2, %f3;
setp.lt.and.ftz.f32 %p1, %f1, %f2, %p2;
cvt.rni.ftz.s32.f32 %r1, %f1;
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
cvt.f64.f32 %d1, %f1;
cvt.s64.s32 %rd1, %r1;
cvta.to.global.u64 %rd1, %rd2;
ld.acquire.gpu.global.v2.b32 {%r1, %r2}, [%rd1];
ld.volatile.shared.u32 %r1, [%r2];
st.release.gpu.global.u32 [%rd1], %r1;
atom.acq_rel.gpu.global.add.f32 %f1, [%rd1], %f2;
red.relaxed.gpu.global.max.s32 [%rd1], %r1;
shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;
vote.sync.ballot.b32 %r1, %p1, -1;
match.any.sync.b32 %r1, %r2, -1;
redux.sync.add.u32 %r1, %r2, -1;
shf.l.wrap.b32 %r1, %r2, %r3, %r4;
ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r1};
cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];
cp.async.bulk.wait_group.read 0;
mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1];
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2;
barrier.cluster.arrive.relaxed.aligned;
fence.acq_rel.cluster;
fence.proxy.async.shared::cta;
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd1;
mapa.shared::cluster.u32 %r1, %r2, %r3;
""".splitlines()


def shuffled(statement: str, rng: random.Random) -> str:
    """Put the words behind the first one, or the first ones, in another order."""
    opcode, blank, operands = statement.partition(" ")
    head = undivided(opcode.rstrip(";"))
    if rng.random() < 0.1:
        head = head.partition(".")[0]
    words = opcode.rstrip(";")[len(head) :].split(".")[1:]
    rng.shuffle(words)
    end = ";" if opcode.endswith(";") else ""
    return ".".join([head, *words]) + end + blank + operands


def text_of(statement: str) -> str:
    return f"{HEADER}.entry k ( ) {{{SCRATCH}{FLOATS} {statement} ret; }}"


def accepts(text: str) -> bool:
    try:
        translate(load(machine(), Program.of(parse(text)), b"", (32, 1, 1)))
    except Fp4refError:
        return False
    return True


def check(statement: str, rng: random.Random, folder: Path) -> bool:
    text = text_of(shuffled(statement, rng))
    said = complaint(text, folder)
    if "Arguments mismatch" in said:
        return False  # types in the other order: a form of other registers
    assert accepts(text) is not bool(said), f"ptxas: {said!r}\n{text}"
    return not said


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_order_of_the_manual_is_accepted(statement: str) -> None:
    assert accepts(text_of(statement))


@pytest.mark.outside
@needs_ptxas
def test_an_order_is_accepted_if_ptxas_takes_it(
    rotating_seed: int, tmp_path: Path
) -> None:
    rng = random.Random(rotating_seed)
    verdicts = [check(rng.choice(STATEMENTS), rng, tmp_path) for _ in range(40)]
    assert sum(verdicts) > 10


@pytest.mark.soak
@pytest.mark.outside
@needs_ptxas
def test_many_orders_are_accepted_if_ptxas_takes_them(
    rotating_seed: int, tmp_path: Path
) -> None:
    rng = random.Random(rotating_seed)
    for _ in range(50):
        for statement in STATEMENTS:
            check(statement, rng, tmp_path)


@pytest.mark.parametrize(
    ("opcode", "same"),
    [
        ("add.f32.ftz.rn", "add.rn.ftz.f32"),
        ("atom.global.gpu.acq_rel.add.f32", "atom.acq_rel.gpu.global.add.f32"),
        ("ldmatrix.aligned.x4.sync.m8n8.b16", "ldmatrix.sync.aligned.m8n8.x4.b16"),
    ],
)
def test_an_order_says_the_same_as_that_of_the_manual(opcode: str, same: str) -> None:
    assert find(opcode) == find(same)
    assert find(same)


@pytest.mark.parametrize("opcode", ["mul.s32.lo", "cp.async.cg.global.shared", "add."])
def test_an_order_that_says_something_else_is_no_form(opcode: str) -> None:
    assert find(opcode) is None


def test_types_keep_their_order() -> None:
    a = np.arange(32, dtype=np.int32) - 16
    found = lanes("cvt.s64.s32 %d, %a;", "i8", a=a)
    np.testing.assert_array_equal(found, a)
    assert find("cvt.s64.s32") != find("cvt.s32.s64")
