"""Straight-line code in one go computes what its instructions do one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from on_lanes import lanes

from fp4ref.ptx import executor
from fp4ref.ptx.run.stretches import Stretch

REGISTERS = 6
OPERATIONS = (
    "add.s32 {d}, {a}, {b};",
    "sub.s32 {d}, {a}, {b};",
    "xor.b32 {d}, {a}, {b};",
    "mul.lo.s32 {d}, {a}, {b};",
    "mad.lo.s32 {d}, {a}, {b}, {c};",
    "shl.b32 {d}, {a}, {i};",
    "shr.s32 {d}, {a}, {i};",
    "mov.b32 {d}, {a};",
    "mov.b32 {d}, {i};",
    "setp.lt.s32 {p}, {a}, {b};",
    "setp.gt.u32 {p}, {a}, {i};",
    "selp.b32 {d}, {a}, {b}, {p};",
    "selp.b32 {d}, {a}, {i}, {p};",
    "prmt.b32 {d}, {a}, {b}, 0x5140;",
    "cvt.u32.u16 {d}, {h};",
    "cvt.u16.u32 {h}, {a};",
)


def program(rng: random.Random, length: int) -> str:
    """Random code over a few registers, so that most instructions depend on others."""
    lines = ["mov.b32 %r1, %tid.x;", "mov.u16 %h1, 7;", "mov.u16 %h2, 9;"]
    lines += [f"add.s32 %r{i}, %r1, {i * 77};" for i in range(2, REGISTERS + 1)]
    lines += [f"setp.gt.u32 %p{i}, %r1, {i};" for i in range(3)]
    for _ in range(length):
        names = {x: f"%r{rng.randint(1, REGISTERS)}" for x in "abcd"}
        names |= {"i": str(rng.randint(0, 40)), "p": f"%p{rng.randint(0, 2)}"}
        names["h"] = f"%h{rng.randint(1, 2)}"
        # As a compiler's unrolled loop has them: several alike.
        kind = rng.choice(OPERATIONS)
        lines.append(kind.format(**names))
        if rng.random() < 0.5:
            names["d"] = f"%r{rng.randint(1, REGISTERS)}"
            lines.append(kind.format(**names))
    total = " ".join(f"xor.b32 %r1, %r1, %r{i};" for i in range(2, REGISTERS + 1))
    return "\n".join(lines) + total


def results(body: str, monkeypatch: pytest.MonkeyPatch, *, at_once: bool) -> list[int]:
    """Run it, in stretches or instruction by instruction."""
    with monkeypatch.context() as patch:
        if not at_once:
            patch.setattr(executor, "stretches", lambda context, steps: {})
        return list(map(int, lanes(body + "mov.b32 %d, %r1;", "u4")))


@pytest.mark.parametrize("part", range(8))
def test_a_stretch_gives_the_bits_of_its_instructions(
    part: int, rotating_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1000 * rotating_seed + part)
    body = program(rng, 60)
    together = results(body, monkeypatch, at_once=True)
    assert together == results(body, monkeypatch, at_once=False)


def test_some_lanes_only(rotating_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(rotating_seed)
    inner = program(rng, 40)
    body = (
        "mov.b32 %r9, %tid.x; setp.lt.u32 %p7, %r9, 11; mov.b32 %r1, 5;"
        f"@!%p7 bra DONE;\n{inner}\nDONE: add.s32 %r1, %r1, 1;"
    )
    together = results(body, monkeypatch, at_once=True)
    assert together == results(body, monkeypatch, at_once=False)
    assert together[11:] == [6] * 21


def test_what_is_not_defined_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stretch that needs a value that no one has written is left to its parts."""
    body = "mov.b32 %r1, %tid.x; add.s32 %r3, %r2, 1; add.s32 %r1, %r1, 2;"
    assert results(body, monkeypatch, at_once=True) == list(np.arange(32) + 2)
    stores = body.replace("%r1, %r1, 2", "%r1, %r3, 2")
    with pytest.raises(Exception, match="never written in lane 0"):
        lanes(stores + "mov.b32 %d, %r1;", "u4")


def test_copies_of_an_instruction_are_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[Stretch] = []
    take = Stretch.takes

    def takes(self: Stretch, *state: object) -> bool:
        found.append(self)
        return take(self, *state)  # type: ignore[arg-type]

    monkeypatch.setattr(Stretch, "takes", takes)
    many = " ".join(f"add.s32 %r{i}, %r1, %r2;" for i in range(3, 19))
    lanes(f"mov.b32 %r1, %tid.x; mov.b32 %r2, 3; {many} mov.b32 %d, %r18;", "u4")
    (behind_the_prologue,) = found
    assert behind_the_prologue.stop - 2 - len(behind_the_prologue.deeds) == 15
