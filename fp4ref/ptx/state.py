"""state: the registers and the active lanes of one executing warp, and operand access.

Registers are arrays of 32 lanes, by their declared width. An instruction's type comes
from its opcode; where the widths differ, reads take the low bits and writes extend.
Each register keeps a bit mask of the lanes in which it has a defined value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.parser import (
    TYPE_NBYTES,
    Immediate,
    Instruction,
    Negated,
    Operand,
    PtxError,
    Register,
    Symbol,
)
from fp4ref.ptx.program import Program

if TYPE_CHECKING:
    from fp4ref.hardware.sm import Warp
    from fp4ref.hardware.tmem import Registers

LANES = 32
FULL = (1 << LANES) - 1

Lanes = NDArray[Any]
Get = Callable[["WarpState"], Lanes]
Put = Callable[["WarpState", Lanes], None]

PARAM_WINDOW = 0x6E00_0000_0000
SHARED_WINDOW = 0x6F00_0000_0000
LOCAL_WINDOW = 0x6D00_0000_0000
WINDOW_MASK = 0xFF00_0000_0000
"""Generic addresses of the parameter, shared and local windows."""

_STORAGE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_LANE_BITS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def dtype_of(kind: str) -> np.dtype[Any]:
    """NumPy type of a PTX type such as ``"s32"``, ``"b64"`` or ``"f32"``."""
    if kind == "pred":
        return np.dtype(np.bool_)
    letter = {"b": "u", "s": "i", "u": "u", "f": "f"}[kind[0]]
    return np.dtype(f"<{letter}{TYPE_NBYTES[kind]}")


def mask_to_lanes(mask: int) -> NDArray[np.bool_]:
    """Spread a 32-bit mask over the lanes."""
    lanes: NDArray[np.bool_] = (np.uint32(mask) & _LANE_BITS) != 0
    return lanes


def lanes_to_mask(lanes: NDArray[np.bool_]) -> int:
    """Gather a predicate into a 32-bit mask."""
    return int(_LANE_BITS[lanes].sum(dtype=np.uint64))


class WarpState:
    """Everything that executing one warp needs.

    Attributes
    ----------
    mask, lanes
        Lanes that execute the current instruction, as bits and as booleans.
    active
        Lanes that are on the current path.
    pending
        Registers that a ``tcgen05.ld`` in flight will fill.
    """

    def __init__(self, warp: Warp, context: LaunchContext, live: int) -> None:
        self.warp, self.context = warp, context
        self.registers: list[Lanes] = [
            np.zeros((LANES, 2), np.uint64)
            if kind == "b128"
            else np.zeros(
                LANES, np.bool_ if kind == "pred" else _STORAGE[TYPE_NBYTES[kind]]
            )
            for kind in context.kinds
        ]
        self.defined = [0] * len(self.registers)
        self.active = self.mask = live
        self.lanes = mask_to_lanes(live)
        self.pc = 0
        self.line = 0
        self.special: dict[str, Lanes] = {}
        self.pending: dict[int, tuple[Registers, int]] = {}
        self.local = np.zeros((LANES, context.local_nbytes), np.uint8)
        self.call_params: dict[str, bytes] = {}

    @property
    def first_lane(self) -> int:
        """Lowest executing lane."""
        return (self.mask & -self.mask).bit_length() - 1

    def uniform(self, values: Lanes, what: str) -> int:
        """Return the one value that all executing lanes have.

        Raises
        ------
        PtxError
            The lanes differ.
        """
        mine = values[self.lanes]
        if (mine != mine[0]).any():
            raise PtxError(
                f"PTX line {self.line}: {what} differs between the lanes of a warp"
            )
        return int(mine[0])


class LaunchContext:
    """What all warps of a launch share: the program, addresses and parameters."""

    def __init__(
        self,
        program: Program,
        params: bytes,
        block: tuple[int, int, int],
        addresses: dict[str, int],
        local_nbytes: int,
        smem_nbytes: int,
    ) -> None:
        self.program, self.params, self.block = program, params, block
        self.addresses = addresses
        self.local_nbytes, self.smem_nbytes = local_nbytes, smem_nbytes
        names = list(program.entry.registers)
        self.index = {name: i for i, name in enumerate(names)}
        self.kinds = [program.entry.registers[name] for name in names]
        self.output: list[str] = []

    def register(self, operand: Operand | None, instruction: Instruction) -> int:
        """Return the index of a register operand."""
        if not isinstance(operand, Register) or operand.name not in self.index:
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} needs a register, "
                f"not {operand}"
            )
        return self.index[operand.name]


def reader(
    context: LaunchContext, operand: Operand | None, kind: str, instruction: Instruction
) -> Get:
    """Return a function that reads an operand as `kind`, one value for each lane."""
    dtype = dtype_of(kind)
    if isinstance(operand, Immediate):
        value = _constant(operand, dtype)
        return lambda state: value
    if isinstance(operand, Symbol):
        if operand.name not in context.addresses:
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} uses the unknown "
                f"symbol {operand.name}"
            )
        address = np.full(LANES, context.addresses[operand.name], dtype)
        return lambda state: address
    if isinstance(operand, Negated):
        index = context.register(operand.register, instruction)
        return lambda state: ~state.registers[index]
    if isinstance(operand, Register) and operand.name not in context.index:
        return _special_reader(operand.name, dtype, instruction)
    index = context.register(operand, instruction)
    declared = context.kinds[index]
    if declared == "pred" or kind == "pred":
        if declared != kind:
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} mixes predicates "
                "and values"
            )
        return lambda state: state.registers[index]
    if declared == "b128":
        return lambda state: state.registers[index]
    if TYPE_NBYTES[declared] == dtype.itemsize:
        return lambda state: state.registers[index].view(dtype)
    storage = _STORAGE[dtype.itemsize]
    return lambda state: state.registers[index].astype(storage).view(dtype)


def _constant(operand: Immediate, dtype: np.dtype[Any]) -> Lanes:
    """Broadcast a literal; a float literal gives its bits."""
    if dtype == np.bool_:
        return np.full(LANES, operand.value != 0)
    bits = operand.value
    if dtype.kind == "f" and operand.float_bits == 64 and dtype.itemsize == 4:
        value = np.array([bits], np.uint64).view(np.float64).astype(np.float32)
        return np.full(LANES, value[0], dtype)
    unsigned = bits % (1 << 8 * dtype.itemsize)
    return np.full(LANES, unsigned, _STORAGE[dtype.itemsize]).view(dtype)


SPECIALS: dict[str, Callable[[WarpState], Any]] = {}
"""Special registers: name to a function that computes them for a warp."""


def _special_reader(name: str, dtype: np.dtype[Any], instruction: Instruction) -> Get:
    if name not in SPECIALS:
        raise PtxError(f"PTX line {instruction.line}: unknown register {name}")
    compute = SPECIALS[name]

    def read(state: WarpState) -> Lanes:
        if name not in state.special:
            state.special[name] = np.broadcast_to(
                np.asarray(compute(state), np.uint64), (LANES,)
            )
        return state.special[name].astype(dtype)

    return read


def writer(
    context: LaunchContext, operand: Operand | None, kind: str, instruction: Instruction
) -> Put:
    """Return a function that writes `kind` values to a register, in executing lanes."""
    if operand is None:
        return lambda state, values: None
    index = context.register(operand, instruction)
    declared = context.kinds[index]
    if declared == "b128" or kind == "pred" or declared == "pred":
        if (declared == "pred") != (kind == "pred"):
            raise PtxError(
                f"PTX line {instruction.line}: {instruction.opcode} mixes predicates "
                "and values"
            )

        def put_whole(state: WarpState, values: Lanes) -> None:
            state.registers[index][state.lanes] = values[state.lanes]

        return put_whole
    dtype = dtype_of(kind)
    storage = np.dtype(_STORAGE[TYPE_NBYTES[declared]])
    if storage.itemsize == dtype.itemsize:

        def put(state: WarpState, values: Lanes) -> None:
            bits = values.view(storage)
            if state.mask == FULL:
                state.registers[index][:] = bits
            else:
                np.copyto(state.registers[index], bits, where=state.lanes)

        return put
    source = np.dtype(f"<{'i' if kind[0] == 's' else 'u'}{dtype.itemsize}")

    def put_extended(state: WarpState, values: Lanes) -> None:
        bits = values.view(source).astype(storage)
        np.copyto(state.registers[index], bits, where=state.lanes)

    return put_extended


def _dim(axis: int, what: str) -> Callable[[WarpState], Any]:
    """Build %tid and its relatives for one axis."""

    def tid(state: WarpState) -> Lanes:
        x, y, _ = state.context.block
        linear = state.warp.index * LANES + np.arange(LANES)
        return (linear % x, linear // x % y, linear // (x * y))[axis]

    table: dict[str, Callable[[WarpState], Any]] = {
        "tid": tid,
        "ntid": lambda s: s.context.block[axis],
        "ctaid": lambda s: s.warp.cta.ctaid[axis],
        "nctaid": lambda s: s.warp.cta.grid[axis],
        "clusterid": lambda s: s.warp.cta.ctaid[axis] // s.warp.cta.cluster.shape[axis],
        "nclusterid": lambda s: s.warp.cta.grid[axis] // s.warp.cta.cluster.shape[axis],
        "cluster_ctaid": lambda s: (
            s.warp.cta.ctaid[axis] % s.warp.cta.cluster.shape[axis]
        ),
        "cluster_nctaid": lambda s: s.warp.cta.cluster.shape[axis],
    }
    return table[what]


for _what in (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
):
    for _axis, _letter in enumerate("xyz"):
        SPECIALS[f"%{_what}.{_letter}"] = _dim(_axis, _what)

_lane = np.arange(LANES, dtype=np.uint64)
SPECIALS |= {
    "%laneid": lambda s: _lane,
    "%warpid": lambda s: s.warp.index,
    "%nwarpid": lambda s: len(s.warp.cta.warps),
    "%smid": lambda s: s.warp.cta.sm.index,
    "%nsmid": lambda s: len(s.warp.machine.sms),
    "%cluster_ctarank": lambda s: s.warp.cta.rank,
    "%cluster_nctarank": lambda s: len(s.warp.cta.cluster.ctas),
    "%is_explicit_cluster": lambda s: len(s.warp.cta.cluster.ctas) > 1,
    "%dynamic_smem_size": lambda s: s.context.smem_nbytes,
    "%lanemask_eq": lambda s: 1 << _lane,
    "%lanemask_lt": lambda s: (1 << _lane) - 1,
    "%lanemask_le": lambda s: (2 << _lane) - 1,
    "%lanemask_gt": lambda s: FULL ^ ((2 << _lane) - 1),
    "%lanemask_ge": lambda s: FULL ^ ((1 << _lane) - 1),
}
