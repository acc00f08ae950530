"""mma_unscaled: ``tcgen05.mma`` of the kinds without scales, issued by one lane."""

from __future__ import annotations

from typing import cast

from fp4ref.hardware import mma_unscaled
from fp4ref.hardware.collector import Usage
from fp4ref.hardware.instr_descriptor import UnscaledKind
from fp4ref.ptx.run.operands import address_reader, items_of, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import (
    Address,
    Immediate,
    Instruction,
    Operand,
    PtxError,
    Vector,
)


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

    The vector before the predicate disables lanes of D; a number after it divides D.
    """
    rest = list(each.operands[4:])
    lanes = rest.pop(0) if isinstance(rest[0], Vector) else Vector(())
    if len(rest) not in (1, 2):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} with {len(each.operands)} operands"
        )
    scale = _scale_of(each, rest[1]) if len(rest) > 1 else 0
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
    enable = reader(context, rest[0], "pred", each)
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
            scale_input_d=scale,
            cta_group=int(form["group"]),
            collector=collector,
        )

    return act


def _scale_of(each: Instruction, operand: Operand | None) -> int:
    """Return ``scale-input-d``, which is written as a number."""
    if not isinstance(operand, Immediate) or not 0 <= operand.value <= 15:
        raise PtxError(
            f"PTX line {each.line}: scale-input-d of {each.opcode} is a number from "
            "0 to 15"
        )
    return int(operand.value)
