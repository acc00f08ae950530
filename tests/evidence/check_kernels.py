"""check_kernels: small kernels written by hand, right and wrong, and their launches.

Nothing in them comes from this project's kernel. The pairs are in
``tests/data/check_kernels.toml``; `VARIANTS` are more right ones.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fp4ref.evidence.check import Launch, launch_arrays, tensor_map

DATA = Path(__file__).parents[1] / "data" / "check_kernels.toml"
WORDS = 256
"""Of the buffer."""

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(
    .param .u64 .ptr .global .align 16 out,
    .param .align 64 .b8 map[128]
)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<64>;
    .reg .f32 %f<16>;
    .reg .b64 %rd<32>;
    .shared .align 1024 .b8 data[4096];
    .shared .align 8 .b64 bar[4];
    .shared .align 4 .b32 taddr;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 5;
    and.b32 %r2, %r0, 31;
    setp.eq.u32 %p0, %r0, 0;
    mov.u32 %r3, data;
    mov.u32 %r4, bar;
    mov.u32 %r7, taddr;
    shl.b32 %r5, %r0, 2;
    add.u32 %r6, %r3, %r5;
    mov.b64 %rd5, map;
    cvta.param.u64 %rd5, %rd5;
    mov.u32 %r20, 0;
"""


@dataclass(frozen=True)
class Case:
    """A pair of kernels, as in the data file.

    Attributes
    ----------
    finding
        What the wrong one is called.
    out
        What the right one leaves in the first words of its buffer; empty if nothing is
        asked.
    """

    name: str
    lines: str
    finding: str = ""
    threads: int = 64
    grid: int = 1
    cluster: int = 1
    out: tuple[int, ...] = ()

    def text(self, wrong: bool = False) -> str:
        body = []
        for line in self.lines.splitlines():
            parts = line.split("||")
            part = parts[-1 if wrong else 0].rstrip()
            if part.strip():
                body.append(part if wrong else part.replace("//!", ""))
        return HEAD + "\n".join(body) + "\n    ret;\n}\n"

    def line(self) -> int:
        """Line of the wrong text that has the mark."""
        lines = self.text(True).splitlines()
        (found,) = [i for i, line in enumerate(lines, 1) if "//!" in line]
        return found

    def launch(self, wrong: bool = False) -> Launch:
        out = np.zeros(WORDS, np.uint32)
        want = np.zeros(WORDS, np.uint32)
        want[: len(self.out)] = self.out
        return launch_arrays(
            self.text(wrong),
            (self.grid,),
            [out, tensor_map(out, "uint32", [WORDS], [], [64])],
            block=(self.threads,),
            cluster=(self.cluster,),
            expected={0: want} if self.out else None,
        )


def _read() -> dict[str, Case]:
    rows = tomllib.loads(DATA.read_text())["pair"]
    found = [Case(**row | {"out": tuple(row.get("out", ()))}) for row in rows]
    return {each.name: each for each in found}


PAIRS = _read()
"""Each a mistake, and beside it the same kernel without it."""

STORE = """
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r9;
"""


def _value(name: str, lines: str, out: np.ndarray, threads: int = 64) -> Case:
    """A kernel whose thread t leaves %r9 in word t."""
    values = tuple(int(x) for x in out.astype(np.uint32))
    return Case(name, lines + STORE, threads=threads, out=values)


T = np.arange(64, dtype=np.uint32)
_SWAP = "shfl.sync.bfly.b32 %r9, %r0, {n}, 31, -1;"
_REDUCED = """
    st.shared.u32 [%r6], %r0;
    bar.sync 0;
    mov.u32 %r10, {half};
FOLD:
    setp.ge.u32 %p1, %r0, %r10;
    shl.b32 %r11, %r10, 2;
    add.u32 %r12, %r6, %r11;
    @!%p1 ld.shared.u32 %r13, [%r12];
    @!%p1 ld.shared.u32 %r14, [%r6];
    @!%p1 add.u32 %r14, %r14, %r13;
    @!%p1 st.shared.u32 [%r6], %r14;
    bar.sync 0;
    shr.u32 %r10, %r10, 1;
    setp.ne.u32 %p2, %r10, 0;
    @%p2 bra FOLD;
    ld.shared.u32 %r9, [%r3];
"""

VARIANTS = {
    each.name: each
    for each in (
        _value("its own number", "mov.u32 %r9, %r0;", T),
        _value("a square", "mul.lo.u32 %r9, %r0, %r0;", T * T),
        _value("a quotient", "div.u32 %r9, %r0, 7;", T // 7),
        _value("a remainder", "rem.u32 %r9, %r0, 7;", T % 7),
        _value("a difference", "sub.u32 %r9, %r20, %r0;", -T.astype(np.int64)),
        _value("bits counted", "popc.b32 %r9, %r0;", np.bitwise_count(T)),
        _value(
            "a choice",
            "setp.lt.u32 %p1, %r0, 9; selp.u32 %r9, 1, 2, %p1;",
            2 - (T < 9).astype(np.int64),
        ),
        *(
            _value(f"lanes {n} apart", _SWAP.format(n=n), T ^ n)
            for n in (1, 2, 8, 16, 31)
        ),
        _value("votes", "vote.sync.ballot.b32 %r9, %p0, -1;", (T < 32).astype("u4")),
        _value(
            "a loop",
            "mov.u32 %r9, 0;\nL: add.u32 %r9, %r9, 3;\nsetp.lt.u32 %p1, %r9, 30;\n"
            "@%p1 bra L;",
            T * 0 + 30,
        ),
        _value(
            "a branch",
            "mov.u32 %r9, 4;\nsetp.lt.u32 %p1, %r2, 5;\n@%p1 bra B;\n"
            "mov.u32 %r9, 6;\nB:",
            np.where(T % 32 < 5, 4, 6),
        ),
        *(
            _value(
                f"a sum of {n}",
                _REDUCED.format(half=n // 2),
                np.full(n, n * (n - 1) // 2),
                n,
            )
            for n in (64, 128)
        ),
        _value(
            "an atomic count",
            "@%p0 st.shared.u32 [%r3], 0;\nbar.sync 0;\n"
            "red.shared.add.u32 [%r3], 1;\nbar.sync 0;\nld.shared.u32 %r9, [%r3];",
            T * 0 + 64,
        ),
        _value(
            "a float",
            "cvt.rn.f32.u32 %f1, %r0; mul.rn.f32 %f1, %f1, 0f3F000000;\n"
            "mov.b32 %r9, %f1;",
            (T.astype(np.float32) / 2).view(np.uint32),
        ),
        _value(
            "two named barriers",
            "st.shared.u32 [%r6], %r0;\nbar.sync 1, 64;\nbar.sync 2, 64;\n"
            "xor.b32 %r8, %r5, 128;\nadd.u32 %r8, %r8, %r3;\nld.shared.u32 %r9, [%r8];",
            T ^ 32,
        ),
    )
}
"""More right ones."""
