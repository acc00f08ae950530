"""spaces: reading and writing the lanes' addresses in every state space.

An access is a gather or scatter of a few bytes for each executing lane. With a trace or
with asynchronous work in flight, neighbouring lanes are joined into runs, so that
conflicts and the trace see ranges; otherwise all lanes move at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import MisalignedAddress, OutOfBounds
from fp4ref.hardware.byte_array import Memory
from fp4ref.hardware.shared_memory import RANK_SHIFT
from fp4ref.hardware.sm import Cta
from fp4ref.hardware.smem import load_generic, mark_elements, store_generic
from fp4ref.ptx.run.state import WarpState
from fp4ref.trace import Bytes, Range

LOCAL_WINDOW = 0x6D00_0000_0000
PARAM_WINDOW = 0x6E00_0000_0000
SHARED_WINDOW = 0x6F00_0000_0000
WINDOW_MASK = 0xFF00_0000_0000
"""Generic addresses of the local, parameter and shared windows; all else is global."""

_WINDOW_SPACES = {
    LOCAL_WINDOW: "local",
    PARAM_WINDOW: "param",
    SHARED_WINDOW: "shared",
}
_OFFSET_MASK = np.uint64((1 << 40) - 1)

Addresses = NDArray[np.uint64]


def check_alignment(
    state: WarpState, addresses: Addresses, nbytes: int, opcode: str
) -> None:
    """Raise `MisalignedAddress` unless every address is a multiple of `nbytes`."""
    if int(np.bitwise_or.reduce(addresses)) & (nbytes - 1):
        bad = addresses & np.uint64(nbytes - 1)
        address = int(addresses[np.flatnonzero(bad)[0]])
        raise MisalignedAddress(
            f"{opcode} of {nbytes} bytes at {address:#x}",
            who=state.warp.who,
            where=state.at,
            rule="an access is aligned to its size [PTX: addresses as operands]",
            remedy="align the address",
        )


def resolve(
    space: str, addresses: Addresses
) -> Iterator[tuple[str, Addresses, NDArray[np.intp] | slice]]:
    """Split generic addresses by window: (space, addresses in it, which lanes)."""
    if space != "generic":
        yield space, addresses, slice(None)
        return
    windows = addresses & np.uint64(WINDOW_MASK)
    if (windows == windows[0]).all():
        yield *_in_window(int(windows[0]), addresses), slice(None)
        return
    for window in np.unique(windows):
        lanes = np.flatnonzero(windows == window)
        yield *_in_window(int(window), addresses[lanes]), lanes


def _in_window(window: int, addresses: Addresses) -> tuple[str, Addresses]:
    space = _WINDOW_SPACES.get(window)
    return ("global", addresses) if space is None else (space, addresses & _OFFSET_MASK)


def shared_address(generic: bool, address: int) -> int:
    """Return the shared address behind an address operand of 32 or 64 bits.

    Raises
    ------
    OutOfBounds
        A generic address that is not in the shared window.
    """
    if not generic:
        return address & 0xFFFFFFFF
    if address & WINDOW_MASK != SHARED_WINDOW:
        raise OutOfBounds(
            f"generic address {address:#x} is not in shared memory",
            rule="the instruction needs an object in shared memory",
            remedy="convert the address with cvta",
        )
    return address - SHARED_WINDOW


# -- shared and global memory ---------------------------------------------


def _runs(addresses: Addresses, nbytes: int) -> list[tuple[int, NDArray[np.intp]]]:
    """Join lanes whose bytes are neighbours: (first address, lanes in order)."""
    order = np.argsort(addresses, kind="stable")
    at = addresses[order]
    breaks = np.flatnonzero(np.diff(at) != nbytes) + 1
    return [(int(addresses[part[0]]), part) for part in np.split(order, breaks)]


def _gather(
    read: Callable[[int, int], Bytes], addresses: Addresses, nbytes: int
) -> Bytes:
    """Read `nbytes` at each address; `read` takes an address and a size."""
    distinct, inverse = np.unique(addresses, return_inverse=True)
    values = np.empty((distinct.size, nbytes), np.uint8)
    for start, part in _runs(distinct, nbytes):
        values[part] = read(start, nbytes * part.size).reshape(part.size, nbytes)
    lanes: Bytes = values[inverse]
    return lanes


def _scatter(
    write: Callable[[int, Bytes], None], addresses: Addresses, data: Bytes
) -> None:
    """Write data[i] at addresses[i]; of equal addresses the last lane wins."""
    first_of_reversed = np.unique(addresses[::-1], return_index=True)[1]
    keep = addresses.size - 1 - first_of_reversed
    distinct, rows = addresses[keep], data[keep]
    for start, part in _runs(distinct, data.shape[1]):
        write(start, rows[part].ravel())


class Together(NamedTuple):
    """The lanes' elements of one memory.

    Attributes
    ----------
    numbers
        Number of each element in the memory.
    around
        Range that bounds them.
    """

    numbers: NDArray[np.int64]
    around: Range


def _at_once(
    state: WarpState, memory: Memory, addresses: Addresses, nbytes: int
) -> Together | None:
    """Return the elements at aligned addresses, if no range has to be looked at.

    None if a trace or work in flight wants ranges, or a byte is out of bounds: then
    the access by runs says what is wrong.
    """
    machine = state.warp.machine
    if machine.in_flight or machine.recorder is not None:
        return None
    known = addresses.tolist()
    low, high = min(known), max(known) + nbytes
    if memory is machine.gmem:
        found = machine.gmem.find(low)
        if found is None or high > found.address + found.nbytes:
            return None
    elif low < memory.base or high > memory.base + memory.nbytes:
        return None
    index = (addresses.astype(np.int64) - memory.base) // nbytes
    return Together(index, Range(memory.space, low, high - low))


def _read_at_once(
    state: WarpState, memory: Memory, addresses: Addresses, nbytes: int
) -> Bytes | None:
    """Read all lanes' elements, if that can be done and all are written."""
    found = _at_once(state, memory, addresses, nbytes)
    if found is None:
        return None
    return memory.gather_elements(found.numbers, nbytes)


