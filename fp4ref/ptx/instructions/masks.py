"""masks: ``bmsk`` makes a field of bits, ``szext`` extends one, ``fns`` counts in one.

Source: PTX, bmsk; szext; fns.
"""

from __future__ import annotations

import numpy as np

from fp4ref.errors import HardwareFault
from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction

_MODE = ".(?P<mode>clamp|wrap)"


class BaseOutOfMask(HardwareFault):
    """``fns`` that begins at a bit that a mask of 32 bits does not have."""


@instruction("bmsk", form=f"{_MODE}.b32", operands=3)
def mask(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bmsk``: ones from bit `a` on, `b` of them."""
    clamp = form["mode"] == "clamp"

    def act(a: Lanes, b: Lanes) -> Lanes:
        first, count = (x.astype(np.uint64) for x in np.broadcast_arrays(a, b))
        if clamp:
            first, count = np.minimum(first, 32), np.minimum(count, 32)
        else:
            first, count = first & np.uint64(31), count & np.uint64(31)
        ones = (np.uint64(1) << count) - np.uint64(1)
        return (ones << first).astype(np.uint32)

    return elementwise(context, each, act, "b32")


@instruction("szext", form=f"{_MODE}.(?P<kind>[su]32)", operands=3)
def extend(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``szext``: the `b` lowest bits of `a`, extended by their sign or zeros."""
    clamp, signed = form["mode"] == "clamp", form["kind"] == "s32"

    def act(a: Lanes, b: Lanes) -> Lanes:
        count = np.minimum(b, 32) if clamp else b & np.uint32(31)
        # Shifts go by 64 bits, so that all 32 can go.
        up = np.uint64(64) - count.astype(np.uint64)
        shifted = np.where(count == 0, 0, a.astype(np.uint64) << (up & np.uint64(63)))
        if signed:
            down = shifted.astype(np.uint64).view(np.int64)
            found = down >> (up & np.uint64(63)).astype(np.int64)
        else:
            found = shifted.astype(np.uint64) >> (up & np.uint64(63))
        return found.astype(np.uint32)

    return elementwise(context, each, act, "b32")


@instruction("fns.b32", operands=4)
def nth_set(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``fns``: where the n-th one is, upwards or downwards from a bit on."""
    bits, base = (reader(context, o, "b32", each) for o in each.operands[1:3])
    number = reader(context, each.operands[3], "s32", each)
    put = writer(context, each.operands[0], "b32", each)

    def act(state: WarpState) -> None:
        found = np.full(LANES, 0xFFFFFFFF, np.uint32)
        for lane in np.flatnonzero(state.lanes).tolist():
            first, n = int(base(state)[lane]), int(number(state)[lane])
            if first > 31:
                raise BaseOutOfMask(
                    f"fns from bit {first} in lane {lane}",
                    who=state.warp.who,
                    where=state.at,
                    rule="beyond 31 the behaviour is undefined [PTX: fns]",
                    remedy="limit the base before",
                )
            ahead = range(first, 32) if n > 0 else range(first, -1, -1)
            ones = [at for at in ahead if int(bits(state)[lane]) >> at & 1]
            if n == 0:
                ones, n = [at for at in ones if at == first], 1
            if len(ones) >= abs(n):
                found[lane] = ones[abs(n) - 1]
        put(state, found)

    return act
