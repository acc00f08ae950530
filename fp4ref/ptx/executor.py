"""executor: run the warps of a compiled kernel on the machine.

A warp executes one instruction at a time for all its active lanes. When a branch splits
them, each side runs in turn until both meet at the immediate post-dominator, or until
it blocks (`fp4ref.ptx.run.divergence`). A warp suspends where the hardware would block
it, and in a loop that only another warp can end; the machine's schedule does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

import numpy as np

import fp4ref.ptx.instructions  # noqa: F401  registers them
from fp4ref.errors import HardwareFault
from fp4ref.hardware.advisory import Advisory
from fp4ref.hardware.grid import check_pairs
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Blocked, Body, Cta, Role, Warp
from fp4ref.ptx.instructions.tcgen05 import settle
from fp4ref.ptx.run.branches import branch, branch_by_index
from fp4ref.ptx.run.calls import call_of, enter, leave
from fp4ref.ptx.run.divergence import (
    Held,
    Path,
    all_waits,
    promote,
    require_no_effect,
    written_until,
)
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.loops import Loops
from fp4ref.ptx.run.registry import Step, Wait, translate
from fp4ref.ptx.run.state import (
    LANES,
    LaunchContext,
    WarpState,
    lanes_to_mask,
    mask_to_lanes,
)
from fp4ref.ptx.run.stretches import Stretch, stretches
from fp4ref.ptx.text.program import Program
from fp4ref.trace import Dim3


def launch(
    machine: Machine,
    program: Program,
    grid: Dim3,
    block: Dim3,
    params: bytes,
    *,
    cluster: Dim3 = (1, 1, 1),
    preferred: Dim3 | None = None,
    nonportable: bool = False,
    smem_nbytes: int = 0,
    only: Iterable[Dim3] | None = None,
    on_turn: Callable[[], None] | None = None,
) -> list[str]:
    """Run a compiled kernel to its end.

    Parameters
    ----------
    params
        The kernel's parameter block, laid out as the entry declares.
    cluster, preferred, nonportable
        As of `fp4ref.hardware.machine.Machine.launch`.
    smem_nbytes
        Dynamic shared memory.
    on_turn
        Called at every branch backwards; it may raise to end an endless loop.

    Returns
    -------
    list of str
        What the kernel printed.

    Raises
    ------
    NotModelled
        Some instruction is not modelled: all of them are listed, nothing has run.
    InputError
        Parameters or block do not fit the entry.
    LaunchFault
        The kernel has instructions for CTA pairs, and a cluster has an odd CTA.
    HardwareFault
        The kernel did something wrong.
    """
    context = load(machine, program, params, block, smem_nbytes)
    context.on_turn = on_turn
    steps = translate(context)
    for step, each in zip(steps, program.instructions, strict=True):
        if step.flow == "call":
            step.call = call_of(context, each)
    found = stretches(context, steps)
    _check_pairs(program, cluster)
    threads = block[0] * block[1] * block[2]

    def kernel(cta: Cta) -> Sequence[Role]:
        role = _role(context, steps, found, threads)
        return [role] * -(-threads // LANES)

    total = context.static_nbytes + context.dynamic_nbytes
    # Around all warps: inside one it would leak into the others at every yield.
    with np.errstate(all="ignore"):
        machine.launch(
            kernel,
            grid,
            cluster=cluster,
            preferred=preferred,
            nonportable=nonportable,
            smem_nbytes=total,
            only=only,
        )
    return context.output


def _check_pairs(program: Program, cluster: Dim3) -> None:
    """Raise `LaunchFault` for instructions of CTA pairs in clusters of odd size."""
    for each in program.instructions:
        if ".cta_group::2" in each.opcode:
            check_pairs(cluster, each.opcode, f"PTX line {each.line}")


def _role(
    context: LaunchContext,
    steps: Sequence[Step],
    found: Mapping[int, Stretch],
    threads: int,
) -> Role:
    def role(warp: Warp) -> Body:
        live = min(LANES, threads - LANES * warp.index)
        return _located(WarpState(warp, context, (1 << live) - 1), steps, found)

    return role


def _located(
    state: WarpState, steps: Sequence[Step], found: Mapping[int, Stretch]
) -> Body:
    """Execute until every lane has exited; a fault learns at which statement."""
    try:
        yield from _run(state, steps, found)
    except HardwareFault as fault:
        fault.statement = fault.statement or state.statement
        raise


def _run(state: WarpState, steps: Sequence[Step], found: Mapping[int, Stretch]) -> Body:
    """Execute until every lane has exited."""
    context = state.context
    end = len(steps)
    paths = [Path(0, state.live, end, None)]
    loops = Loops(state)
    while paths:
        path = paths[-1]
        if path.held is not None:
            if path.held.ready():
                _resume(state, path, path.held)
            elif not promote(paths):
                yield all_waits(paths)
            continue
        pc = path.pc
        if path.mask == 0 or pc == path.meet or pc >= end:
            paths.pop()
            if path.into is not None:
                path.into.mask |= path.mask
                _forget(state, path)
            continue
        stretch = found.get(pc) if path.unset is None else None
        if stretch is not None and stretch.takes(state, path.mask):
            _activate(state, path.mask)
            _execute(state, stretch, loops)
            path.pc = stretch.stop
            continue
        step = steps[pc]
        _locate(state, pc, step.line)
        mask, unset = path.mask, False
        if step.guard >= 0:
            mask, unset = _guarded(state, step, path)
        _activate(state, mask)
        if step.flow:
            written = written_until(steps, pc, step.meet) if unset else path.unset
            if _flow(state, step, path, paths, loops, written):
                yield from _blocks(state, paths, loops.wait(), None)
            continue
        path.pc = pc + 1
        if not state.mask:
            continue
        if state.pending:
            settle(state, step)
        if step.must_be_defined:
            state.check_defined(step.must_be_defined, state.mask)
        if step.effect:
            require_no_effect(state, step, path)
            context.changes += 1
            loops.reset()
        result = step.act(state)
        if step.blocks and result is not None:
            done = yield from _blocks(state, paths, result, step)
            if not done:
                continue
        if step.defines:
            _define(state, step)


def _execute(state: WarpState, stretch: Stretch, loops: Loops) -> None:
    """Execute a stretch in the active lanes."""
    is_watched = state.is_watched
    for act, position, line, effect in stretch.deeds:
        state.pc, state.line = position, line
        if is_watched:
            state.warp.kernel_source = state.statement
        if effect:
            state.context.changes += 1
            loops.reset()
        act(state)


def _locate(state: WarpState, pc: int, line: int) -> None:
    """Say where the warp is."""
    state.pc, state.line = pc, line
    if state.is_watched:
        state.warp.kernel_source = state.statement


def _blocks(
    state: WarpState, paths: list[Path], body: Wait, step: Step | None
) -> Generator[Blocked, None, bool]:
    """Execute what may block, of the whole warp or of one path; True at its end."""
    if len(paths) == 1:
        yield from body
        return True
    held = Held(body, step, state)
    if held.advance():
        return True
    paths[-1].held = held
    return False


def _resume(state: WarpState, path: Path, held: Held) -> None:
    """Let a path go on in what it was blocked in."""
    if held.resume():
        path.held = None
        if held.step is not None and held.step.defines:
            _define(state, held.step)


def _flow(
    state: WarpState,
    step: Step,
    path: Path,
    paths: list[Path],
    loops: Loops,
    unset: frozenset[int] | None,
) -> bool:
    """Branch, call or exit; True if the warp goes round a loop that should wait."""
    if step.flow not in ("bra", "brx.idx"):
        require_no_effect(state, step, path)
        if step.flow == "call":
            if state.pending:
                settle(state, step)
            assert step.call is not None
            enter(state, step.call, path, paths)
            return False
        if step.flow == "ret" and leave(state, path):
            path.pc += 1
            return False
        path.mask &= ~state.mask
        state.live &= ~state.mask
        state.warp.actor.lanes = state.live
        path.pc += 1
        return False
    going_back, active = state.mask and step.target <= path.pc, path.mask
    if going_back and state.context.on_turn:
        state.context.on_turn()
    if step.flow == "bra":
        branch(state, step, path, paths, unset)
    else:
        if state.pending:
            settle(state, step)
        branch_by_index(state, step, path, paths, unset)
    return bool(going_back) and loops.turn(active)


def _guarded(state: WarpState, step: Step, path: Path) -> tuple[int, bool]:
    """Return the lanes of a path in which the guard of a step holds.

    And whether the guard has no value, of a branch both sides of which come together.
    """
    unset = False
    if path.mask & ~state.defined[step.guard]:
        unset = step.meet >= 0 and state.warp.machine.allows(Advisory.UNSET_BRANCH)
        if not unset:
            state.check_defined((step.guard,), path.mask)
    predicate = lanes_to_mask(state.registers[step.guard])
    return path.mask & (~predicate if step.guard_negated else predicate), unset


def _activate(state: WarpState, mask: int) -> None:
    """Set the executing lanes."""
    if mask != state.mask:
        state.mask = mask
        state.lanes = mask_to_lanes(mask)
        state.warp.actor.active = mask


def _forget(state: WarpState, path: Path) -> None:
    """Let what a path of an unset branch may have written have no value."""
    for index in path.unset or ():
        state.defined[index] &= ~path.mask


def _define(state: WarpState, step: Step) -> None:
    """Targets are defined where all sources are."""
    mask = known = state.mask
    defined = state.defined
    for index in step.sources:
        known &= defined[index]
    if state.partial:
        for index in step.defines:
            state.define(index, known)
        return
    for index in step.defines:
        defined[index] = defined[index] & ~mask | known


__all__ = ["launch"]