def read_memory(
    state: WarpState, space: str, addresses: Addresses, nbytes: int
) -> Bytes:
    """Read `nbytes` at each address of global or shared memory, (lanes, nbytes)."""
    if space != "shared":
        gmem = state.warp.machine.gmem
        together = _read_at_once(state, gmem, addresses, nbytes)
        if together is not None:
            return together
        return _gather(
            lambda at, size: gmem.read(Range(gmem.space, at, size))[0],
            addresses,
            nbytes,
        )
    data = np.empty((addresses.size, nbytes), np.uint8)
    for cta, offsets, lanes in by_rank(state, addresses):
        together = None
        if cta.clc_refusal is None:
            together = _read_at_once(state, cta.smem, offsets, nbytes)
        if together is None:
            together = _gather(_shared_reader(cta), offsets, nbytes)
        data[lanes] = together
    return data


def _shared_reader(cta: Cta) -> Callable[[int, int], Bytes]:
    return lambda at, size: load_generic(cta, at, size)


def _shared_writer(state: WarpState, cta: Cta) -> Callable[[int, Bytes], None]:
    return lambda at, run: store_generic(state.warp, cta, at, run)


def write_memory(
    state: WarpState, space: str, addresses: Addresses, data: Bytes
) -> None:
    """Write data[i] at addresses[i] in global or shared memory."""
    if space != "shared":
        gmem = state.warp.machine.gmem
        if _write_at_once(state, gmem, addresses, data) is not None:
            return
        _scatter(
            lambda at, run: gmem.write(
                Range(gmem.space, at, run.size), run.reshape(1, -1)
            ),
            addresses,
            data,
        )
        return
    nbytes = data.shape[1]
    for cta, offsets, lanes in by_rank(state, addresses):
        together = _write_at_once(state, cta.smem, offsets, data[lanes])
        if together is None:
            _scatter(_shared_writer(state, cta), offsets, data[lanes])
        else:
            numbers, around = together
            mark_elements(state.warp, cta.smem, numbers, nbytes, around)


