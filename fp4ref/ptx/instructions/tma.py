"""tma: tensor copies, bulk groups and tensor-map prefetches.

One lane issues a load. Compiled kernels let all lanes execute a store with equal
operands: the instruction is one per warp in SASS, and one operation here.
"""

from __future__ import annotations

from fp4ref.errors import ClusterFault
from fp4ref.hardware import tma
from fp4ref.ptx.instructions.tensormaps import prefetched_map, tensor_map
from fp4ref.ptx.run.operands import Get, address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Address, Instruction, PtxError


def _tensor_operand(
    context: LaunchContext, each: Instruction, operand: int, form: Form
) -> tuple[Get, list[Get]]:
    """``[map, {coordinates}]``."""
    found = each.operands[operand]
    rank = int(form["rank"])
    if (
        not isinstance(found, Address)
        or found.coords is None
        or len(found.coords.items) != rank
    ):
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} needs [map, {{{rank} coordinates}}]"
        )
    at = address_reader(context, Address(found.base, found.offset), each)
    return at, [reader(context, c, "s32", each) for c in found.coords.items]


def _check_count(each: Instruction, count: int) -> None:
    if len(each.operands) != count:
        raise PtxError(f"PTX line {each.line}: {each.opcode} takes {count} operands")


@instruction(
    "cp.async.bulk.tensor",
    form=".(?P<rank>[1-5])d(.cta_group::(?P<early>[12]))?"
    ".shared::(?P<space>cluster|cta).global(.tile)?"
    ".mbarrier::complete_tx::bytes(?P<multicast>.multicast::cluster)?"
    "(.cta_group::(?P<group>[12]))?(?P<hint>.L2::cache_hint)?"
    "(.cta_group::(?P<late>[12]))?",
    operands=(3, 4, 5),
    writes=0,
    strict=True,
)
def load(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a tensor load; ``.cta_group::1`` says what is so without it.

    CUTLASS writes the group before the state spaces, CuTe DSL at the end; ptxas takes
    both.
    """
    _check_count(each, 3 + bool(form["multicast"]) + bool(form["hint"]))
    dst = address_reader(context, each.operands[0], each)
    at, coords = _tensor_operand(context, each, 1, form)
    mbar = address_reader(context, each.operands[2], each)
    mask = reader(context, each.operands[3], "u16", each) if form["multicast"] else None
    group = int(form["early"] or form["group"] or form["late"] or 1)

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        if form["space"] == "cta":
            for operand in (dst, mbar):
                _check_own(state, each.opcode, int(operand(state)[lane]))
        tma.load(
            state.warp,
            tensor_map(state, int(at(state)[lane]), each.opcode),
            [int(c(state)[lane]) for c in coords],
            int(dst(state)[lane]),
            int(mbar(state)[lane]),
            int(mask(state)[lane]) if mask else None,
            group,
        )

    return act


def _check_own(state: WarpState, opcode: str, address: int) -> None:
    """Raise `ClusterFault` for a ``.shared::cta`` operand in another CTA."""
    cta, offset = state.warp.cta.resolve_shared(address)
    if cta is not state.warp.cta:
        raise ClusterFault(
            f"{opcode} with shared address {address:#x}, which is in cta {cta.ctaid}",
            who=state.warp.who,
            where=cta.smem.describe(offset),
            rule="with .shared::cta both tile and mbarrier are in the executing CTA; a "
            "remote mbarrier is not signalled [PTX: cp.async.bulk.tensor]",
            remedy="write .shared::cluster",
        )


@instruction(
    "cp.async.bulk.tensor",
    form=".(?P<rank>[1-5])d.global.shared::cta(.tile)?.bulk_group"
    "(?P<hint>.L2::cache_hint)?",
    operands=(2, 3),
    writes=0,
    strict=True,
)
def store(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a tensor store."""
    _check_count(each, 2 + bool(form["hint"]))
    at, coords = _tensor_operand(context, each, 0, form)
    src = address_reader(context, each.operands[1], each)

    def act(state: WarpState) -> None:
        tma.store(
            state.warp,
            tensor_map(state, state.uniform(at(state), "the tensor map"), each.opcode),
            [state.uniform(c(state), "a coordinate") for c in coords],
            state.uniform(src(state), "the source"),
        )

    return act


@instruction(
    "cp.async.bulk.prefetch.tensor",
    form=".(?P<rank>[1-5])d.L2.global(.tile)?(?P<hint>.L2::cache_hint)?",
    operands=(1, 2),
    writes=0,
    strict=True,
    effect=False,
)
def prefetch(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build a tensor prefetch into L2, which no value depends on."""
    _check_count(each, 1 + bool(form["hint"]))
    _tensor_operand(context, each, 0, form)
    return lambda state: None


@instruction("cp.async.bulk.commit_group", operands=0, effect=True)
def commit_group(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.bulk.commit_group``."""
    return lambda state: tma.commit_group(state.warp)


@instruction(
    "cp.async.bulk.wait_group",
    form="(?P<read>.read)?",
    operands=1,
    writes=0,
    strict=True,
    blocks=True,
)
def wait_group(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``cp.async.bulk.wait_group`` and ``.read``."""
    pending = reader(context, each.operands[0], "u32", each)
    read = bool(form["read"])
    return lambda s: tma.wait_group(s.warp, s.uniform(pending(s), "the count"), read)


@instruction(
    "prefetch",
    form="(?P<space>.param|.const)?.tensormap",
    operands=1,
    writes=0,
    strict=True,
)
def prefetch_tensormap(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``prefetch.tensormap``."""
    at = address_reader(context, each.operands[0], each)
    if form["space"]:
        return lambda state: None
    return lambda s: tma.prefetch_tensormap(
        s.warp, prefetched_map(s, s.uniform(at(s), "the tensor map"), each.opcode)
    )
