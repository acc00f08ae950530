"""dot_products: ``dp4a``, four products of bytes, and ``dp2a``, two of 16 and 8 bits.

Source: PTX, dp4a; dp2a.
"""

from __future__ import annotations

import numpy as np

from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.run.taint import Undefined, follow
from fp4ref.ptx.text.syntax import Instruction


@instruction("dp4a", form=".(?P<a>[su])32.(?P<b>[su])32", operands=4)
def dot_of_bytes(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``dp4a``: four products of bytes, each side signed or not, and `c`."""
    sides = [
        (reader(context, operand, "b32", each), np.int8 if sign == "s" else np.uint8)
        for operand, sign in zip(each.operands[1:3], form["a"] + form["b"], strict=True)
    ]
    c = reader(context, each.operands[3], "s32", each)
    put = writer(context, each.operands[0], "s32", each)

    def act(state: WarpState) -> None:
        a, b = (
            read(state).view(kind).reshape(LANES, 4).astype(np.int32)
            for read, kind in sides
        )
        put(state, (a * b).sum(axis=1, dtype=np.int32) + c(state))

    return act


@instruction(
    "dp2a",
    form=".(?P<half>lo|hi).(?P<a>[su])32.(?P<b>[su])32",
    operands=4,
    taints=True,
)
def dot_of_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``dp2a``: both halves of `a` times two bytes of `b`, and `c`.

    nvcc leaves the two bytes that are not read without a value.
    """
    a, b, c = (reader(context, o, "b32", each) for o in each.operands[1:])
    put = writer(context, each.operands[0], "b32", each)
    halves = np.int16 if form["a"] == "s" else np.uint16
    octets = np.int8 if form["b"] == "s" else np.uint8
    first = 0 if form["half"] == "lo" else 2

    def move(state: WarpState, undefined: list[Undefined]) -> list[Undefined]:
        of_a, of_b, of_c = undefined
        used = np.concatenate((of_a, of_b[:, first : first + 2], of_c), axis=1)
        return [np.repeat(used.any(axis=1, keepdims=True), 4, axis=1)]

    taint = follow(context, each.operands[1:], each.operands[:1], move, 4)

    def act(state: WarpState) -> None:
        define = taint(state)
        wide = a(state).view(halves).reshape(LANES, 2).astype(np.int64)
        narrow = b(state).view(octets).reshape(LANES, 4)[:, first : first + 2]
        total = (wide * narrow).sum(axis=1) + c(state)
        put(state, total.astype(np.uint32))
        define(state)

    return act
