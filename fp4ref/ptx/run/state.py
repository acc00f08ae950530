"""state: the registers and the active lanes of one executing warp.

Registers are arrays of 32 lanes, by their declared width. Each keeps a bit mask of the
lanes in which it has a defined value: an undefined value may flow through arithmetic,
but not into an address, a store or a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import HardwareFault
from fp4ref.ptx.text.program import Program
from fp4ref.ptx.text.syntax import TYPE_NBYTES, Instruction, Operand, PtxError, Register

if TYPE_CHECKING:
    from fp4ref.hardware.registers import Registers
    from fp4ref.hardware.sm import Warp

LANES = 32
FULL = (1 << LANES) - 1

Lanes = NDArray[Any]

STORAGE: dict[int, type[np.generic]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}
_LANE_BITS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


class UndefinedRegister(HardwareFault):
    """An address, a stored value or a branch depends on a register never written."""


class PartialWarp(HardwareFault):
    """An instruction that needs several lanes together was executed by some of them."""


class IssueFault(HardwareFault):
    """An instruction for one thread was executed by several, or with mixed operands."""


def dtype_of(kind: str) -> np.dtype[Any]:
    """NumPy type of a PTX type such as ``"s32"`` or ``"f32"``; b128 is two uint64."""
    if kind == "pred":
        return np.dtype(np.bool_)
    if kind == "b128":
        return np.dtype(np.uint64)
    letter = {"b": "u", "s": "i", "u": "u", "f": "f"}[kind[0]]
    return np.dtype(f"<{letter}{TYPE_NBYTES[kind]}")


def width_of(kind: str) -> str:
    """Return which file has the registers of a PTX type."""
    return kind if kind in ("pred", "b128") else f"b{8 * TYPE_NBYTES[kind]}"


_STORED: dict[str, type[np.generic]] = {
    "pred": np.bool_,
    "b128": np.uint64,
    **{f"b{8 * nbytes}": dtype for nbytes, dtype in STORAGE.items()},
}
_SHAPES = dict.fromkeys(_STORED, (LANES,)) | {"b128": (LANES, 2)}
"""What one register of a file is."""


@lru_cache(maxsize=256)
def mask_to_lanes(mask: int) -> NDArray[np.bool_]:
    """Spread a 32-bit mask over the lanes; not to be written."""
    lanes: NDArray[np.bool_] = (np.uint32(mask) & _LANE_BITS) != 0
    lanes.flags.writeable = False
    return lanes


@lru_cache(maxsize=256)
def lanes_of(mask: int) -> NDArray[np.intp]:
    """Return the numbers of the lanes in a 32-bit mask; not to be written."""
    numbers = np.flatnonzero(mask_to_lanes(mask))
    numbers.flags.writeable = False
    return numbers


def lanes_to_mask(lanes: NDArray[np.bool_]) -> int:
    """Gather a predicate into a 32-bit mask."""
    return _mask_of(lanes.tobytes())


@lru_cache(maxsize=4096)
def _mask_of(lanes: bytes) -> int:
    bits = np.packbits(np.frombuffer(lanes, np.bool_), bitorder="little")
    return int.from_bytes(bits.tobytes(), "little")


@dataclass
class LaunchContext:
    """What all warps of a launch share: the program, addresses and parameters.

    Attributes
    ----------
    addresses
        Address of every variable, by name, in its own state space.
    shared
        Names of the variables in shared memory.
    changes
        How many instructions so far could change what another warp sees.
    on_turn
        Called at every branch backwards.
    workspace
        Address of what a cooperative grid counts in; None before it is asked for.
    stacked, stack_nbytes
        Names of the local variables of recursive functions, which are the last ones in
        local memory, and their bytes.
    """

    program: Program
    params: bytes
    block: tuple[int, int, int]
    addresses: dict[str, int]
    shared: set[str]
    local_nbytes: int
    static_nbytes: int
    dynamic_nbytes: int
    output: list[str] = field(default_factory=list)
    changes: int = 0
    on_turn: Callable[[], None] | None = None
    workspace: int | None = None
    stacked: frozenset[str] = frozenset()
    stack_nbytes: int = 0
    index: dict[str, int] = field(init=False)
    kinds: list[str] = field(init=False)

    def __post_init__(self) -> None:
        registers = self.program.entry.registers
        self.index = {name: i for i, name in enumerate(registers)}
        self.kinds = list(registers.values())

    @cached_property
    def places(self) -> list[tuple[str, int]]:
        """File and row of every register."""
        taken: dict[str, int] = {}
        found = []
        for kind in self.kinds:
            width = width_of(kind)
            row = taken.get(width, 0)
            taken[width] = row + 1
            found.append((width, row))
        return found

    @cached_property
    def rows(self) -> dict[str, int]:
        """How many registers each file has."""
        return Counter(width for width, _ in self.places)

    def register(self, operand: Operand | None, instruction: Instruction) -> int:
        """Return the index of a register operand."""
        if not isinstance(operand, Register) or operand.name not in self.index:
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} needs a register, "
                f"not {operand}"
            )
        return self.index[operand.name]


class WarpState:
    """Everything that executing one warp needs.

    Attributes
    ----------
    files
        The registers of each width, (registers, 32).
    registers
        Each register's row of its file.
    mask, lanes
        Lanes that execute the current instruction, as bits and as booleans.
    live
        Lanes that have not exited.
    pending
        Registers that a ``tcgen05.ld`` in flight will fill.
    partial
        Undefined bytes, (32, n), of registers of which some bytes are defined.
    local, local_written
        Local memory of every lane, and which bytes hold a defined value.
    stack
        How far the local variables of recursive functions lie behind their addresses.
    arguments
        Bytes of each parameter of a call, by name: (32, n).
    polled
        Last mbarrier test that was answered with false: (position, address, parity).
    carry
        The condition code register's carry flag of each lane.
    branch
        Index of each lane into the targets of a ``brx.idx``.
    is_watched
        Whether someone wants to know which statement is executed.
    insist
        Whether tests are answered truthfully, because the warp has waited.
    read_time
        Whether a clock was read since the warp last waited for time.
    """

    def __init__(self, warp: Warp, context: LaunchContext, live: int) -> None:
        self.warp, self.context = warp, context
        warp.actor.widen(live)
        self.files: dict[str, Lanes] = {
            width: np.zeros((rows, *_SHAPES[width]), _STORED[width])
            for width, rows in context.rows.items()
        }
        self.registers: list[Lanes] = [
            self.files[width][row] for width, row in context.places
        ]
        self._views: dict[tuple[int, str], Lanes] = {}
        self.defined = [0] * len(self.registers)
        self.partial: dict[int, NDArray[np.bool_]] = {}
        self.live = self.mask = live
        self.lanes = mask_to_lanes(live)
        self.pc = self.line = 0
        self.special: dict[str, Lanes] = {}
        self.pending: dict[int, tuple[Registers, int]] = {}
        self.local = np.zeros((LANES, context.local_nbytes), np.uint8)
        self.local_written = np.zeros((LANES, context.local_nbytes), np.bool_)
        self.stack = np.zeros(LANES, np.uint64)
        self.arguments: dict[str, NDArray[np.uint8]] = {}
        self.cluster_round = -1
        self.polled: tuple[int, int, int] | None = None
        self.carry = np.zeros(LANES, np.bool_)
        self.branch: Lanes = np.zeros(LANES, np.uint32)
        self.insist = False
        self.read_time = False
        machine = warp.machine
        self.is_watched = machine.recorder is not None or machine.order.watches

    def view(self, index: int, dtype: np.dtype[Any]) -> Lanes:
        """Return the live lanes of a register as a type of its width."""
        key = (index, dtype.char)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = self.registers[index].view(dtype)
        return found

    @property
    def first_lane(self) -> int:
        """Lowest executing lane."""
        return (self.mask & -self.mask).bit_length() - 1

    @property
    def statement(self) -> str:
        """``file:line`` by ``.loc``, or ``PTX:line`` without one."""
        return self.context.program.source(self.pc) or f"PTX:{self.line}"

    @property
    def at(self) -> str:
        """Where the warp is, for a fault."""
        source = self.context.program.source(self.pc)
        return f"PTX line {self.line}" + (f", {source}" if source else "")

    def uniform(self, values: Lanes, what: str) -> int:
        """Return the one value that all executing lanes have.

        Raises
        ------
        IssueFault
            The lanes differ.
        """
        mine = values[lanes_of(self.mask)].tolist()
        if mine.count(mine[0]) != len(mine):
            raise IssueFault(
                f"{what} differs between the lanes of a warp",
                who=self.warp.who,
                where=self.at,
                rule="one operation of the warp has one value of each operand here",
                remedy="give all lanes the same operands, or elect one lane",
            )
        return int(mine[0])

    def whole_warp(self, opcode: str) -> None:
        """Raise `PartialWarp` unless every live lane executes."""
        if self.mask != self.live:
            raise PartialWarp(
                f"{opcode} executed by {self.mask.bit_count()} of "
                f"{self.live.bit_count()} lanes",
                who=self.warp.who,
                where=self.at,
                rule=".sync and .aligned need all lanes at the same instruction",
                remedy="reconverge first",
            )

    def one_lane(self, opcode: str) -> int:
        """Return the only executing lane, or raise `IssueFault`."""
        if self.mask & (self.mask - 1):
            raise IssueFault(
                f"{opcode} executed by {self.mask.bit_count()} lanes",
                who=self.warp.who,
                where=self.at,
                rule="one thread issues it; each further lane would issue it again",
                remedy="elect one lane",
            )
        return self.first_lane

    def members(self, masks: Lanes, opcode: str) -> None:
        """Check the member masks of a ``.sync`` instruction, one for each lane.

        Raises
        ------
        PartialWarp
            A lane is not in its own mask, or a live member executes elsewhere or with
            another mask.
        """
        first = int(masks[self.first_lane])
        if first & self.live == self.mask and (masks == first).all():
            return
        lanes = np.flatnonzero(self.lanes)
        for mask in {int(m) for m in masks[lanes]}:
            mine = sum(1 << int(n) for n in lanes if int(masks[n]) == mask)
            if mask & self.live != mine:
                raise PartialWarp(
                    f"{opcode} with member mask {mask:#010x} executed by lanes "
                    f"{mine:#010x}",
                    who=self.warp.who,
                    where=self.at,
                    rule="all members of the mask execute the instruction together, "
                    "and no other lane does",
                    remedy="reconverge first, or name only the lanes of this branch",
                )

    def check_defined(self, registers: Iterable[int], mask: int) -> None:
        """Raise `UndefinedRegister` if a register has no value in a lane of `mask`."""
        for index in registers:
            if missing := mask & ~self.defined[index]:
                name = list(self.context.index)[index].split("@")[0]
                raise UndefinedRegister(
                    f"{name} is used, but was never written in lane "
                    f"{(missing & -missing).bit_length() - 1}",
                    who=self.warp.who,
                    where=self.at,
                    rule="an undefined value may flow, but not into an address, a "
                    "store or a branch",
                    remedy="look for the path on which it is not set",
                )

    def define(self, index: int, defined: int) -> None:
        """Say in which of the executing lanes a register has a value now."""
        if self.partial:
            self._forget_bytes(index)
        self.defined[index] = self.defined[index] & ~self.mask | defined & self.mask

    def _forget_bytes(self, index: int) -> None:
        """Let the executing lanes of a register count as a whole again."""
        found = self.partial.get(index)
        if found is not None:
            found[self.lanes] = False
            if not found.any():
                del self.partial[index]
