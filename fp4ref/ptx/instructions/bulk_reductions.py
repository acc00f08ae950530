"""bulk_reductions: ``cp.reduce.async.bulk``; each lane issues one.

Elements are combined as ``red`` does in global memory.
"""

from __future__ import annotations

import numpy as np

from fp4ref.hardware import bulk_reduction
from fp4ref.hardware.bulk_reduction import Reduction
from fp4ref.ptx.instructions.atomics import operations, register_type
from fp4ref.ptx.instructions.bulk_copies import check_count
from fp4ref.ptx.run.operands import address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import Instruction

_GLOBAL = "cp.reduce.async.bulk.global.shared::cta.bulk_group"
_SHARED = (
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
)
_HINT = "(?P<hint>.L2::cache_hint)?"


def _reduction(form: Form) -> Reduction:
    what, kind = form["what"], form["kind"]
    combine = operations(what, kind)["global"]
    return Reduction(
        f"{what}.{kind}",
        dtype_of(register_type(kind)),
        lambda old, new: combine(old, new, new),
    )


@instruction(
    _GLOBAL,
    form=f"{_HINT}.(?P<what>add).(?P<kind>u32|s32|u64|f32|f64)",
    operands=(3, 4),
    writes=0,
    strict=True,
)
@instruction(
    _GLOBAL,
    form=f"{_HINT}.(?P<what>add).noftz.(?P<kind>f16|bf16)",
    operands=(3, 4),
    writes=0,
    strict=True,
)
@instruction(
    _GLOBAL,
    form=f"{_HINT}.(?P<what>min|max).(?P<kind>[us](32|64)|f16|bf16)",
    operands=(3, 4),
    writes=0,
    strict=True,
)
@instruction(
    _GLOBAL,
    form=f"{_HINT}.(?P<what>inc|dec).(?P<kind>u32)",
    operands=(3, 4),
    writes=0,
    strict=True,
)
@instruction(
    _GLOBAL,
    form=f"{_HINT}.(?P<what>and|or|xor).(?P<kind>b32|b64)",
    operands=(3, 4),
    writes=0,
    strict=True,
)
def into_global(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a reduction into global memory; cache hints change no value."""
    check_count(each, 3 + bool(form["hint"]))
    reduction = _reduction(form)
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    size = reader(context, each.operands[2], "u32", each)

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            bulk_reduction.reduce_global(
                state.warp,
                reduction,
                int(dst(state)[lane]),
                int(src(state)[lane]),
                int(size(state)[lane]),
            )

    return act


@instruction(
    _SHARED,
    form=".(?P<what>add).(?P<kind>u32|s32|u64)",
    operands=4,
    writes=0,
    strict=True,
)
@instruction(
    _SHARED,
    form=".(?P<what>min|max).(?P<kind>[us]32)",
    operands=4,
    writes=0,
    strict=True,
)
@instruction(
    _SHARED, form=".(?P<what>inc|dec).(?P<kind>u32)", operands=4, writes=0, strict=True
)
@instruction(
    _SHARED,
    form=".(?P<what>and|or|xor).(?P<kind>b32)",
    operands=4,
    writes=0,
    strict=True,
)
def into_shared(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a reduction into the shared memory of a CTA of the cluster."""
    reduction = _reduction(form)
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    size = reader(context, each.operands[2], "u32", each)
    mbar = address_reader(context, each.operands[3], each)

    def act(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            bulk_reduction.reduce_shared(
                state.warp,
                reduction,
                int(dst(state)[lane]),
                int(src(state)[lane]),
                int(size(state)[lane]),
                int(mbar(state)[lane]),
            )

    return act
