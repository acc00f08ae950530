"""What Hopper gave where the executor once had other bits, inputs and outputs.

Measured on 2026-11-28, see docs/measured.md. A row is inputs, then the card's result.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import lanes

SHARED = (
    ".shared .align 4 .b8 tile[4096]; mov.u32 %r1, tile;"
    "mad.lo.u32 %r1, %tid32, 4, %r1; st.shared.b32 [%r1], %a;"
)
GENERIC = "cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;"
ATOMIC_SUMS = [
    (0x80000001, 0x00000000, 0x80000001), (0x00000002, 0x80000000, 0x00000002),
    (0x80400001, 0x00000003, 0x803FFFFE), (0x80800000, 0x00000002, 0x807FFFFE),
    (0x807FFFFF, 0x807FFFFF, 0x80FFFFFE), (0x80000002, 0x01000002, 0x01000001),
    (0x01000000, 0x81000001, 0x80000002), (0x007FFFFD, 0x00000004, 0x00800001),
    (0x00FFFFFD, 0x80FFFFFC, 0x00000001), (0x80000003, 0x00800001, 0x007FFFFE),
]  # fmt: skip
ALL_ONES = {16: 0xFFFF, 32: 0xFFFFFFFF, 64: 0xFFFFFFFFFFFFFFFF}

CARD: dict[str, list[tuple[int, ...]]] = {
    "mul.ftz.f32 %d, %a, %b;": [
        (0x3F7FFFFF, 0x00800000, 0), (0xBF7FFFFF, 0x00800000, 0x80000000),
        (0x3F000000, 0x00FFFFFF, 0), (0x01000000, 0xBEFFFFFF, 0x80000000),
        (0x3EFFFFFE, 0x01000001, 0x00800000), (0x3F800000, 0x00800000, 0x00800000),
    ],
    "fma.rn.ftz.f32 %d, %a, %b, %c;": [
        (0xBF7FFFFF, 0x00800000, 0x80000000, 0x80000000),
        (0x01000000, 0x3EFFFFFF, 0x00000001, 0),
        (0x01000001, 0x3EFFFFFD, 0x80FFFFFF, 0x80000000),
        (0x80800000, 0xBF7FFFFF, 0x00000004, 0),
    ],
    "div.rn.ftz.f32 %d, %a, %b;": [
        (0x3F7FFFFF, 0x7E800000, 0), (0x80FFFFFF, 0x40000000, 0x80000000),
        (0x80FFFFFF, 0xC0000000, 0), (0x00FFFFFF, 0xC0000000, 0x80000000),
    ],
    f"{SHARED} atom.shared.add.f32 %r2, [%r1], %b; ld.shared.b32 %d, [%r1];":
        ATOMIC_SUMS,
    f"{SHARED} red.shared.add.f32 [%r1], %b; ld.shared.b32 %d, [%r1];": ATOMIC_SUMS,
    f"{SHARED} red.shared::cluster.add.f32 [%r1], %b; ld.shared.b32 %d, [%r1];":
        ATOMIC_SUMS,
    f"{SHARED} {GENERIC} atom.add.f32 %r2, [%rd1], %b; ld.shared.b32 %d, [%r1];":
        ATOMIC_SUMS,
    "cvt.f64.f32 %d, %a;": [
        (0x7FC12345, 0x7FF82468A0000000), (0x7F800001, 0x7FF8000020000000),
        (0xFF800001, 0xFFF8000020000000), (0x7FA00000, 0x7FFC000000000000),
        (0xFFFFFFFF, 0xFFFFFFFFE0000000), (0xFFC00000, 0xFFF8000000000000),
    ],
    "cvt.f32.bf16 %d, %a;": [
        (0x7FC1, 0x7FC10000), (0x7FA0, 0x7FA00000), (0xFFFF, 0xFFFF0000),
        (0xFFC0, 0xFFC00000), (0x7F95, 0x7F950000), (0xFF96, 0xFF960000),
    ],
    "cvt.f32.f32 %d, %a;": [
        (0x7F800001, 0x7F800001), (0x7FD7012A, 0x7FD7012A), (0xFFFFFFFD, 0xFFFFFFFD),
    ],
    "bfe.u64 %d, %a, %b, %c;": [
        (0x2000000000, 0x1, 0x100, 0x1000000000), (0x700000000, 0x100, 0x40, 0),
        (0xF, 0x2, 0x8000, 0x3), (0x7F00000000, 0x10, 0x80000000, 0x7F0000),
        (0x7FFFFFFFFFFFFFFF, 0x101, 0x55555555, 0), (0xFF, 0x100, 0xFF00FF, 0),
        (0xFFFFFFFFFFFFFF80, 0x1F, 0x10000, 0x1FFFFFFFF),
    ],
    "bfe.s64 %d, %a, %b, %c;": [
        (0xFFFFFFFE, 0xF, 0x80000001, 0x1FFFF), (0xF, 0x80000000, 0x40, 0),
        (0xAAAAAAAA00000000, 0x80000001, 0x40, 0xFFFFFFFFFFFFFFFF),
        (0xFFFFFFFFFFFFFFFE, 0xFFFF8000, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
        (0x1F, 0xFFFF8000, 0x2, 0), (0x7, 0x1, 0x80000001, 0x3),
    ],
    "bfi.b64 %d, %a, %b, %c, %e;": [
        (0x1000000000000, 0xAAAAAAAA, 0x80000000, 0x55555555, 0xAAAAAAAA),
        (0xAAAAAAAA00000000, 0x41, 0x7, 0x8001, 0x5555550000000041),
        (0x300000000, 0x7, 0x101, 0x1, 0x7), (0x0, 0x1, 0x100, 0x101, 0x1),
        (0x200000000, 0xFF, 0x7, 0x100, 0x1000000007F),
        (0x7F, 0xFFFFFFFF00000001, 0x8, 0x80000000, 0x7F01),
    ],
    **{
        f"{name}.{kind} %d, %a, %b;": [
            (a % (1 << int(kind[1:])), 0, ALL_ONES[int(kind[1:])])
            for a in (0, 1, 0x7FFF, 0xFFFF8000, 0x8000000000000000)
        ]
        for name in ("div", "rem")
        for kind in ("s16", "u16", "s32", "u32", "s64", "u64")
    },
}  # fmt: skip


def widths(text: str) -> tuple[list[str], str]:
    """NumPy types of a body's inputs and of its result."""
    opcode = text.split(" %d,")[0].split(";")[-1].strip()
    if opcode.startswith("cvt"):
        _, result, source = opcode.split(".")
        return [{"bf16": "u2"}.get(source, "u4")], {"f64": "u8"}.get(result, "u4")
    last = f"u{int(opcode.split('.')[-1][1:]) // 8}"
    if opcode.startswith("bf"):
        return [last] * (2 if "bfi" in opcode else 1) + ["u4", "u4"], last
    return [last] * 3, last


@pytest.mark.parametrize("text", CARD, ids=lambda text: text.replace(SHARED, ""))
def test_the_executor_gives_the_bits_of_the_card(text: str) -> None:
    rows = CARD[text]
    types, result = widths(text)
    *columns, want = zip(*rows, strict=True)
    sources = {
        name: np.array(column, dtype)
        for name, column, dtype in zip("abce", columns, types, strict=False)
    }
    assert lanes(text, result, **sources).tolist() == list(want)
