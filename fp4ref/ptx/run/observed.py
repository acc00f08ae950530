"""observed: tell the order engine which lane touches which bytes, and how strongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.order.access import SCOPES
from fp4ref.ptx.run.spaces import Addresses, by_rank
from fp4ref.ptx.run.state import LANES, WarpState

_LANES = np.arange(LANES)
_VECTORS = ("v2", "v4", "v8")


class Strength(NamedTuple):
    """``.sem`` and ``.scope`` of an access; a weak one has no scope.

    A vector is as many accesses of one element [PTX: memory operations on vectors].
    """

    acquires: bool = False
    releases: bool = False
    scope: str = ""
    elements: int = 1


WEAK = Strength()


def strength(opcode: str, default_scope: str = "") -> Strength:
    """Read the modifiers of ``ld``, ``st``, ``atom`` or ``red``.

    ``volatile`` is a relaxed access of the widest scope. `default_scope` is that of
    an opcode which is strong without saying so.
    """
    words = opcode.split(".")
    elements = next((int(word[1:]) for word in words if word in _VECTORS), 1)
    if "volatile" in words:
        return Strength(scope="sys", elements=elements)
    scope = next((word for word in words if word in SCOPES), default_scope)
    both = "acq_rel" in words
    releases, acquires = "release" in words or both, "acquire" in words or both
    return Strength(acquires, releases, scope, elements)


def observe(
    state: WarpState,
    space: str,
    addresses: Addresses,
    nbytes: int,
    operation: str,
    *,
    is_write: bool,
    lanes: NDArray[np.intp],
    how: Strength = WEAK,
    modifies: bool = False,
) -> None:
    """Check `nbytes` at each address of shared or global memory.

    Parameters
    ----------
    lanes
        Which lane touches each address.
    modifies
        Whether the write belongs to a read-modify-write.
    """
    order, actor = state.warp.machine.order, state.warp.actor
    if not order.watches:
        return
    scope = SCOPES.get(how.scope, 0)
    for memory, offsets, part in _memories(state, space, addresses):
        mine = lanes[part]
        rows, masks = _by_address(offsets, mine, one=is_write and not scope)
        cells = rows[:, None] + np.arange(nbytes)
        words = [
            (1 << lane, (memory.space, address))
            for address, lane in zip(offsets.tolist(), mine.tolist(), strict=True)
            if scope
        ]
        # An access that acquires comes after what it reads from.
        for lane, at in words if modifies or not is_write else ():
            order.strong_read(actor, lane, at, how.acquires, how.scope)
        width = nbytes // how.elements
        order.generic(actor, memory, cells, operation, is_write, masks, scope, width)
        if is_write and not scope and order.words:
            order.weak_write(memory.space, rows.tolist())
        for lane, at in words if is_write else ():
            order.strong_write(
                actor, lane, at, how.releases, how.scope, modifies=modifies
            )


def _memories(
    state: WarpState, space: str, addresses: Addresses
) -> Iterator[tuple[Memory, NDArray[np.int64], NDArray[np.intp] | slice]]:
    """Split addresses by memory."""
    if not space.startswith("shared"):
        yield state.warp.machine.gmem, addresses.astype(np.int64), slice(None)
        return
    for cta, offsets, part in by_rank(state, addresses):
        yield cta.smem, offsets.astype(np.int64), part


def _by_address(
    offsets: NDArray[np.int64], lanes: NDArray[np.intp], *, one: bool
) -> tuple[NDArray[np.int64], list[int]]:
    """Join lanes with equal addresses: distinct addresses, and their lanes as bits.

    With `one` only the last lane counts: of a weak store by several lanes to one
    place one is performed [CUDA programming guide].
    """
    distinct, inverse = np.unique(offsets, return_inverse=True)
    if distinct.size == offsets.size:
        return offsets, [1 << lane for lane in lanes.tolist()]
    masks = [0] * distinct.size
    for row, lane in zip(inverse.tolist(), lanes.tolist(), strict=True):
        masks[row] = 1 << lane if one else masks[row] | 1 << lane
    return distinct, masks