def _write_at_once(
    state: WarpState, memory: Memory, addresses: Addresses, data: Bytes
) -> Together | None:
    """Write all lanes' elements, if that can be done; of equal ones the last wins."""
    together = _at_once(state, memory, addresses, data.shape[1])
    if together is not None:
        memory.scatter_elements(together.numbers, data)
    return together


def by_rank(
    state: WarpState, addresses: Addresses
) -> Iterator[tuple[Cta, Addresses, NDArray[np.intp] | slice]]:
    """Split shared addresses by CTA: (CTA, offsets in it, which lanes)."""
    known = addresses.tolist()
    rank = min(known) >> RANK_SHIFT
    if rank == max(known) >> RANK_SHIFT:
        cta, _ = state.warp.cta.resolve_shared(rank << RANK_SHIFT)
        yield cta, addresses - np.uint64(rank << RANK_SHIFT), slice(None)
        return
    ranks = addresses >> np.uint64(RANK_SHIFT)
    offsets = addresses & np.uint64((1 << RANK_SHIFT) - 1)
    for rank in np.unique(ranks):
        cta, _ = state.warp.cta.resolve_shared(int(rank) << RANK_SHIFT)
        lanes = np.flatnonzero(ranks == rank)
        yield cta, offsets[lanes], lanes


# -- parameters and local memory ---------------------------------------------


def _index(
    state: WarpState, addresses: Addresses, nbytes: int, limit: int, space: str
) -> NDArray[np.int64]:
    """Index of every byte, (lanes, nbytes), inside a space of `limit` bytes."""
    if int(addresses.max()) + nbytes > limit:
        raise OutOfBounds(
            f"{nbytes} bytes at {space} address {int(addresses.max()):#x}",
            who=state.warp.who,
            where=state.at,
            rule=f"{space} memory has {limit} bytes here",
            remedy="check the address",
        )
    return addresses.astype(np.int64)[:, None] + np.arange(nbytes)


def read_params(state: WarpState, addresses: Addresses, nbytes: int) -> Bytes:
    """Read the kernel's parameter block."""
    params, known = state.context.params, addresses.tolist()
    first = known[0]
    if known.count(first) == len(known) and first + nbytes <= len(params):
        one = np.frombuffer(params, np.uint8, nbytes, first)
        return np.broadcast_to(one, (len(known), nbytes))
    table = np.frombuffer(params, np.uint8)
    found: Bytes = table[_index(state, addresses, nbytes, table.size, "parameter")]
    return found


def read_local(
    state: WarpState, lanes: NDArray[np.intp], addresses: Addresses, nbytes: int
) -> tuple[Bytes, NDArray[np.bool_]]:
    """Read local memory of `lanes`: bytes, and which lanes' bytes are all written."""
    size = state.local.shape[1]
    index = _index(state, addresses, nbytes, size, "local")
    data: Bytes = state.local[lanes[:, None], index]
    written: NDArray[np.bool_] = state.local_written[lanes[:, None], index]
    return data, np.all(written, axis=1)


def write_local(
    state: WarpState,
    lanes: NDArray[np.intp],
    addresses: Addresses,
    data: Bytes,
    defined: NDArray[np.bool_],
) -> None:
    """Write local memory; an undefined value leaves its bytes undefined."""
    size = state.local.shape[1]
    index = _index(state, addresses, data.shape[1], size, "local")
    state.local[lanes[:, None], index] = data
    state.local_written[lanes[:, None], index] = defined[:, None]
