"""barriers: CTA, warp and cluster barriers, fences, and dependent launch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fp4ref.errors import ClusterFault
from fp4ref.hardware import clc, cluster, mbarrier, named_barrier, smem
from fp4ref.hardware.cta_barriers import Ballot
from fp4ref.ptx.run.operands import reader, writer
from fp4ref.ptx.run.registry import Action, Form, Wait, instruction
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState, dtype_of
from fp4ref.ptx.text.syntax import Instruction


@instruction(
    "bar",
    form="(.cta)?.sync",
    operands=(1, 2),
    writes=0,
    strict=True,
    blocks=True,
)
@instruction(
    "barrier",
    form="(.cta)?.sync(.aligned)?",
    operands=(1, 2),
    writes=0,
    strict=True,
    blocks=True,
)
def sync(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bar.sync``; without a count, every thread of the CTA that still runs."""
    barrier = reader(context, each.operands[0], "u32", each)
    count = (
        reader(context, each.operands[1], "u32", each)
        if len(each.operands) > 1
        else None
    )

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        threads = state.uniform(count(state), "the count") if count else None
        yield from named_barrier.sync(
            state.warp, state.uniform(barrier(state), "the barrier"), threads
        )

    return act


@instruction(
    "bar",
    form="(.cta)?.red.(?P<what>popc.u32|(and|or).pred)",
    operands=(3, 4),
    strict=True,
    blocks=True,
)
@instruction(
    "barrier",
    form="(.cta)?.red.(?P<what>(popc(.aligned)?.u32|(and|or)(.aligned)?.pred))",
    operands=(3, 4),
    strict=True,
    blocks=True,
)
def reduce(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bar.red``: ``bar.sync`` that tells all threads what they vote."""
    target, at, *counted, predicate = each.operands
    what, kind = form["what"].split(".")[0], form["what"].split(".")[-1]
    barrier = reader(context, at, "u32", each)
    count = reader(context, counted[0], "u32", each) if counted else None
    vote = reader(context, predicate, "pred", each)
    put = writer(context, target, kind, each)
    results: dict[str, Callable[[Ballot], int]] = {
        "popc": lambda ballot: ballot.true,
        "and": lambda ballot: ballot.true == ballot.threads,
        "or": lambda ballot: ballot.true > 0,
    }

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        threads = state.uniform(count(state), "the count") if count else None
        found = yield from named_barrier.reduce(
            state.warp,
            what,
            state.uniform(barrier(state), "the barrier"),
            vote(state)[state.lanes].tolist(),
            threads,
        )
        put(state, np.full(LANES, results[what](found), dtype_of(kind)))

    return act


@instruction("bar", form="(.cta)?.arrive", operands=2, writes=0, strict=True)
@instruction(
    "barrier", form="(.cta)?.arrive(.aligned)?", operands=2, writes=0, strict=True
)
def arrive(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bar.arrive``."""
    barrier, count = (reader(context, o, "u32", each) for o in each.operands)

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        named_barrier.arrive(
            state.warp,
            state.uniform(barrier(state), "the barrier"),
            state.uniform(count(state), "the count"),
        )

    return act


@instruction("bar.warp.sync", operands=1, writes=0, strict=True, effect=False)
def warp_sync(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``bar.warp.sync``: the members run together here."""
    members = reader(context, each.operands[0], "u32", each)

    def act(state: WarpState) -> None:
        masks = members(state)
        state.members(masks, each.opcode)
        warp = state.warp
        for mask in {int(m) for m in masks[state.lanes]}:
            warp.machine.order.meet(warp.actor, mask & state.mask)

    return act


@instruction(
    "barrier.cluster.arrive",
    form="(.(?P<order>release|relaxed))?(.aligned)?",
    operands=0,
    writes=0,
    strict=True,
)
def cluster_arrive(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``barrier.cluster.arrive``."""

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        state.cluster_round = cluster.arrive(state.warp, form["order"] == "relaxed")

    return act


@instruction(
    "barrier.cluster.wait", form="(.acquire)?(.aligned)?", operands=0, blocks=True
)
def cluster_wait(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``barrier.cluster.wait``."""

    def act(state: WarpState) -> Wait:
        state.whole_warp(each.opcode)
        if state.cluster_round < 0:
            raise ClusterFault(
                "barrier.cluster.wait without an arrive before",
                who=state.warp.who,
                where=state.at,
                rule="every wait follows an arrive [PTX: barrier.cluster]",
                remedy="execute barrier.cluster.arrive first",
            )
        yield from cluster.wait(state.warp, state.cluster_round)
        state.cluster_round = -1

    return act


@instruction(
    "fence.proxy.async",
    form="(.(?P<space>global|shared::cta|shared::cluster))?",
    operands=0,
    effect=True,
)
def fence_proxy_async(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``fence.proxy.async``; one for global memory leaves shared memory open."""
    space = form["space"] or "generic"
    return lambda state: smem.fence_proxy_async(state.warp, space)


@instruction("fence.mbarrier_init.release.cluster", operands=0, effect=True)
def fence_mbarrier_init(
    context: LaunchContext, each: Instruction, form: Form
) -> Action:
    """Build ``fence.mbarrier_init``."""
    return lambda state: mbarrier.fence_mbarrier_init(state.warp)


@instruction(
    "fence",
    form="(.(?P<order>sc|acq_rel|acquire|release))?"
    "(.sync_restrict::shared::(cta|cluster))?.(?P<scope>cta|cluster|gpu|sys)",
    operands=0,
)
@instruction("membar", form=".(?P<scope>cta|gl|sys)(?P<order>)", operands=0)
def fence(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build fences between threads: they change no value, but order accesses."""
    order = form["order"]
    scope = {"gl": "gpu"}.get(form["scope"], form["scope"])
    return lambda s: s.warp.machine.order.fence(s.warp.actor, order, scope)


@instruction("griddepcontrol.wait", operands=0, blocks=True)
def griddepcontrol_wait(
    context: LaunchContext, each: Instruction, form: Form
) -> Action:
    """Build ``griddepcontrol.wait``."""
    return lambda state: clc.griddepcontrol_wait(state.warp)


@instruction("griddepcontrol.launch_dependents", operands=0, effect=True)
def griddepcontrol_launch(
    context: LaunchContext, each: Instruction, form: Form
) -> Action:
    """Build ``griddepcontrol.launch_dependents``."""
    return lambda state: clc.griddepcontrol_launch_dependents(state.warp)


@instruction("setmaxnreg", form=".(inc|dec).sync.aligned.u32", operands=1, writes=0)
def set_registers(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``setmaxnreg``: how many registers a warp may use changes no value."""
    return lambda state: state.whole_warp(each.opcode)
