"""conversion_stochastic: ``cvt.rs``, which rounds by random bits that it is given.

What the bits do is in `fp4ref.numerics.stochastic`. Source: PTX, cvt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.numerics.elements import element
from fp4ref.numerics.stochastic import encode_stochastic, random_fields
from fp4ref.ptx.instructions.conversion_packed import limited
from fp4ref.ptx.instructions.rounding import NARROW
from fp4ref.ptx.run.operands import items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, Operand, PtxError

_RELU, _FINITE = "(?P<relu>.relu)?", "(?P<finite>.satfinite)?"


@instruction("cvt.rs", form=f"{_RELU}{_FINITE}.(?P<to>f16|bf16)x2.f32", operands=4)
def to_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build two float32 to two halves; the first source is the upper one."""
    to = form["to"]

    def code(x: Lanes, random: Lanes) -> Lanes:
        return limited(encode_stochastic(x, random, to), NARROW[to], form)

    return _packed(context, each, each.operands[1:3], to, code)


@instruction(
    "cvt.rs",
    form=f"{_RELU}.satfinite.(?P<to>e2m1|e2m3|e3m2|e4m3|e5m2)x4.f32",
    operands=3,
)
def to_small(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build four float32 to four small floats; the first is the uppermost."""
    to = form["to"]
    sources = items_of(each.operands[1])
    if len(sources) != 4:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} takes four sources in braces"
        )

    def code(x: Lanes, random: Lanes) -> Lanes:
        found: Lanes = encode_stochastic(x, random, to)
        if form["relu"]:
            found = np.where(found & np.uint8(element(to).sign), np.uint8(0), found)
        return found

    return _packed(context, each, sources, to, code)


def _packed(
    context: LaunchContext,
    each: Instruction,
    sources: tuple[Operand | None, ...],
    to: str,
    code: Callable[[Lanes, Lanes], Lanes],
) -> Action:
    """Round each source by its random bits; the last source is the lowest field."""
    reads = [reader(context, source, "f32", each) for source in sources]
    random = reader(context, each.operands[-1], "b32", each)
    width = max(element(to).bits, 4 if to == "e2m1" else 8)
    kind = f"b{width * len(sources)}"
    put = writer(context, each.operands[0], kind, each)

    def convert(state: WarpState) -> None:
        word = np.zeros(32, np.uint32)
        for read, bits in zip(reads, random_fields(random(state), to), strict=True):
            word = word << np.uint32(width) | code(read(state), bits)
        put(state, word.astype(f"u{width * len(sources) // 8}"))

    return convert
