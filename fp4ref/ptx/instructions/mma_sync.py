"""mma_sync: ``mma.sync.m16n8k16`` of f16 and bf16 with float32 accumulators.

The 32 lanes hold the operands in fragments: lane t has rows ``t // 4`` and the eighth
after it, and columns ``2 * (t % 4)`` and the next. The arithmetic is that of
``tcgen05.mma.kind::f16``: MMA-Sim has one model for both, and an H200's ``mma.sync``
agrees with it. Source: PTX, mma.m16n8k16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4ref.numerics.elements import ElementFormat
from fp4ref.numerics.instruction import mma_unscaled
from fp4ref.ptx.run.operands import items_of, reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

_M, _N, _K = 16, 8, 16
_LANE = np.arange(LANES)[:, None]
_PAIR = 2 * (_LANE % 4)

_OF_A = (
    _LANE // 4 + 8 * (np.arange(8) // 2 % 2),
    _PAIR + np.arange(8) % 2 + 8 * (np.arange(8) // 4),
)
"""Row and column of each element of A that a lane holds, two in a register."""

_OF_B = (
    _LANE // 4 + 0 * np.arange(4),
    _PAIR + np.arange(4) % 2 + 8 * (np.arange(4) // 2),
)
"""Column of B and place along K of each of its elements."""

_OF_D = (_LANE // 4 + 8 * (np.arange(4) // 2), _PAIR + np.arange(4) % 2)
"""Row and column of each element of C and D, one in a register."""


@instruction(
    "mma.sync",
    form=".aligned.m16n8k16.row.col.f32.(?P<element>f16.f16|bf16.bf16).f32",
    operands=4,
    strict=True,
)
def mma(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mma.sync.aligned.m16n8k16``, which the whole warp executes."""
    vectors = [items_of(operand) for operand in each.operands]
    if [len(items) for items in vectors] != [4, 4, 2, 4]:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} takes vectors of 4, 4, 2 and 4 "
            "registers"
        )
    puts = [writer(context, item, "f32", each) for item in vectors[0]]
    a, b, c = ([reader(context, o, "b32", each) for o in x] for x in vectors[1:])
    element = ElementFormat(form["element"].partition(".")[0])

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        of_a = np.zeros((_M, _K), np.uint16)
        of_b = np.zeros((_N, _K), np.uint16)
        of_c = np.zeros((_M, _N), np.uint32)
        of_a[_OF_A] = _joined([read(state) for read in a]).view(np.uint16)
        of_b[_OF_B] = _joined([read(state) for read in b]).view(np.uint16)
        of_c[_OF_D] = _joined([read(state) for read in c])
        found = mma_unscaled(
            of_a, of_b, of_c.view(np.float32), a_format=element, b_format=element
        )
        for i, put in enumerate(puts):
            put(state, np.ascontiguousarray(found[_OF_D][:, i]))
        state.warp.record("mma.sync", {"shape": "m16n8k16", "element": element.value})

    return act


def _joined(registers: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Return registers side by side, shape (lanes, registers)."""
    return np.ascontiguousarray(np.stack(registers, axis=1))
