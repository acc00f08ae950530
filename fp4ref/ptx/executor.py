"""executor: run the warps of a compiled kernel on the machine.

A warp executes one instruction at a time for all its active lanes. When a branch splits
them, each side runs in turn until both meet at the immediate post-dominator. A warp
suspends where the hardware would block it; the machine's schedule does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fp4ref.errors import HardwareFault, InputError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.sm import Body, Cta, Dim3, Role, Warp
from fp4ref.hardware.smem import BASE as SMEM_BASE
from fp4ref.ptx import alu, memory, units  # noqa: F401  they register instructions
from fp4ref.ptx.parser import Variable
from fp4ref.ptx.program import Program
from fp4ref.ptx.registry import Step, translate
from fp4ref.ptx.state import (
    FULL,
    LANES,
    LaunchContext,
    WarpState,
    lanes_to_mask,
    mask_to_lanes,
)


class UndefinedRegister(HardwareFault):
    """An address, a stored value or a branch depends on a register never written."""


class KernelTrap(HardwareFault):
    """The kernel stopped itself: a failed assertion, ``trap`` or ``brkpt``."""


class PartialWarp(HardwareFault):
    """An instruction that needs the whole warp was executed by a part of it."""


@dataclass(slots=True)
class _Path:
    """Lanes that run from `pc` until `meet`."""

    pc: int
    mask: int
    meet: int


def launch(
    machine: Machine,
    program: Program,
    grid: Dim3,
    block: Dim3,
    params: bytes,
    *,
    cluster: Dim3 = (1, 1, 1),
    smem_nbytes: int = 0,
    only: Iterable[Dim3] | None = None,
) -> list[str]:
    """Run a compiled kernel to its end.

    Parameters
    ----------
    params
        The kernel's parameter block, laid out as the entry declares.
    smem_nbytes
        Dynamic shared memory.

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
    HardwareFault
        The kernel did something wrong.
    """
    if len(params) < program.param_nbytes:
        raise InputError(
            f"{len(params)} parameter bytes; {program.entry.name[:60]} takes "
            f"{program.param_nbytes}"
        )
    threads = block[0] * block[1] * block[2]
    if not 1 <= threads <= 1024:
        raise InputError(f"block {block}: 1 to 1,024 threads are possible")
    context = _context(machine, program, params, block, smem_nbytes)
    steps = translate(context)

    def kernel(cta: Cta) -> Sequence[Role]:
        return [_role(context, steps, threads) for _ in range(-(-threads // LANES))]

    static = context.smem_nbytes
    machine.launch(kernel, grid, cluster=cluster, smem_nbytes=static, only=only)
    return context.output


def _context(
    machine: Machine, program: Program, params: bytes, block: Dim3, smem_nbytes: int
) -> LaunchContext:
    """Give every variable its address."""
    addresses: dict[str, int] = dict(program.param_offsets)
    shared = SMEM_BASE
    local = 0
    dynamic: list[Variable] = []
    for variable in [*program.module.variables, *program.entry.variables]:
        match variable.space:
            case "shared" if variable.nbytes == 0:
                dynamic.append(variable)
            case "shared":
                shared = -(-shared // variable.alignment) * variable.alignment
                addresses[variable.name] = shared
                shared += variable.nbytes
            case "local":
                local = -(-local // variable.alignment) * variable.alignment
                addresses[variable.name] = local
                local += variable.nbytes
            case "global" | "const":
                data = variable.data or bytes(variable.nbytes)
                addresses[variable.name] = machine.gmem.upload(
                    variable.name, np.frombuffer(data, np.uint8)
                )
    # Dynamic shared memory starts on 1 KB in practice, whatever the symbol says.
    if dynamic and shared != SMEM_BASE:
        shared = -(-shared // 1024) * 1024
    for variable in dynamic:
        addresses[variable.name] = shared
    total = shared - SMEM_BASE + smem_nbytes
    return LaunchContext(program, params, block, addresses, local, total)


def _role(context: LaunchContext, steps: Sequence[Step], threads: int) -> Role:
    def role(warp: Warp) -> Body:
        live = min(LANES, threads - LANES * warp.index)
        return _run(WarpState(warp, context, (1 << live) - 1), steps)

    return role


def _run(state: WarpState, steps: Sequence[Step]) -> Body:
    """Execute until every lane has exited."""
    program = state.context.program
    code, meet = program.instructions, program.reconvergence
    end = len(steps)
    paths = [_Path(0, state.active, end)]
    recording = state.warp.machine.recorder is not None
    with np.errstate(all="ignore"):
        while paths:
            path = paths[-1]
            pc = path.pc
            if path.mask == 0 or pc == path.meet or pc >= end:
                paths.pop()
                if paths and path.mask and pc < end:
                    paths[-1].mask |= path.mask
                    paths[-1].pc = pc
                continue
            step = steps[pc]
            state.pc, state.line = pc, code[pc].line
            if recording:
                state.warp.kernel_source = program.source(pc) or f"PTX:{state.line}"
            _activate(state, step, path.mask)
            opcode = code[pc].opcode
            if opcode.startswith("bra"):
                _branch(state, path, paths, program.target(code[pc]), meet)
                continue
            if state.mask and opcode in ("ret", "exit"):
                for each in paths:
                    each.mask &= ~state.mask
                path.pc = pc + 1
                continue
            if state.mask:
                if state.pending:
                    _settle(state, step)
                _check_defined(state, step.must_be_defined)
                result = step.act(state)
                if step.blocks and result is not None:
                    yield from result
                _define(state, step)
            path.pc = pc + 1


def _activate(state: WarpState, step: Step, path_mask: int) -> None:
    """Set the executing lanes from the path and the guard."""
    mask = path_mask
    if step.guard >= 0:
        _check_defined(state, (step.guard,), path_mask)
        predicate = state.registers[step.guard]
        mask &= lanes_to_mask(~predicate if step.guard_negated else predicate)
    if mask != state.mask:
        state.mask = mask
        state.lanes = mask_to_lanes(mask)
    state.active = path_mask


def _branch(
    state: WarpState, path: _Path, paths: list[_Path], target: int, meet: dict[int, int]
) -> None:
    """Go on, jump, or split the path."""
    taken, here = state.mask, path.mask
    if taken == here:
        path.pc = target
    elif taken == 0:
        path.pc += 1
    else:
        join = meet[path.pc]
        fall_through = path.pc + 1
        path.mask, path.pc = 0, join
        paths.append(_Path(fall_through, here & ~taken, join))
        paths.append(_Path(target, taken, join))


def _check_defined(
    state: WarpState, registers: Iterable[int], mask: int | None = None
) -> None:
    wanted = state.mask if mask is None else mask
    for index in registers:
        if wanted & ~state.defined[index]:
            name = list(state.context.index)[index]
            raise UndefinedRegister(
                f"{name} is used, but was never written",
                who=state.warp.who,
                where=f"PTX line {state.line}",
                rule="an undefined value may flow, but not into an address, a store or "
                "a branch",
                remedy="look for the path on which it is not set",
            )


def _define(state: WarpState, step: Step) -> None:
    """Targets are defined where all sources are."""
    mask = state.mask
    known = mask
    for index in step.sources:
        known &= state.defined[index]
    for index in step.targets:
        state.defined[index] = state.defined[index] & ~mask | known


def _settle(state: WarpState, step: Step) -> None:
    """An instruction uses registers that a tcgen05.ld still has to fill."""
    for index in (*step.sources, *step.targets):
        if index in state.pending:
            units.use_before_wait(state)
            return


__all__ = ["FULL", "KernelTrap", "PartialWarp", "UndefinedRegister", "launch"]
