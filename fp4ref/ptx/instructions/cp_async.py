"""cp_async: ``cp.async`` copies of each lane, their groups, and their arrivals.

Cache policies are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.hardware import cp_async
from fp4ref.ptx.run.operands import address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, Unknown, Wait, instruction
from fp4ref.ptx.run.spaces import shared_address
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import (
    Immediate,
    Instruction,
    Negated,
    PtxError,
    Register,
)

_SIZES = {"ca": (4, 8, 16), "cg": (16,)}


@instruction(
    "cp.async",
    form=".(?P<cache>ca|cg).shared(::cta)?.global(.L2::(64B|128B|256B))?",
    operands=(3, 4),
    writes=0,
    strict=True,
)
def copy(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async``; cache and prefetch hints change no value."""
    size = each.operands[2]
    if not isinstance(size, Immediate) or ".L2::cache_hint" in each.opcode:
        raise Unknown("ptx-cp-async")
    nbytes = size.value
    if nbytes not in _SIZES[form["cache"]]:
        raise PtxError(f"PTX line {each.line}: {each.opcode} of {nbytes} bytes")
    target, source = (address_reader(context, o, each) for o in each.operands[:2])
    reads = _source_nbytes(context, each)

    def act(state: WarpState) -> None:
        cp_async.copy(
            state.warp,
            [int(x) & 0xFFFFFFFF for x in target(state)[state.lanes]],
            [int(x) for x in source(state)[state.lanes]],
            nbytes,
            reads(state) if reads else None,
        )

    return act


def _source_nbytes(
    context: LaunchContext, each: Instruction
) -> Callable[[WarpState], list[int]] | None:
    """Return what gives src-size of each executing lane; None for a full copy.

    A lane whose predicate ignore-src is true reads nothing.
    """
    if len(each.operands) == 3:
        return None
    size, whole = each.operands[3], each.operands[2]
    if isinstance(size, Negated) or (
        isinstance(size, Register)
        and context.kinds[context.register(size, each)] == "pred"
    ):
        ignores = reader(context, size, "pred", each)
        nbytes = whole.value if isinstance(whole, Immediate) else 0
        return lambda s: [0 if x else nbytes for x in ignores(s)[s.lanes].tolist()]
    read = reader(context, size, "u32", each)

    def sizes(state: WarpState) -> list[int]:
        values = np.broadcast_to(read(state), LANES)
        return [int(x) for x in values[state.lanes]]

    return sizes


@instruction("cp.async.commit_group", operands=0, effect=True)
def commit_group(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.commit_group``."""
    return lambda state: cp_async.commit_group(state.warp)


@instruction("cp.async.wait_group", operands=1, writes=0, strict=True, blocks=True)
def wait_group(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.wait_group``."""
    pending = each.operands[0]
    if not isinstance(pending, Immediate):
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes an integer constant")
    count = pending.value
    return lambda state: cp_async.wait_group(state.warp, count)


@instruction("cp.async.wait_all", operands=0, blocks=True)
def wait_all(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.wait_all``."""

    def act(state: WarpState) -> Wait:
        yield from cp_async.wait_all(state.warp)

    return act


@instruction(
    "cp.async.mbarrier.arrive",
    form="(?P<noinc>.noinc)?(.(?P<space>shared(::cta)?))?.b64",
    operands=1,
    writes=0,
    strict=True,
)
def arrive(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.mbarrier.arrive``; each lane arrives once."""
    at = address_reader(context, each.operands[0], each)
    generic = not form["space"]
    operation = (
        cp_async.mbarrier_arrive_noinc if form["noinc"] else cp_async.mbarrier_arrive
    )

    def act(state: WarpState) -> None:
        mine = [shared_address(generic, int(x)) for x in at(state)[state.lanes]]
        for address in dict.fromkeys(mine):
            operation(state.warp, address, mine.count(address))

    return act
