"""taint: which bytes of the registers hold no defined value.

Compilers build words from bytes and leave some of them open, to drop them later.
Instructions that only move bytes are therefore followed byte by byte; in all others an
undefined byte makes the whole result undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fp4ref.ptx.run.state import FULL, LANES, LaunchContext, WarpState, lanes_to_mask
from fp4ref.ptx.text.syntax import TYPE_NBYTES, Operand, Register

Undefined = NDArray[np.bool_]
"""(32 lanes, bytes): True where a byte has no value."""

_LANE = np.arange(LANES, dtype=np.uint64)


def register_of(context: LaunchContext, operand: Operand | None) -> int:
    """Return the index of a register operand, or -1 for what is always defined."""
    if isinstance(operand, Register):
        return context.index.get(operand.name, -1)
    return -1


def all_defined(state: WarpState, registers: Sequence[int]) -> bool:
    """Whether all registers have values in all executing lanes; -1 is skipped."""
    return all(i < 0 or not state.mask & ~state.defined[i] for i in registers)


def undefined_bytes(state: WarpState, register: int, nbytes: int) -> Undefined:
    """Return the low `nbytes` of a register; bytes above it are zeros."""
    found = np.zeros((LANES, nbytes), np.bool_)
    if register < 0:
        return found
    width = TYPE_NBYTES[state.context.kinds[register]]
    lanes = np.uint64(state.defined[register] & FULL) >> _LANE & np.uint64(1) == 0
    mine = np.repeat(lanes[:, None], width, axis=1)
    partial = state.partial.get(register)
    if partial is not None:
        mine = np.where(np.any(partial, axis=1, keepdims=True), partial, mine)
    common = min(nbytes, width)
    found[:, :common] = mine[:, :common]
    return found


def define_bytes(state: WarpState, register: int, undefined: Undefined) -> None:
    """Say which bytes of a register have no value, in the executing lanes."""
    width = TYPE_NBYTES[state.context.kinds[register]]
    mine = np.zeros((LANES, width), np.bool_)
    common = min(width, undefined.shape[1])
    mine[:, :common] = undefined[:, :common]
    lanes: NDArray[np.bool_] = np.logical_or.reduce(mine, axis=1)
    state.define(register, ~lanes_to_mask(lanes))
    if (lanes & state.lanes).any():
        whole = state.partial.setdefault(register, np.zeros((LANES, width), np.bool_))
        whole[state.lanes] = mine[state.lanes]


def follow(
    context: LaunchContext,
    sources: Sequence[Operand | None],
    targets: Sequence[Operand | None],
    move: Callable[[WarpState, list[Undefined]], list[Undefined]],
    nbytes: int,
    also: Sequence[int] = (),
) -> Callable[[WarpState], Callable[[WarpState], None]]:
    """Build the taint of an instruction that moves bytes.

    Parameters
    ----------
    move
        Turns the undefined bytes of the sources into those of the targets.
    nbytes
        Bytes of one source.
    also
        Further registers that `move` looks at.

    Returns
    -------
    callable
        To be called before the instruction; what it returns is called after it.
    """
    read = [register_of(context, o) for o in sources]
    written = [
        (i, context.index[o.name])
        for i, o in enumerate(targets)
        if isinstance(o, Register) and o.name in context.index
    ]

    def define_all(state: WarpState) -> None:
        for _, register in written:
            state.define(register, -1)

    def before(state: WarpState) -> Callable[[WarpState], None]:
        if all_defined(state, [*read, *also]):
            return define_all
        moved = move(state, [undefined_bytes(state, i, nbytes) for i in read])

        def after(state: WarpState) -> None:
            for i, register in written:
                define_bytes(state, register, moved[i])

        return after

    return before
