"""control: branches, exits, traps, and calls.

A function of the program is entered by the executor (`fp4ref.ptx.run.calls`); here are
``__assertfail`` and ``vprintf``, which have no text.
"""

from __future__ import annotations

import re

import numpy as np

from fp4ref.errors import HardwareFault
from fp4ref.ptx.run.operands import reader
from fp4ref.ptx.run.registry import Action, Form, Unknown, instruction, is_call
from fp4ref.ptx.run.spaces import read_local, resolve
from fp4ref.ptx.run.state import LANES, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Instruction, PtxError, Symbol, Vector


class KernelTrap(HardwareFault):
    """The kernel stopped itself: a failed assertion, ``trap`` or ``brkpt``."""


class BranchOutOfTable(HardwareFault):
    """``brx.idx`` with an index that its list of targets does not have."""


@instruction("bra", form="(.uni)?", operands=1, writes=0)
@instruction("ret", form="(.uni)?", operands=0)
@instruction("exit", operands=0)
def flow(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build control flow; the executor handles it."""
    return lambda state: None


@instruction("brx.idx", form="(.uni)?", operands=2, writes=0, strict=True)
def indexed_branch(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``brx.idx``: writes the index of each lane; the executor branches."""
    index = reader(context, each.operands[0], "u32", each)
    count = len(context.program.targets(each))

    def act(state: WarpState) -> None:
        state.branch = index(state)
        beyond = state.branch[state.lanes] >= count
        if beyond.any():
            raise BranchOutOfTable(
                f"{each.opcode} with index {int(state.branch[state.lanes].max())} of "
                f"{count} targets",
                who=state.warp.who,
                where=state.at,
                rule="an index past the list is undefined [PTX: brx.idx]",
                remedy="limit the index before the branch",
            )

    return act


@instruction("brkpt", "trap", operands=0, effect=True)
def trap(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``trap`` and ``brkpt``: the kernel stops itself."""

    def act(state: WarpState) -> None:
        raise _trapped(state, f"{each.opcode} reached")

    return act


def _trapped(state: WarpState, what: str) -> KernelTrap:
    return KernelTrap(
        what,
        who=f"{state.warp.who} lane {state.first_lane}",
        where=state.at,
        rule="the kernel's own check",
        remedy="look at the condition in its source",
    )


@instruction("nanosleep.u32", operands=1, writes=0)
def nanosleep(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``nanosleep``: time does not pass here."""
    reader(context, each.operands[0], "u32", each)
    return lambda state: None


@instruction("call", form="(.uni)?", operands=3, writes=0, effect=True)
def call(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``call``; of functions without a text two are known."""
    if is_call(context, each):
        return lambda state: None
    results, name, arguments = each.operands
    assert isinstance(results, Vector)
    assert isinstance(arguments, Vector)
    names = [a.name for a in arguments.items if isinstance(a, Symbol)]
    called = name.name if isinstance(name, Symbol) else ""
    if called not in ("__assertfail", "vprintf") or len(names) < 2:
        raise Unknown("ptx-call")

    def fail(state: WarpState) -> None:
        lane = state.first_lane
        message, file = (
            _text(state, _argument(state, n, lane)).rsplit("/", 1)[-1]
            for n in names[:2]
        )
        raise _trapped(state, f"assertion failed: {message} in {file}")

    def print_lanes(state: WarpState) -> None:
        for lane in np.flatnonzero(state.lanes):
            text = _text(state, _argument(state, names[0], int(lane)))
            values = _Values(state, int(lane), _argument(state, names[1], int(lane)))
            state.context.output.append(_printf(text, values))
        for result in results.items:
            if isinstance(result, Symbol):
                state.arguments[result.name] = np.zeros((LANES, 4), np.uint8)

    return fail if called == "__assertfail" else print_lanes


def _argument(state: WarpState, name: str, lane: int) -> int:
    data = state.arguments.get(name)
    if data is None:
        raise PtxError(f"PTX line {state.line}: argument {name} was not stored")
    return int.from_bytes(data[lane].tobytes(), "little")


def _text(state: WarpState, address: int) -> str:
    """Read a zero-terminated string from global memory."""
    gmem = state.warp.machine.gmem
    found = gmem.find(address)
    if found is None:
        return "?"
    data = gmem.contents(address, found.address + found.nbytes - address)
    return data.tobytes().split(b"\0")[0].decode(errors="replace")


class _Values:
    """The arguments of a printf: a packed struct in the lane's local memory."""

    def __init__(self, state: WarpState, lane: int, address: int) -> None:
        self.state, self.lane, self.address = state, lane, address
        self.offset = 0

    def take(self, nbytes: int) -> bytes:
        """Return the next value, aligned to its size."""
        self.offset = -(-self.offset // nbytes) * nbytes
        address = np.array([self.address + self.offset], np.uint64)
        self.offset += nbytes
        ((space, where, _),) = resolve("generic", address)
        if space != "local":
            raise PtxError(f"PTX line {self.state.line}: printf values in {space}")
        data, _ = read_local(self.state, np.array([self.lane]), where, nbytes)
        return data.tobytes()


_FIELD = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?(hh|h|ll|l|z|j|t)?([diuxXocspfFeEgGaA%])")


def _printf(text: str, values: _Values) -> str:
    """Format as C does."""

    def one(match: re.Match[str]) -> str:
        flags, width, precision, length, letter = match.groups("")
        style = f"%{flags}{width}{precision}"
        if letter == "%":
            return "%"
        if letter in "fFeEgGaA":
            value = float(np.frombuffer(values.take(8), "<f8")[0])
            return value.hex() if letter in "aA" else f"{style}{letter}" % value
        if letter == "s":
            address = int.from_bytes(values.take(8), "little")
            return f"{style}s" % _text(values.state, address)
        wide = letter == "p" or length in ("l", "ll", "z", "j", "t")
        data = values.take(8 if wide else 4)
        number = int.from_bytes(data, "little", signed=letter in "di")
        if letter == "p":
            return f"{number:#x}"
        if letter == "c":
            return chr(number & 0xFF)
        return f"{style}{'d' if letter in 'iu' else letter}" % number

    return _FIELD.sub(one, text)
