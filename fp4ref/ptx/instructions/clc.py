"""clc: cluster launch control: ask for another cluster's work, and read the answer."""

from __future__ import annotations

import numpy as np

from fp4ref.hardware import clc
from fp4ref.ptx.run.operands import address_reader, items_of, writer
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.spaces import shared_address
from fp4ref.ptx.run.state import LaunchContext, WarpState, lanes_to_mask
from fp4ref.ptx.text.syntax import Instruction, PtxError


@instruction(
    "clusterlaunchcontrol.try_cancel.async",
    form="(?P<space>.shared::cta)?.mbarrier::complete_tx::bytes"
    "(?P<multicast>.multicast::cluster::all)?.b128",
    operands=2,
    writes=0,
    strict=True,
)
def try_cancel(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``clusterlaunchcontrol.try_cancel.async``."""
    response, mbar = (address_reader(context, o, each) for o in each.operands)
    generic = not form["space"]

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        clc.try_cancel(
            state.warp,
            shared_address(generic, int(response(state)[lane])),
            shared_address(generic, int(mbar(state)[lane])),
            bool(form["multicast"]),
        )

    return act


def _response(context: LaunchContext, each: Instruction) -> int:
    index = context.register(each.operands[1], each)
    if context.kinds[index] != "b128":
        raise PtxError(f"PTX line {each.line}: {each.opcode} needs a .b128 register")
    return index


@instruction("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", operands=2)
def is_canceled(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``query_cancel.is_canceled``."""
    put = writer(context, each.operands[0], "pred", each)
    index = _response(context, each)

    def act(state: WarpState) -> None:
        put(state, (state.registers[index][:, 1] & np.uint64(1)) != 0)

    return act


@instruction(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    form="(?P<axis>.v4|::x|::y|::z).b32.b128",
    operands=2,
    taints=True,
)
def get_first_ctaid(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``query_cancel.get_first_ctaid``, one component or ``v4``.

    Of an answer that canceled nothing the coordinates are undefined.
    """
    index = _response(context, each)
    items = items_of(each.operands[0])
    wanted = 4 if form["axis"] == ".v4" else 1
    if len(items) != wanted:
        raise PtxError(f"PTX line {each.line}: {each.opcode} fills {wanted} registers")
    first = 0 if wanted == 4 else "xyz".index(form["axis"][2])
    puts = [writer(context, o, "b32", each) for o in items]
    targets = [context.register(o, each) for o in items if o is not None]

    def act(state: WarpState) -> None:
        low, high = state.registers[index].T
        x = low.astype(np.uint32)
        yz = (low >> np.uint64(32)).astype(np.uint32)
        values = [x, yz & np.uint32(0xFFFF), yz >> np.uint32(16), x * np.uint32(0)]
        for put, value in zip(puts, values[first:], strict=False):
            put(state, value)
        canceled = lanes_to_mask(high & np.uint64(1) != 0) & state.defined[index]
        for target in targets:
            state.define(target, canceled)

    return act
