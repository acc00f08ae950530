"""loader: give every variable of a program its address, for one launch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from fp4ref.errors import InputError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.shared_memory import BASE as SMEM_BASE
from fp4ref.ptx.run.state import LaunchContext
from fp4ref.ptx.text.program import Program
from fp4ref.ptx.text.syntax import Address, Symbol, Variable
from fp4ref.trace import Dim3

DYNAMIC_ALIGNMENT = 16
"""Least alignment of dynamic shared memory after static [measured on an H200]."""

STACK_ALIGNMENT = 16
"""Of the local variables of one activation of a recursive function."""

_globals: WeakKeyDictionary[Machine, dict[int, int]] = WeakKeyDictionary()
"""Addresses of module variables, which live as long as the machine, by identity."""


def load(
    machine: Machine,
    program: Program,
    params: bytes,
    block: Dim3,
    smem_nbytes: int = 0,
) -> LaunchContext:
    """Place the variables and check what the launch passes.

    Raises
    ------
    InputError
        Parameters or block do not fit the entry.
    """
    _check(program, params, block)
    addresses: dict[str, int] = dict(program.param_offsets)
    shared = _Stack(SMEM_BASE)
    local = _Stack(0)
    dynamic: list[Variable] = []
    stacked: list[Variable] = []
    recursive = _local_names(program)
    in_shared: set[str] = set()
    for variable in [*program.module.variables, *program.entry.variables]:
        match variable.space:
            case "shared":
                in_shared.add(variable.name)
                if variable.nbytes:
                    addresses[variable.name] = shared.take(variable)
                else:
                    dynamic.append(variable)
            case "local" if variable.name in recursive:
                stacked.append(variable)
            case "local":
                addresses[variable.name] = local.take(variable)
            case "global" | "const":
                addresses[variable.name] = _upload(machine, variable)
    used = _symbols(program)
    shared.align(
        max(DYNAMIC_ALIGNMENT, *(v.alignment for v in dynamic if v.name in used), 1)
    )
    for variable in dynamic:
        addresses[variable.name] = shared.top
    local.align(STACK_ALIGNMENT)
    below = local.top
    for variable in stacked:
        addresses[variable.name] = local.take(variable)
    local.align(STACK_ALIGNMENT)
    static = shared.top - SMEM_BASE
    return LaunchContext(
        program,
        params,
        block,
        addresses,
        in_shared,
        local.top,
        static,
        smem_nbytes,
        stacked=recursive,
        stack_nbytes=local.top - below,
    )


def _local_names(program: Program) -> frozenset[str]:
    """Names of the local variables of recursive functions."""
    functions = (program.functions[name] for name in program.recursive)
    return frozenset(
        v.name for f in functions for v in f.variables if v.space == "local"
    )


def _symbols(program: Program) -> set[str]:
    """Names that the entry's instructions mention."""
    found: set[str] = set()
    for instruction in program.instructions:
        for operand in instruction.operands:
            match operand:
                case Symbol(name) | Address(Symbol(name)):
                    found.add(name)
                case _:
                    pass
    return found


class _Stack:
    """Addresses handed out upwards."""

    def __init__(self, top: int) -> None:
        self.top = top

    def align(self, alignment: int) -> None:
        self.top = -(-self.top // alignment) * alignment

    def take(self, variable: Variable) -> int:
        self.align(variable.alignment)
        address = self.top
        self.top += variable.nbytes
        return address


def _upload(machine: Machine, variable: Variable) -> int:
    """Give a module variable its address once; without a value it holds zeros."""
    placed = _globals.setdefault(machine, {})
    if id(variable) not in placed:
        data = variable.data or bytes(max(variable.nbytes, 1))
        placed[id(variable)] = machine.gmem.upload(
            variable.name, np.frombuffer(data, np.uint8)
        )
    return placed[id(variable)]


def _check(program: Program, params: bytes, block: Dim3) -> None:
    name = program.entry.name[:60]
    if len(params) < program.param_nbytes:
        raise InputError(
            f"{len(params)} parameter bytes; {name} takes {program.param_nbytes}"
        )
    threads = block[0] * block[1] * block[2]
    if min(block) < 1 or threads > 1024:
        raise InputError(f"block {block}: 1 to 1,024 threads are possible")
    directives = program.entry.directives
    if required := directives.get("reqntid"):
        whole = (*required, 1, 1)[:3]
        if whole != tuple(block):
            raise InputError(f"block {block}: {name} requires {whole}")
    if (most := directives.get("maxntid")) and threads > int(np.prod(most)):
        raise InputError(f"block {block}: {name} takes at most {np.prod(most)} threads")
