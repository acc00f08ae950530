"""workspace: global memory in which the splits of an output tile come together.

What the host does for split-K: make room for the sums of every output tile, and zero
the locks behind them. Each launch needs zero locks, as with CUTLASS's
``initialize_workspace``; the sums may hold anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.gemm.params import GemmParams
from fp4ref.gemm.plan import Plan
from fp4ref.hardware.global_memory import GlobalMemory

NAME = "workspace"
ALIGNMENT = 16
"""Bytes: a thread's access of the sums."""


def new_workspace(gmem: GlobalMemory, plan: Plan, output_tiles: int) -> int:
    """Allocate a workspace with zero locks; returns its address, 0 without split-K."""
    if not (nbytes := plan.workspace_nbytes(output_tiles)):
        return 0
    address = gmem.allocate(NAME, nbytes)
    zero_locks(gmem, plan, output_tiles, address)
    return address


def zero_locks(gmem: GlobalMemory, plan: Plan, output_tiles: int, at: int) -> None:
    """Make a workspace ready for a launch."""
    sums = output_tiles * plan.sums_nbytes
    nbytes = plan.workspace_nbytes(output_tiles) - sums
    gmem.poke(at + sums, np.zeros(nbytes, np.uint8))


def check_workspace(gmem: GlobalMemory, plan: Plan, params: GemmParams) -> None:
    """Refuse a workspace that a launch could not use.

    Raises
    ------
    InputError
        It is missing, too small, not aligned, or its locks are not zero.
    """
    tiles, at = params.grid.output_tiles, params.workspace
    if not (nbytes := plan.workspace_nbytes(tiles)):
        return
    need = (
        f"splits={params.grid.splits} needs {nbytes:,} bytes: the sums of {tiles} "
        f"output tiles of {plan.sums_nbytes:,} bytes, then a lock of 4 for each"
    )
    found = gmem.find(at)
    if found is None:
        raise InputError(f"workspace at {at:#x}: no global memory is there; {need}")
    if (there := found.address + found.nbytes - at) < nbytes:
        raise InputError(f"workspace of {there:,} bytes; {need}")
    if at % ALIGNMENT:
        raise InputError(f"workspace at {at:#x}; align it to {ALIGNMENT} bytes")
    locks = at + tiles * plan.sums_nbytes - gmem.base
    end = at + nbytes - gmem.base
    if not gmem.written[locks:end].all() or gmem.data[locks:end].any():
        raise InputError(
            f"workspace at {at:#x}: its locks are not zero. They count the k-tiles "
            "that are in, so zero them before each launch: GemmProblem.zero_locks()"
        )


def checked_workspace(given: object, plan: Plan, output_tiles: int) -> NDArray[Any]:
    """Return the caller's workspace as bytes.

    Raises
    ------
    InputError
        It is no array of uint8 of the right size.
    """
    nbytes = plan.workspace_nbytes(output_tiles)
    if not nbytes:
        raise InputError("workspace is given, but splits=1 needs none; leave it out")
    what = getattr(given, "dtype", type(given).__name__)
    shape = getattr(given, "shape", "")
    if not isinstance(given, np.ndarray) or given.dtype != np.uint8:
        raise InputError(f"workspace is {what} {shape}; give uint8 ({nbytes},)")
    if given.shape != (nbytes,):
        raise InputError(f"workspace is {what} {shape}; give uint8 ({nbytes},)")
    return given
