"""mbarriers: the ``mbarrier`` instructions, and when a test of one parks the warp.

A test in a spin loop suspends the warp until the phase is complete. Any other test is a
peek: sampled once for the warp, and the schedule may let it say false to a phase that
is complete.
"""

from __future__ import annotations

import numpy as np

from fp4ref.hardware import mbarrier
from fp4ref.hardware.mbarrier import Semantics
from fp4ref.hardware.mbarrier_unit import MbarrierState
from fp4ref.ptx.instructions.spin_loops import spins
from fp4ref.ptx.run.operands import Get, address_reader, reader, writer
from fp4ref.ptx.run.registry import Action, Form, Wait, instruction
from fp4ref.ptx.run.spaces import shared_address
from fp4ref.ptx.run.state import LANES, Lanes, LaunchContext, WarpState, lanes_to_mask
from fp4ref.ptx.text.syntax import Instruction, PtxError

_LOW_WORD = np.uint64(0xFFFF_FFFF)
_OWN = "(.(?P<space>shared(::cta)?))?.b64"
_ANY = "(.(?P<space>shared(::cta|::cluster)?))?.b64"
_ORDER = "(.(release|relaxed).(cta|cluster))?"


def _addresses(
    context: LaunchContext, each: Instruction, operand: int, form: Form
) -> Get:
    """Return a function that reads shared addresses, also from generic ones."""
    at = address_reader(context, each.operands[operand], each)
    generic = not form["space"]

    if not generic:
        return lambda state: at(state) & _LOW_WORD

    def read(state: WarpState) -> Lanes:
        addresses = at(state)
        found = np.zeros(LANES, np.uint64)
        for lane in np.flatnonzero(state.lanes):
            found[lane] = shared_address(True, int(addresses[lane]))
        return found

    return read


@instruction("mbarrier.init", form=_OWN, operands=2, writes=0, strict=True)
def init(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.init``."""
    at = _addresses(context, each, 0, form)
    count = reader(context, each.operands[1], "u32", each)

    def act(state: WarpState) -> None:
        lane = state.one_lane(each.opcode)
        mbarrier.init(state.warp, int(at(state)[lane]), int(count(state)[lane]))

    return act


@instruction("mbarrier.inval", form=_OWN, operands=1, writes=0, strict=True)
def inval(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.inval``."""
    at = _addresses(context, each, 0, form)
    return lambda s: mbarrier.inval(s.warp, int(at(s)[s.one_lane(each.opcode)]))


@instruction(
    "mbarrier.arrive",
    form=f"(?P<expects>.expect_tx)?{_ORDER}{_ANY}",
    operands=(2, 3),
    strict=True,
)
def arrive(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.arrive`` and ``arrive.expect_tx``; each lane arrives once.

    The state that it returns is that before all of its lanes.
    """
    returns = each.operands[0] is not None
    expects = bool(form["expects"])
    if returns and "cluster" in form["space"]:
        raise PtxError(f"PTX line {each.line}: a remote arrival returns no state")
    if expects and len(each.operands) < 3:
        raise PtxError(f"PTX line {each.line}: {each.opcode} without a byte count")
    put = writer(context, each.operands[0], "b64", each)
    at = _addresses(context, each, 1, form)
    amount = (
        reader(context, each.operands[2], "u32", each)
        if len(each.operands) > 2
        else lambda state: _ONES
    )

    semantics = _semantics(each)

    def act(state: WarpState) -> None:
        addresses, amounts = at(state), amount(state)
        actor = state.warp.actor
        words = np.zeros(LANES, np.uint64)
        # Lanes that arrive on one mbarrier do so together.
        for address in dict.fromkeys(addresses[state.lanes].tolist()):
            mine = state.lanes & (addresses == address)
            actor.active = lanes_to_mask(mine)
            if returns:
                words[mine] = _state(state, address)
            if expects:
                nbytes = amounts[mine].tolist()
                mbarrier.arrive_expect_tx(
                    state.warp, address, *nbytes, semantics=semantics
                )
            else:
                total = int(amounts[mine].sum(dtype=np.uint64))
                mbarrier.arrive(state.warp, address, total, semantics)
        actor.active = state.mask
        put(state, words)

    return act


def _semantics(each: Instruction) -> Semantics:
    """``.sem`` and ``.scope`` of an arrival or a wait."""
    words = each.opcode.split(".")
    scope = next((word for word in ("cta", "cluster") if word in words), "")
    return Semantics("relaxed" in words, scope)


_ONES = np.ones(LANES, np.uint32)

_RETURNED = (1 << 64) - (1 << 43)
"""Phase and pending count; PTX leaves the other bits of a state open."""


def _state(state: WarpState, address: int) -> int:
    cta, at = state.warp.cta.resolve_shared(address)
    return cta.mbarriers.load(at).encode() & _RETURNED


@instruction(
    "mbarrier.expect_tx",
    "mbarrier.complete_tx",
    form=f"(.relaxed.(cta|cluster))?{_ANY}",
    operands=2,
    writes=0,
    strict=True,
)
def transaction(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.expect_tx`` and ``complete_tx``; each lane does it once."""
    at = _addresses(context, each, 0, form)
    amount = reader(context, each.operands[1], "u32", each)
    expects = form["name"] == "mbarrier.expect_tx"
    operation = mbarrier.expect_tx if expects else mbarrier.complete_tx

    def act(state: WarpState) -> None:
        addresses, amounts = at(state), amount(state)
        for lane in np.flatnonzero(state.lanes):
            operation(state.warp, int(addresses[lane]), int(amounts[lane]))

    return act


@instruction(
    "mbarrier.test_wait",
    "mbarrier.try_wait",
    form=f"(?P<parity>.parity)?(.(acquire|relaxed).(cta|cluster))?{_OWN}",
    operands=(3, 4),
    strict=True,
    blocks=True,
    effect=False,
)
def wait(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.test_wait`` and ``try_wait``, by parity or by state.

    The time hint of ``try_wait`` has no meaning here.
    """
    put = writer(context, each.operands[0], "pred", each)
    at = _addresses(context, each, 1, form)
    kind = "u32" if form["parity"] else "u64"
    phase = reader(context, each.operands[2], kind, each)
    parks = spins(context.program, each)
    semantics = _semantics(each)

    def act(state: WarpState) -> Wait:
        address = state.uniform(at(state), "the mbarrier address")
        wanted = phase(state)
        if not form["parity"]:
            wanted = wanted >> np.uint64(63)
        parity = state.uniform(wanted, "the phase")
        # A second visit with nothing done since the first is a spin loop too, in a
        # shape that was not seen in the program text.
        place = (state.pc, address, parity)
        if parks or state.polled == place:
            yield from mbarrier.try_wait(state.warp, address, parity, semantics)
            done = True
        else:
            done = mbarrier.test_wait(state.warp, address, parity, semantics)
            if state.insist and not done:
                unit = state.warp.cta.mbarriers
                done = unit.has_completed(address & 0xFFFFFF, parity)
                if done:
                    mbarrier.acquire(state.warp, address, semantics)
        state.polled = None if done else place
        put(state, np.full(LANES, done))

    return act


@instruction("mbarrier.pending_count.b64", operands=2)
def pending_count(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``mbarrier.pending_count`` of a state that an arrival returned."""
    read = reader(context, each.operands[1], "b64", each)
    put = writer(context, each.operands[0], "u32", each)

    def act(state: WarpState) -> None:
        counts = [MbarrierState.decode(int(word)).pending for word in read(state)]
        put(state, np.array(counts, np.uint32))

    return act
