"""bulk_copies: copies of bytes in a row, and their prefetch; each lane issues one.

Reductions are in `bulk_reductions`.
"""

from __future__ import annotations

import numpy as np

from fp4ref.hardware import bulk_copy
from fp4ref.ptx.run.operands import address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError

_HINT = "(?P<hint>.L2::cache_hint)?"


def check_count(each: Instruction, count: int) -> None:
    """Raise `PtxError` unless there are so many operands."""
    if len(each.operands) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes {count} operands")


@instruction(
    "cp.async.bulk",
    form=".shared::(cluster|cta).global.mbarrier::complete_tx::bytes"
    f"(?P<multicast>.multicast::cluster)?{_HINT}",
    operands=(4, 5, 6),
    writes=0,
    strict=True,
)
def load(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a bulk load; cache hints change no value."""
    check_count(each, 4 + bool(form["multicast"]) + bool(form["hint"]))
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    size = reader(context, each.operands[2], "u32", each)
    mbar = address_reader(context, each.operands[3], each)
    mask = reader(context, each.operands[4], "u16", each) if form["multicast"] else None

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            bulk_copy.load(
                state.warp,
                int(src(state)[lane]),
                int(dst(state)[lane]),
                int(size(state)[lane]),
                int(mbar(state)[lane]),
                int(mask(state)[lane]) if mask else None,
            )

    return act


@instruction(
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
    operands=4,
    writes=0,
    strict=True,
)
def copy(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a copy into the shared memory of a CTA of the cluster."""
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    size = reader(context, each.operands[2], "u32", each)
    mbar = address_reader(context, each.operands[3], each)

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            bulk_copy.copy(
                state.warp,
                int(dst(state)[lane]),
                int(src(state)[lane]),
                int(size(state)[lane]),
                int(mbar(state)[lane]),
            )

    return act


@instruction(
    "cp.async.bulk.global.shared::cta.bulk_group",
    form=f"{_HINT}(?P<mask>.cp_mask)?",
    operands=(3, 4, 5),
    writes=0,
    strict=True,
)
def store(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a bulk store; the mask of bytes is the last operand."""
    check_count(each, 3 + bool(form["hint"]) + bool(form["mask"]))
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    size = reader(context, each.operands[2], "u32", each)
    mask = reader(context, each.operands[-1], "u16", each) if form["mask"] else None

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            bulk_copy.store(
                state.warp,
                int(dst(state)[lane]),
                int(src(state)[lane]),
                int(size(state)[lane]),
                int(mask(state)[lane]) if mask else None,
            )

    return act


@instruction(
    "cp.async.bulk.prefetch.L2.global",
    form=_HINT,
    operands=(2, 3),
    writes=0,
    strict=True,
    effect=False,
)
def prefetch(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a prefetch into L2, which no value depends on."""
    check_count(each, 2 + bool(form["hint"]))
    address_reader(context, each.operands[0], each)
    return lambda state: None
