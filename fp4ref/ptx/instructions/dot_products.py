"""dot_products: ``dp2a``, two products of 16 and 8 bits; ``dp4a`` is in `integer`.

Source: PTX, dp2a.
"""

from __future__ import annotations

import numpy as np

from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction


@instruction("dp2a", form=".(?P<half>lo|hi).(?P<a>[su])32.(?P<b>[su])32", operands=4)
def dot_of_halves(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``dp2a``: both halves of `a` times two bytes of `b`, and `c`."""
    a, b, c = (reader(context, o, "b32", each) for o in each.operands[1:])
    put = writer(context, each.operands[0], "b32", each)
    halves = np.int16 if form["a"] == "s" else np.uint16
    octets = np.int8 if form["b"] == "s" else np.uint8
    first = 0 if form["half"] == "lo" else 2

    def act(state: WarpState) -> None:
        wide = a(state).view(halves).reshape(LANES, 2).astype(np.int64)
        narrow = b(state).view(octets).reshape(LANES, 4)[:, first : first + 2]
        total = (wide * narrow).sum(axis=1) + c(state)
        put(state, total.astype(np.uint32))

    return act
