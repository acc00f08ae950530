"""extended: integers of several words, by the carry flag of each lane.

``.cc`` writes the flag: the carry of a sum, the borrow of a difference. ``addc``,
``subc`` and ``madc`` take it as one more term. Source: PTX, Extended-precision integer
arithmetic instructions.
"""

from __future__ import annotations

import numpy as np

from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import Instruction

_KIND = ".(?P<kind>[su](32|64))"


@instruction("add", "sub", form=f"(?P<cc>.cc){_KIND}", operands=3)
@instruction("addc", "subc", form=f"(?P<cc>.cc)?{_KIND}", operands=3)
@instruction("mad", form=f".(?P<part>lo|hi)(?P<cc>.cc){_KIND}", operands=4)
@instruction("madc", form=f".(?P<part>lo|hi)(?P<cc>.cc)?{_KIND}", operands=4)
def with_carry(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a sum, a difference, or half a product and a term."""
    name, kind = form["name"], form["kind"]
    bits = int(kind[1:])
    reads = [reader(context, source, kind, each) for source in each.operands[1:]]
    put = writer(context, each.operands[0], kind, each)
    mask = (1 << bits) - 1
    shift = bits if form.get("part") == "hi" else 0

    def act(state: WarpState) -> None:
        taken = state.carry if name.endswith("c") else np.zeros(LANES, np.bool_)
        results = np.zeros(LANES, f"u{bits // 8}")
        carries = state.carry.copy()
        sources = [np.broadcast_to(read(state), LANES).tolist() for read in reads]
        for lane in np.flatnonzero(state.lanes):
            *first, last = (source[lane] for source in sources)
            if form.get("part"):
                first = [first[0] * first[1] >> shift]
            term, other = first[0] & mask, last & mask
            into = int(taken[lane])
            found = term - other - into if "sub" in name else term + other + into
            results[lane], carries[lane] = found & mask, not 0 <= found <= mask
        put(state, results.view(dtype_of(kind)))
        if form["cc"]:
            state.carry = carries

    return act
