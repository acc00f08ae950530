"""mma_unscaled: ``tcgen05.mma`` of the kinds without scales, issued by one lane."""

from __future__ import annotations

from typing import cast

from fp4ref.hardware import mma_unscaled
from fp4ref.hardware.collector import Usage
from fp4ref.hardware.instr_descriptor import UnscaledKind
from fp4ref.ptx.run.operands import address_reader, items_of, reader
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Address, Instruction, Vector


@instruction(
    "tcgen05.mma",
    form=".cta_group::(?P<group>1|2).kind::(?P<kind>tf32|f16|f8f6f4)"
    "(.collector::a::(?P<collector>fill|use|lastuse|discard))?",
    operands=(5, 6, 7),
    writes=0,
    strict=True,
)
def mma(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tcgen05.mma`` with B in shared memory and A there or in TMEM.

    The vector before the predicate disables lanes of D. ``scale-input-d`` is refused.
    """
    lanes = each.operands[4] if len(each.operands) == 6 else Vector(())
    scales_d = len(each.operands) == 7 or not isinstance(lanes, Vector)
    if scales_d:
        raise Unknown("mma-scale-input-d")
    d = address_reader(context, each.operands[0], each)
    in_tmem = isinstance(each.operands[1], Address)
    a = (
        address_reader(context, each.operands[1], each)
        if in_tmem
        else reader(context, each.operands[1], "u64", each)
    )
    b = reader(context, each.operands[2], "u64", each)
    idesc = reader(context, each.operands[3], "u32", each)
    disabled = [reader(context, item, "u32", each) for item in items_of(lanes)]
    enable = reader(context, each.operands[-1], "pred", each)
    kind = cast("UnscaledKind", form["kind"])
    collector = cast("Usage", form["collector"] or "discard")

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        mma_unscaled.mma(
            state.warp,
            int(d(state)[lane]),
            int(a(state)[lane]),
            int(b(state)[lane]),
            int(idesc(state)[lane]),
            bool(enable(state)[lane]),
            kind=kind,
            a_in_tmem=in_tmem,
            disable_output_lanes=tuple(int(mask(state)[lane]) for mask in disabled),
            cta_group=int(form["group"]),
            collector=collector,
        )

    return act
